#include "client/memory/stalled_touch.h"

#include <cxxabi.h>

#include <atomic>
#include <cstdlib>
#include <memory>

namespace heddle::client {

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> found(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                          &std::free);
  return status == 0 && found ? found.get() : name;
}

void StalledTouch::look() {
  static std::atomic<bool> said{false};
  if (said.load(std::memory_order_relaxed)) return;
  const TimePoint now = clock_.now();
  if (!device_.ring().is_bound_to(protocol::Binding::kBound)) working_since_ = now;
  const Duration waited = now - working_since_;
  if (waited < kWarnAfter || said.exchange(true)) return;
  say_once(message(waited));
}

std::string StalledTouch::message(Duration waited) const {
  const char* const kernel = device_.recent_launches().oldest_unfinished();
  const std::string running = kernel ? demangled(kernel) : "work that was submitted before";
  const std::string of = buffer_ ? stringf(" (of a buffer of %s at 0x%llx)", to_string(Bytes{buffer_->bytes}).c_str(),
                                           static_cast<unsigned long long>(buffer_->address))
                                 : std::string();
  return stringf(
      "the host's access to managed memory at 0x%llx%s has waited for %.1f s for %s on the device, which has not "
      "ended. The device has managed memory while kernels run (concurrentManagedAccess is 0), so if this one waits for "
      "the host, neither goes on. Then run the program with `heddle run --managed host` (HEDDLE_MANAGED=host): managed "
      "memory "
      "then lives in pinned host memory, which the host and kernels reach at the same time.",
      static_cast<unsigned long long>(address_), of.c_str(), std::chrono::duration<double>(waited).count(),
      running.c_str());
}

}  // namespace heddle::client
