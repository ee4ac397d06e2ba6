#pragma once

#include <map>
#include <utility>

#include "core/texture.h"
#include "device/cuda/driver.h"

namespace heddle::cuda {

// Copies between rows in memory and a CUDA array, by kernels of heddle's own that use a surface object of the array.
//
// The driver's own copies of the kind make surface objects of their own, for as long as each is under way, and these
// take numbers that a program's objects need (textures.h; driver 580.159, H200).
//
// Thread safety: the owner's lock. A context must be current.
class SurfaceCopy {
 public:
  enum class Direction { kToArray, kToMemory };

  explicit SurfaceCopy(const Driver& driver) : driver_(driver) {}
  // Nothing may be in flight.
  ~SurfaceCopy();
  SurfaceCopy(const SurfaceCopy&) = delete;
  SurfaceCopy& operator=(const SurfaceCopy&) = delete;

  // Puts the copy of `slices` slices from `first` on between the memory that `of` describes and its array on the
  // stream.
  CUresult enqueue(CUstream stream, Direction direction, CUsurfObject array, const Texture& of, uint32_t first,
                   uint32_t slices);
  void abandon() { kernels_.clear(); }

 private:
  struct Kernels {
    CUmodule module = nullptr;
    CUfunction to_array = nullptr, to_memory = nullptr;
  };
  CUresult load(const Texture& of, Kernels& kernels);

  const Driver& driver_;
  std::map<std::pair<const char*, uint32_t>, Kernels> kernels_;  // by geometry and bytes of an element
};

}  // namespace heddle::cuda
