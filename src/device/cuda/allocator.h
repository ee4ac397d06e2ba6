#pragma once

#include <memory>

#include "core/fd.h"
#include "core/units.h"
#include "device/cuda/driver.h"

namespace heddle::cuda {

// Device memory as descriptors, for the keeper: made outside of MPS, alive as long as a descriptor or a mapping of it
// is, whoever made it (HARDWARE.md, p5 and p6).
//
// Thread safety: one thread.
class Allocator {
 public:
  // Holds the GPU's primary context, which clearing memory needs.
  static Result<std::unique_ptr<Allocator>> open(uint32_t ordinal);
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // `size` bytes, a multiple of 2 MiB, all zero. kOutOfMemory.
  Result<Fd> allocate(Bytes size);
  // Zeroes memory that was used.
  Status clear(const Fd& memory, Bytes size);

  struct Usage {
    Bytes total, free;  // of the GPU, whoever uses it
  };
  Result<Usage> usage();

 private:
  explicit Allocator(const Driver& driver) : driver_(driver) {}
  Status build(uint32_t ordinal);
  Result<CUmemGenericAllocationHandle> create(Bytes size);
  Status clear(CUmemGenericAllocationHandle handle, Bytes size);
  Result<CUdeviceptr> map(CUmemGenericAllocationHandle handle, Bytes size);
  Status grow_scratch(uint64_t bytes);

  const Driver driver_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  CUdeviceptr scratch_ = 0;  // addresses to map at while clearing
  uint64_t scratch_bytes_ = 0;
};

}  // namespace heddle::cuda
