#include "device/cuda/staging.h"

#include <algorithm>

#include "core/units.h"

namespace heddle::cuda {
namespace {

using device::CopyDirection;
using device::CopyShape;

constexpr uint64_t kLeast = 64 * kKiB, kMost = 1 * kGiB;  // of one buffer; of all

// Runs on the driver's thread. No driver call is allowed there.
void run_on_host(void* argument) {
  copy_on_host(static_cast<StagedCopy*>(argument)->on_host);
}

}  // namespace

StagingPool::~StagingPool() {
  for (const Buffer& buffer : free_) driver_.cuMemFreeHost(buffer.data);
}

Result<StagingPool::Buffer> StagingPool::take(uint64_t bytes) {
  const auto fits = std::find_if(free_.begin(), free_.end(), [&](const Buffer& each) { return each.bytes >= bytes; });
  if (fits != free_.end()) {
    const Buffer buffer = *fits;
    free_.erase(fits);
    return buffer;
  }
  Buffer buffer{nullptr, round_up(std::max(bytes, kLeast), kLeast)};
  if (buffer.bytes > kMost - std::min(allocated_, kMost))
    return fail(ErrorCode::kOutOfMemory, "a copy of %llu bytes from memory that is not pinned: %llu of %llu are in use",
                static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(allocated_),
                static_cast<unsigned long long>(kMost));
  HEDDLE_TRY(
      driver_.check(driver_.cuMemHostAlloc(&buffer.data, buffer.bytes, CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc"));
  allocated_ += buffer.bytes;
  return buffer;
}

CUresult enqueue_staged(const Driver& driver, CUstream stream, CopyDirection direction, const CopyShape& shape,
                        StagedCopy& staged) {
  staged.on_host = shape;
  if (direction == CopyDirection::kOnHost) return driver.cuLaunchHostFunc(stream, run_on_host, &staged);
  // The buffer holds the rows one after the other.
  const device::CopyEnd packed{reinterpret_cast<uintptr_t>(staged.buffer.data), shape.width,
                               shape.width * shape.height};
  CopyShape on_device = shape;
  if (direction == CopyDirection::kToDevice) {
    staged.on_host.to = on_device.from = packed;
    const CUresult result = driver.cuLaunchHostFunc(stream, run_on_host, &staged);
    return result == CUDA_SUCCESS ? enqueue_copy(driver, stream, direction, on_device) : result;
  }
  staged.on_host.from = on_device.to = packed;
  const CUresult result = enqueue_copy(driver, stream, direction, on_device);
  return result == CUDA_SUCCESS ? driver.cuLaunchHostFunc(stream, run_on_host, &staged) : result;
}

}  // namespace heddle::cuda
