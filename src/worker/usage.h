#pragma once

#include <mutex>
#include <optional>

#include "device/device.h"
#include "protocol/messages.h"
#include "worker/outbox.h"
#include "worker/progress.h"

namespace heddle::worker {

// Adds up what the session used of the device. Thread-safe.
class UsageMeter {
 public:
  explicit UsageMeter(Outbox& outbox) : outbox_(outbox) {}

  // `pending` is the record that `completion` is of. The first change after a take_changed() notifies the outbox's
  // thread, so that nobody needs a timer while nothing happens.
  void count(const Pending& pending, const device::Completion& completion);
  // The totals at a task's end; the next task's begin at zero.
  protocol::Usage take_total();
  // The totals, if they are not those of the last call.
  std::optional<protocol::Usage> take_changed();
  bool changed() const;

 private:
  Outbox& outbox_;
  mutable std::mutex mutex_;
  protocol::Usage total_;
  bool changed_ = false;
};

}  // namespace heddle::worker
