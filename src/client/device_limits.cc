// VirtualDevice: cudaDeviceSetLimit.

#include <algorithm>
#include <utility>

#include "client/virtual_device.h"

namespace heddle::client {
namespace {

constexpr size_t kMostStackBytes = 512 * kKiB;  // what local memory can be
constexpr size_t kStackStep = 16;

}  // namespace

Done VirtualDevice::set_limit(cudaLimit limit, size_t value) {
  if (limit < 0 || limit >= static_cast<int>(limits_.size())) return refuse(cudaErrorUnsupportedLimit);
  const Lock lock = ring_.lock();
  HEDDLE_ANSWER(failure());
  if (limit == cudaLimitPrintfFifoSize) {
    if (uses_printf_ && value != limits_[limit]) return refuse(cudaErrorInvalidValue);
    value = std::clamp<size_t>(value, 1, protocol::kPrintBytes);
    ring_.header().print_bytes.store(value, std::memory_order_release);
  } else if (limit == cudaLimitStackSize) {
    if (value > kMostStackBytes) return refuse(cudaErrorInvalidValue);
    value = round_up(std::max<size_t>(value, kStackStep), kStackStep);
    ring_.header().stack_bytes.store(value, std::memory_order_release);
    HEDDLE_ANSWER(append_limit(protocol::LimitKind::kStackBytes, value));
  } else if (limit == cudaLimitMallocHeapSize) {
    if (uses_malloc_ && value != limits_[limit]) return refuse(cudaErrorInvalidValue);
    if (value > session().welcome().budget_bytes) return refuse(cudaErrorMemoryAllocation);
    value = round_up(std::max<size_t>(value, kKiB), kKiB);
    ring_.header().heap_bytes.store(value, std::memory_order_release);
    HEDDLE_ANSWER(append_limit(protocol::LimitKind::kHeapBytes, value));
  }
  limits_[limit] = value;
  return {};
}

Answer<size_t> VirtualDevice::limit(cudaLimit limit) {
  if (limit < 0 || limit >= static_cast<int>(limits_.size())) return refuse(cudaErrorUnsupportedLimit);
  const Lock lock = ring_.lock();
  return limits_[limit];
}

bool VirtualDevice::has_default_limits() {
  const Lock lock = ring_.lock();
  return limits_ == kDefaultLimits;
}

// A heap that kernels have used can only go with its worker, which reset() lets go.
Done VirtualDevice::reset_limits() {
  const bool used = std::exchange(uses_malloc_, false);
  uses_printf_ = false;
  const auto before = std::exchange(limits_, kDefaultLimits);
  for (std::atomic<uint64_t>* each :
       {&ring_.header().print_bytes, &ring_.header().stack_bytes, &ring_.header().heap_bytes})
    each->store(0, std::memory_order_release);
  const auto put_back = [&](cudaLimit limit, protocol::LimitKind kind) {
    return before[limit] == limits_[limit] ? Done{} : append_limit(kind, limits_[limit]);
  };
  HEDDLE_ANSWER(put_back(cudaLimitStackSize, protocol::LimitKind::kStackBytes));
  return used ? Done{} : put_back(cudaLimitMallocHeapSize, protocol::LimitKind::kHeapBytes);
}

Done VirtualDevice::append_limit(protocol::LimitKind kind, uint64_t bytes) {
  HEDDLE_ANSWER(prepare(Begin::kNo));
  auto sequence = append(protocol::RecordType::kLimit, static_cast<uint64_t>(kind), bytes);
  return sequence ? Done{} : Done(tl::unexpected(std::move(sequence).error()));
}

}  // namespace heddle::client
