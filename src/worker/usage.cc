#include "worker/usage.h"

#include <utility>

namespace heddle::worker {

void UsageMeter::count(const Pending& pending, const device::Completion& completion) {
  using protocol::RecordType;
  const bool launch = pending.type == RecordType::kLaunch;
  const bool copy = pending.type == RecordType::kCopy;
  if (!launch && !copy) return;
  const auto took = static_cast<uint64_t>((completion.ended - completion.started).count());
  {
    std::lock_guard lock(mutex_);
    total_.launches += launch;
    total_.kernel_ns += launch ? took : 0;
    total_.copies += copy;
    total_.copied_bytes += copy ? pending.bytes : 0;
    total_.copy_ns += copy ? took : 0;
    total_.overrun_ns += completion.overrun_ns;
    if (std::exchange(changed_, true)) return;
  }
  outbox_.notify();
}

protocol::Usage UsageMeter::take_total() {
  std::lock_guard lock(mutex_);
  changed_ = false;
  return std::exchange(total_, {});
}

std::optional<protocol::Usage> UsageMeter::take_changed() {
  std::lock_guard lock(mutex_);
  if (!std::exchange(changed_, false)) return std::nullopt;
  return total_;
}

bool UsageMeter::changed() const {
  std::lock_guard lock(mutex_);
  return changed_;
}

}  // namespace heddle::worker
