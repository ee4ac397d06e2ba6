#pragma once

#include <atomic>
#include <vector>

#include "worker/deferred.h"
#include "worker/idle.h"
#include "worker/inbox.h"
#include "worker/segments.h"
#include "worker/session_parts.h"
#include "worker/streams.h"
#include "worker/textures.h"
#include "worker/validation.h"

namespace heddle::worker {

// The thread that takes records from the ring and hands them to the device: the main path of a worker.
//
// A record is copied out of the ring, validated, and handed over with its sequence as the tag; one that must wait (for
// memory, for a module) holds up everything behind it. What needs no device is finished here, so that an idle stream's
// marker costs the client two futex wake-ups and no third thread. Everything that touches the device happens on this
// thread; heddled's messages reach it through the inbox, and whoever has something for it rings to_worker.
//
// Cost of a launch beside the device's own: the copy of the record (its parameters), about ten compares, two loads from
// the stream's slot, a 40-byte slot written and one uncontended atomic add; no lock, no allocation, no system call.
// Its completion costs one lock for each batch.
class Issuer {
 public:
  struct Binding {
    const DeviceModel& model;
    protocol::Window window;
    uint64_t task_serial;
  };

  Issuer(const SessionParts& parts, Modules& modules, const Binding& binding, protocol::RingReader reader);

  // Returns after stop(). Between a task's end and the next one, which heddled names, it leaves the ring alone.
  void run();
  // Any thread.
  void post(protocol::Packet packet);
  void stop();

 private:
  enum class Step { kTaken, kWait };
  struct HostCall {
    uint32_t stream;
    uint64_t sequence;
  };

  // Between records.
  void attend();
  void receive(const protocol::Packet& packet);
  void map(const protocol::Packet& packet);
  void begin_task(uint64_t serial);
  void finish_task(uint64_t sequence);
  void reclaim_if_asked();
  bool reclaim_idle();
  bool is_quiet() const;
  void settle_deferred();
  void settle(const Deferred& deferred);
  void settle_host_calls();
  bool host_call_returned(const HostCall& call) const;

  // One record.
  bool next();
  bool take();
  Checked<Step> issue();
  Checked<Step> launch();
  Checked<Step> copy();
  Checked<Step> fill();
  Checked<Step> wait_for_event();
  Checked<Step> host_call();
  Checked<Step> symbol();
  Checked<Step> prefetch();
  Checked<Step> texture();
  Checked<Step> limit();
  Checked<Step> open_library();
  Checked<Step> call_library();
  Checked<void> set_limit(device::Limit limit, uint64_t bytes);
  void restore();
  void rest(protocol::Bell& bell, uint32_t seen);
  Checked<Step> defer(Deferred::Kind kind);
  Checked<Step> end_task();
  Checked<Step> in_turn();
  Checked<Step> here();
  // False where the end names a module that has not arrived yet.
  Checked<bool> find_variable(const protocol::CopyEnd& end, device::Variable& variable);
  template <class Call>
  Checked<Step> hand_over(const char* what, uint64_t bytes, Call&& call);

  SessionParts parts_;
  Modules& modules_;
  Binding binding_;
  Bounds bounds_;
  protocol::RingReader reader_;
  Segments segments_;
  Streams streams_;
  Textures textures_;
  Inbox inbox_;
  Idle idle_;
  std::atomic<bool> stopping_{false};

  protocol::Record record_;
  bool have_record_ = false;  // record_ waits to be taken
  bool reading_ = true;       // false once the task's end was met or the ring's records cannot be told apart any more
  bool may_take_ = false;     // true once heddled has sent all memory of the grant
  bool serving_ = true;       // false between a task's end and the next one
  bool reset_ = false;        // the program has reset the device
  uint64_t entered_ = 0;      // sequence of the record taken last
  uint64_t reclaims_ = 0;     // of heddled's requests, those that were met
  Duration nap_{};            // how long the ring was silent so far, and is slept on next
  DeferredQueue deferred_;
  std::vector<HostCall> host_calls_;
};

}  // namespace heddle::worker
