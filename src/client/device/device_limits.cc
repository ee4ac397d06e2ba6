#include "client/device/device_limits.h"

#include <algorithm>
#include <utility>

namespace heddle::client {
namespace {

constexpr size_t kStackStep = 16;

}  // namespace

Done DeviceLimits::set(cudaLimit limit, size_t value) {
  if (limit < 0 || limit >= static_cast<int>(values_.size())) return refuse(cudaErrorUnsupportedLimit);
  const RingPort::Lock lock = ring_.lock();
  HEDDLE_ANSWER(ring_.failure());
  if (limit == cudaLimitPrintfFifoSize) {
    if (uses_printf_ && value != values_[limit]) return refuse(cudaErrorInvalidValue);
    value = std::clamp<size_t>(value, 1, protocol::kPrintBytes);
    ring_.header().print_bytes.store(value, std::memory_order_release);
  } else if (limit == cudaLimitStackSize) {
    if (value > kMostStackBytes) return refuse(cudaErrorInvalidValue);
    value = round_up(std::max<size_t>(value, kStackStep), kStackStep);
    ring_.header().stack_bytes.store(value, std::memory_order_release);
    HEDDLE_ANSWER(append(protocol::LimitKind::kStackBytes, value));
  } else if (limit == cudaLimitMallocHeapSize) {
    if (uses_malloc_ && value != values_[limit]) return refuse(cudaErrorInvalidValue);
    if (value > ring_.session().welcome().budget_bytes) return refuse(cudaErrorMemoryAllocation);
    value = round_up(std::max<size_t>(value, kKiB), kKiB);
    ring_.header().heap_bytes.store(value, std::memory_order_release);
    HEDDLE_ANSWER(append(protocol::LimitKind::kHeapBytes, value));
  } else if (limit == cudaLimitDevRuntimePendingLaunchCount) {
    value = std::max<size_t>(value, 1);
    ring_.header().pending_launches.store(value, std::memory_order_release);
    HEDDLE_ANSWER(append(protocol::LimitKind::kPendingLaunches, value));
  }
  values_[limit] = value;
  return {};
}

Answer<size_t> DeviceLimits::get(cudaLimit limit) {
  if (limit < 0 || limit >= static_cast<int>(values_.size())) return refuse(cudaErrorUnsupportedLimit);
  const RingPort::Lock lock = ring_.lock();
  return values_[limit];
}

bool DeviceLimits::are_default() {
  const RingPort::Lock lock = ring_.lock();
  return values_ == kDefaults;
}

// A heap that kernels have used can only go with its worker, which VirtualDevice::reset() lets go.
Done DeviceLimits::reset() {
  const bool used = std::exchange(uses_malloc_, false);
  uses_printf_ = false;
  const auto before = std::exchange(values_, kDefaults);
  for (std::atomic<uint64_t>* each : {&ring_.header().print_bytes, &ring_.header().stack_bytes,
                                      &ring_.header().heap_bytes, &ring_.header().pending_launches})
    each->store(0, std::memory_order_release);
  const auto put_back = [&](cudaLimit limit, protocol::LimitKind kind) {
    return before[limit] == values_[limit] ? Done{} : append(kind, values_[limit]);
  };
  HEDDLE_ANSWER(put_back(cudaLimitStackSize, protocol::LimitKind::kStackBytes));
  HEDDLE_ANSWER(put_back(cudaLimitDevRuntimePendingLaunchCount, protocol::LimitKind::kPendingLaunches));
  return used ? Done{} : put_back(cudaLimitMallocHeapSize, protocol::LimitKind::kHeapBytes);
}

Done DeviceLimits::append(protocol::LimitKind kind, uint64_t bytes) {
  HEDDLE_ANSWER(task_.prepare(DeviceTask::Begin::kNo));
  auto sequence = task_.append(protocol::RecordType::kLimit, static_cast<uint64_t>(kind), bytes);
  return sequence ? Done{} : Done(tl::unexpected(std::move(sequence).error()));
}

}  // namespace heddle::client
