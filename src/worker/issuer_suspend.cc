// The part of Issuer that ends a worker's part in a task that is suspended: another worker goes on with it later, as in
// the place of one that has died.

#include "core/log.h"
#include "worker/issuer.h"

namespace heddle::worker {

// What was taken ends by itself, or with the return of the program's host calls; until then leases are attended to as
// ever. After a fault the session is over, and heddled ends this worker.
void Issuer::leave_if_done() {
  if (parts_.fault.raised()) return;
  if (!parts_.epoch.settle()) return;
  // Ask to be woken, then look: it may be done in between.
  parts_.progress.wake_issuer_once_at(entered_);
  if (!deferred_.empty() || !host_calls_.empty() || parts_.progress.completed() != entered_) return;
  suspending_ = false;
  // Before its forerunner's variables were written here there is nothing to save.
  if (!goes_on_ && !parts_.variables.save_now(entered_))
    return parts_.commit.tell(protocol::Suspended{task_serial_, 0, 0});
  // A record that was read and not taken is the next worker's: the page says where it begins.
  gate_.end_task();
  have_record_ = false;
  idle_since_.reset();
  save_in_.reset();
  goes_on_.reset();
  const auto unmapped = segments_.unmap_device_segments();
  if (!unmapped) logger("worker")->error("when it was suspended: {}", unmapped.error().text);
  parts_.usage.end_task();
  parts_.commit.tell(protocol::Suspended{task_serial_, 1, segments_.uncertain() ? 0u : 1u});
}

}  // namespace heddle::worker
