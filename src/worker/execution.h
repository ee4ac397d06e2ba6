#pragma once

#include "worker/host_part.h"
#include "worker/session_parts.h"
#include "worker/streams.h"
#include "worker/textures.h"
#include "worker/validation.h"

namespace heddle::worker {

// What one record does: validated, and handed over to the device with its sequence as the tag, or done here. What ends
// behind its record (frees, tasks, host calls) is the issuer's. Issuer's thread only.
//
// Cost of a launch beside the device's own: the copy of the record (its parameters), about ten compares, two loads from
// the stream's slot, a 56-byte slot written and one uncontended atomic add; no lock, no allocation, no system call.
class Execution {
 public:
  // kWait: the record needs a module, or work behind an event, that is not there yet; nothing has happened.
  enum class Step { kTaken, kWait };

  Execution(const SessionParts& parts, Modules& modules, const DeviceModel& model, const protocol::Window& window);

  // For a new worker: what the session's journal has beside modules and streams.
  Checked<void> restore();
  Checked<Step> execute(const protocol::Record& record);
  // The record needs nothing of the device: it is done.
  Step here(const protocol::Record& record);
  // For how long the record would move bytes of memory on the host; zero for all but launches.
  Duration time_on_host(const protocol::Record& record, const HostPart& part);
  // The stream stops at the record, until the issuer releases it.
  Checked<Step> hold(const protocol::Record& record);

 private:
  Checked<Step> launch(const protocol::Record& record);
  Checked<Step> copy(const protocol::Record& record);
  Checked<Step> fill(const protocol::Record& record);
  Checked<Step> record_event(const protocol::Record& record);
  Checked<Step> wait_for_event(const protocol::Record& record);
  Checked<Step> symbol(const protocol::Record& record);
  Checked<Step> prefetch(const protocol::Record& record);
  Checked<Step> texture(const protocol::Record& record);
  Checked<Step> limit(const protocol::Record& record);
  Checked<Step> open_library(const protocol::Record& record);
  Checked<Step> call_library(const protocol::Record& record);
  // Done when the stream is there, and nothing else.
  Checked<Step> in_turn(const protocol::Record& record);

  Checked<void> set_limit(device::Limit limit, uint64_t bytes);
  // Before it is handed over, whatever may keep it from being run again. `effects`: as Epoch::before has them.
  template <class Effects>
  Checked<Step> prepare(const protocol::Record& record, Effects&& effects);
  // False where the end names a module that has not arrived yet.
  bool keeps_back(const protocol::Record& record, bool obstructs);
  Checked<bool> find_variable(const protocol::CopyEnd& end, device::Variable& variable);
  template <class Call>
  Checked<Step> hand_over(const protocol::Record& record, const char* what, uint64_t bytes, Call&& call);

  SessionParts parts_;
  Modules& modules_;
  const DeviceModel& model_;
  Bounds bounds_;
  const uint64_t seen_until_;  // a worker before has shown it
  Streams streams_;
  Textures textures_;
};

}  // namespace heddle::worker
