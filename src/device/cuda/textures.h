#pragma once

#include <map>
#include <utility>
#include <vector>

#include "device/cuda/array_images.h"
#include "device/cuda/window.h"

namespace heddle::cuda {

// The texture and surface objects of one context, under the numbers that their program knows.
//
// The driver numbers its objects itself: each gets the lowest number that is free, from 1 on, textures and surfaces
// alike, and what kernels look at is the lower 32 bits of a handle. A number that was given back is free at some later
// time, which cannot be told. (Seen with driver 580.159 on H200, in time slices and under MPS.) So none is given back
// before the context ends, 64 bytes each: then every object has the next number, placeholders fill those in between,
// and a program's have every second one (kTextureNumberStep), so that one of heddle's own, for copies of an array, can
// follow each. That the driver gave the number is verified each time.
//
// Objects are made when the next kernel is launched: their memory is mapped by then.
//
// Thread safety: the owner's lock. A context must be current.
class Textures {
 public:
  Textures(const Driver& driver, const Window& window) : driver_(driver), window_(window), images_(driver) {}
  // Nothing may be in flight.
  ~Textures();
  Textures(const Textures&) = delete;
  Textures& operator=(const Textures&) = delete;

  // As device::Context::set_texture() and remove_texture().
  Status set(uint64_t handle, const Texture& texture);
  Status remove(uint64_t handle);

  void set_room(Bytes room) { images_.set_room(room); }

  // Before a kernel is launched on `stream`: makes what is missing.
  Status prepare(CUstream stream) { return made_.empty() && missing_.empty() ? Status{} : make_missing(stream); }
  // Behind a kernel that may write surfaces, and behind whatever wrote device memory.
  CUresult surfaces_written(CUstream stream) { return images_.surfaces_written(stream); }
  CUresult written(CUstream stream, uint64_t address, uint64_t bytes) {
    return images_.empty() ? CUDA_SUCCESS : images_.written(stream, address, bytes);
  }

  // Memory is about to go. Nothing in flight uses it.
  void unmapped(uint64_t address, uint64_t bytes) { images_.forget(address, bytes); }

  // For a process that is about to end with work in flight.
  void abandon();

 private:
  struct Object {
    uint64_t handle = 0;
    Texture texture;
  };

  Status make_missing(CUstream stream);
  Status make(uint32_t number, const Texture& texture, CUstream stream);
  Status make_with_image(uint32_t number, const Texture& texture, CUstream stream);
  Status reach(uint32_t number);
  Status create(const CUDA_RESOURCE_DESC& resource, const Texture& texture);
  Status create_as(uint32_t number, const CUDA_RESOURCE_DESC& resource, const Texture& texture);
  Status create_placeholder();

  const Driver& driver_;
  const Window& window_;
  ArrayImages images_;
  CUarray dot_ = nullptr;                        // what placeholders show
  uint32_t last_ = 0;                            // number that the driver has given
  std::map<uint32_t, Object> objects_;           // by number: those that live
  std::map<uint32_t, Texture> missing_;          // likewise: to be made, also of removed ones
  std::vector<std::pair<uint64_t, bool>> made_;  // all that the driver has of ours; whether it is a surface
};

}  // namespace heddle::cuda
