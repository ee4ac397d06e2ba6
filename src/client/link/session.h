#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "client/link/arena.h"
#include "client/link/connection.h"
#include "core/result.h"
#include "protocol/ring_memory.h"

// The process's connection to heddled: what was declared over it, and how it comes back after heddled was restarted. It
// knows nothing of CUDA. Errors: kPermission for what heddled refuses, kPeerDied where it cannot be talked to any more,
// kProtocol where it says what makes no sense; open() and memory have others, said there.
//
// Thread safety: everything from any thread. One lock is held while something is sent, and while heddled's successor is
// looked for, but not while an answer is waited for: a request that takes long keeps no other thread from asking. But
// for the connection's own it is the innermost lock: a device's lock may be held when it is taken.
namespace heddle::client {

struct SessionSettings {
  std::string socket_path;
  uint64_t job = 0, job_secret = 0;
  Duration lost_after{};  // how long heddled may be away
  bool check = false;     // kernels' accesses are checked
  // Where managed memory lives, if the program is not to follow heddled's configuration.
  enum class Managed { kAsConfigured, kHost, kDevice } managed = Managed::kAsConfigured;

  // HEDDLE_SOCKET, HEDDLE_JOB (id:secret), HEDDLE_LOST_AFTER (30s), HEDDLE_CHECK (1), HEDDLE_MANAGED (host, device).
  static Result<SessionSettings> from_environment();
};

class Session {
 public:
  // Connects, and reserves the addresses of the window. kNotSupported where kernels cannot be checked as the settings
  // want it.
  static Result<std::unique_ptr<Session>> open(SessionSettings settings);

  const protocol::Welcome& welcome() const { return welcome_; }
  const protocol::Window& window() const { return window_; }
  // What the program has of heddled's limit, over all devices.
  SegmentCount& segment_count() { return segment_count_; }
  bool checks_kernels() const { return settings_.check; }
  // Whether managed memory lives on the device while kernels run; else it is pinned memory. What the program wants
  // (HEDDLE_MANAGED) goes before heddled's configuration, where it is possible.
  bool managed_on_device() const;
  // Why what the program wants of managed memory is not possible; empty: it is, or it wants nothing.
  std::string managed_refusal() const;

  // The ring of one virtual device.
  Result<protocol::RingMemory> open_device(uint32_t virtual_device);
  // A program module, as its fat binaries lie in the program. Returns its journal id.
  Result<uint32_t> declare_module(std::span<const std::span<const std::byte>> fatbins);
  // Device memory. Returns the segment's number. With `answer` it waits for the memory itself: kOutOfMemory, kNotFound,
  // kPermission and kInternal are heddled's refusals.
  Result<uint64_t> declare_segment(uint32_t virtual_device, const Segment& declared, bool answer);
  // The segment's kFree is in the ring: a restarted heddled need not hear of it again.
  void forget_segment(uint64_t number);
  Status begin_task(uint64_t serial, const protocol::ComputeNeed& need);
  // Both tasks, at once and on two devices, or neither (protocol::BeginApart).
  Result<bool> begin_apart(const protocol::BeginTask& first, const protocol::BeginTask& second);
  Status grow_task(const protocol::ComputeNeed& need);
  void end_task(uint32_t virtual_device);
  // The task is away from its device, and there is a record for it (protocol::WorkWaits).
  Status work_waits(uint32_t virtual_device);
  // Pinned host memory, mapped at `address`; asked for through a virtual device that is open. Refusals as above.
  Result<uint64_t> map_host_segment(uint32_t virtual_device, uint64_t address, uint64_t bytes);
  void unmap_host_segment(uint64_t number, uint64_t address, uint64_t bytes);
  Result<protocol::MemoryAnswer> memory_info(uint32_t virtual_device);
  // A copy between devices, done when this returns; `done` is 0 where heddled has nobody who can.
  Result<protocol::CopyAnswer> copy_across(const protocol::CopyAcross& copy);

  // To be called now and then while waiting: notices that heddled went away and comes back to its successor. An error
  // once the session is lost for good.
  Status look();

 private:
  using Lock = std::unique_lock<std::mutex>;

  explicit Session(SessionSettings settings) : settings_(std::move(settings)) {}

  Result<protocol::Welcome> greet(protocol::Socket& socket, uint64_t resume_session, uint64_t resume_secret);
  Status introduce();
  Status refuse_checks() const;
  Status reserve_window();
  Status reconnect();
  Status declare_again(protocol::Socket& socket);
  tl::unexpected<Error> lost(std::string why);
  // Both under the lock; ask() lets it go while it waits.
  template <class Message>
  Status tell(const Message& message, std::span<const int> descriptors = {});
  template <class Reply, class Message>
  Result<Reply> ask(Lock& lock, Message message, Duration limit, std::vector<Fd>* descriptors = nullptr);
  Result<uint64_t> ask_for_host_segment(uint32_t virtual_device, uint64_t address, uint64_t bytes);
  template <class Reply>
  Result<Reply> reply_in(protocol::Packet packet, std::vector<Fd>* descriptors);

  const SessionSettings settings_;
  protocol::Welcome welcome_;
  protocol::Window window_;
  Mapping reserved_;
  SegmentCount segment_count_;

  std::mutex mutex_;                        // guards what follows
  std::shared_ptr<Connection> connection_;  // shared with those who wait for answers while another takes its place
  bool lost_ = false;
  std::string why_lost_;
  struct Journal {
    std::vector<std::pair<protocol::DeclareModule, Fd>> modules;
    std::map<uint64_t, protocol::DeclareSegment> segments;  // live device segments
    std::map<uint32_t, protocol::BeginTask> tasks;          // by virtual device
  } journal_;
  uint64_t last_segment_ = 0;
};

}  // namespace heddle::client
