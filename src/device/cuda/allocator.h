#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/fd.h"
#include "core/units.h"
#include "device/cuda/driver.h"
#include "device/device.h"

namespace heddle::cuda {

// Device memory as descriptors, for the keeper: made outside of MPS, alive as long as a descriptor or a mapping of it
// is, whoever made it (HARDWARE.md, p5 and p6).
//
// Thread safety: one thread.
class Allocator {
 public:
  static constexpr uint64_t kGranule = 2 * kMiB;  // sizes are multiples of it

  // Holds the GPU's primary context, which clearing memory needs.
  static Result<std::unique_ptr<Allocator>> open(uint32_t ordinal);
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // `size` bytes, a multiple of kGranule; zero once finish_clearing() has returned. kOutOfMemory.
  Result<Fd> allocate(Bytes size);
  // The same of this machine's memory, next to the GPU, which can be attached like the GPU's own; with anything in it.
  // Its pages are pinned as it is made: 0.2 s a GiB (HARDWARE.md, p8). kOutOfMemory.
  Result<Fd> allocate_on_host(Bytes size);
  // Memory of either kind; zero once finish_clearing() has returned.
  Status clear(const Fd& memory, Bytes size);
  // Waits for all that is being cleared. Beside busy neighbours each wait takes until this process has its slice of the
  // GPU, 5 ms (HARDWARE.md, p9): so clear together what is wanted together. At an error none of it may be served.
  Status finish_clearing();

  // Memory of a descriptor, mapped here for as long as this is alive.
  class Attached {
   public:
    Attached(Attached&& other) noexcept
        : driver_(other.driver_), at_(std::exchange(other.at_, 0)), size_(other.size_) {}
    Attached& operator=(Attached&&) = delete;
    ~Attached();
    uint64_t address() const { return at_; }
    uint64_t bytes() const { return size_; }

   private:
    friend class Allocator;
    Attached(const Driver& driver, CUdeviceptr at, uint64_t size) : driver_(&driver), at_(at), size_(size) {}
    const Driver* driver_;
    CUdeviceptr at_;
    uint64_t size_;
  };
  // Memory of this GPU, or of another that it has peer access to and that this process sees. This must outlive it.
  Result<Attached> attach(const Fd& memory, Bytes size);
  // Between attached memory; returns when it is done.
  Status copy(const device::CopyShape& shape);

  struct Usage {
    Bytes total, free;  // of the GPU, whoever uses it
  };
  Result<Usage> usage();

 private:
  explicit Allocator(const Driver& driver) : driver_(driver) {}
  Status build(uint32_t ordinal);
  int numa_node() const;
  Result<CUmemGenericAllocationHandle> create(Bytes size, bool on_host);
  Result<Fd> exported(CUmemGenericAllocationHandle handle);
  Result<CUmemGenericAllocationHandle> import(const Fd& memory);
  Status clear(CUmemGenericAllocationHandle handle, Bytes size);
  Status map(CUdeviceptr at, CUmemGenericAllocationHandle handle, uint64_t size);
  Result<Attached> attach(CUmemGenericAllocationHandle handle, Bytes size);

  const Driver driver_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::vector<Attached> clearing_;
};

}  // namespace heddle::cuda
