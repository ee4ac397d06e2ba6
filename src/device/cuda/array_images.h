#pragma once

#include <list>

#include "core/texture.h"
#include "core/units.h"
#include "device/cuda/surface_copy.h"

namespace heddle::cuda {

// As the driver calls the elements of a texture.
CUarray_format format_of(const Texture& texture);

// Copies of a program's arrays in CUDA arrays of the driver, which texture and surface objects read where the hardware
// cannot read the memory itself (needs_image()).
//
// The truth is the linear memory: it is a segment, and outlives this process; memory of CUDA arrays cannot be exported
// (driver 580.159: cuMemMapArrayAsync takes tile pools only, and those have no shareable handles). So what is written
// to the linear memory follows into its image on the same stream, and what a kernel wrote to a surface goes back right
// behind it: whoever is ordered behind the write is ordered behind its copy. Copies of one image never overtake each
// other, whatever streams they are on.
//
// Thread safety: the owner's lock. A context must be current.
class ArrayImages {
 public:
  explicit ArrayImages(const Driver& driver) : driver_(driver), copier_(driver) {}
  // Nothing may be in flight.
  ~ArrayImages();
  ArrayImages(const ArrayImages&) = delete;
  ArrayImages& operator=(const ArrayImages&) = delete;

  // The most that all images together may take, as image_bytes() counts them.
  void set_room(Bytes room) { room_ = room; }
  struct Image {
    Texture of;  // where the memory is, and its layout
    CUarray array = nullptr;
    CUsurfObject surface = 0;     // for copies; 0: it was not filled yet
    bool writable = false;        // a surface object of the program is, or was, made of it
    bool filling = false;         // the first copy may still be under way
    CUevent last_copy = nullptr;  // of all copies, in both directions
    CUstream last_on = nullptr;
  };
  // The image of the memory that `texture` describes, made where there is none yet. One that the program's surfaces use
  // goes back behind kernels from now on. kLimitExceeded: the program has no room for it; kOutOfMemory: it has, and
  // there is no memory. Not null; lives until its memory goes.
  Result<Image*> image_of(const Texture& texture);
  // Copies the memory to it, for the first time. `surface`: of its array, for this and all later copies.
  CUresult fill(Image& image, CUsurfObject surface, CUstream stream);

  // Something wrote [address, address + bytes) on `stream`.
  CUresult written(CUstream stream, uint64_t address, uint64_t bytes);
  // A kernel that may write surfaces was launched on `stream`.
  CUresult surfaces_written(CUstream stream);
  // Makes what `stream` is given next follow the filling of images on other streams.
  CUresult await_filled(CUstream stream);

  // The memory is unmapped: nothing in flight uses the images of it, nor texture objects.
  void forget(uint64_t address, uint64_t bytes);
  bool empty() const { return images_.empty(); }
  // For a process that is about to end with work in flight.
  void abandon() {
    images_.clear();
    copier_.abandon();
  }

 private:
  Status make(Image& image);
  CUresult copy(Image& image, SurfaceCopy::Direction direction, CUstream stream, uint64_t first, uint64_t slices);
  void destroy(Image& image);

  const Driver& driver_;
  SurfaceCopy copier_;
  std::list<Image> images_;
  Bytes room_, taken_;
  uint32_t filling_ = 0;  // images whose first copy may be under way
};

}  // namespace heddle::cuda
