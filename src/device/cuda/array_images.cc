#include "device/cuda/array_images.h"

#include <algorithm>

namespace heddle::cuda {
namespace {

bool overlaps(const Texture& of, uint64_t address, uint64_t bytes) {
  return of.address < address + bytes && address < of.address + of.bytes();
}

// Whether both say the same of memory, however they read it.
bool same_memory(const Texture& a, const Texture& b) {
  return a.address == b.address && a.pitch == b.pitch && a.slice == b.slice && a.width == b.width &&
         a.height == b.height && a.depth == b.depth && a.shape == b.shape && a.kind == b.kind &&
         a.channels == b.channels && a.channel_bytes == b.channel_bytes;
}

unsigned flags_of(const Texture& of) {
  unsigned flags = CUDA_ARRAY3D_SURFACE_LDST;
  if (of.shape == TextureShape::k1DLayered || of.shape == TextureShape::k2DLayered ||
      of.shape == TextureShape::kCubeLayered)
    flags |= CUDA_ARRAY3D_LAYERED;
  if (of.shape == TextureShape::kCube || of.shape == TextureShape::kCubeLayered) flags |= CUDA_ARRAY3D_CUBEMAP;
  if (of.has(Texture::kGather)) flags |= CUDA_ARRAY3D_TEXTURE_GATHER;
  return flags;
}

}  // namespace

CUarray_format format_of(const Texture& of) {
  const bool is_signed = of.kind == TexelKind::kSigned;
  if (of.kind == TexelKind::kFloat) return of.channel_bytes == 2 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
  switch (of.channel_bytes) {
    case 1:
      return is_signed ? CU_AD_FORMAT_SIGNED_INT8 : CU_AD_FORMAT_UNSIGNED_INT8;
    case 2:
      return is_signed ? CU_AD_FORMAT_SIGNED_INT16 : CU_AD_FORMAT_UNSIGNED_INT16;
    default:
      return is_signed ? CU_AD_FORMAT_SIGNED_INT32 : CU_AD_FORMAT_UNSIGNED_INT32;
  }
}

ArrayImages::~ArrayImages() {
  for (Image& image : images_) destroy(image);
}

void ArrayImages::destroy(Image& image) {
  if (image.array) driver_.cuArrayDestroy(image.array);
  if (image.last_copy) driver_.cuEventDestroy(image.last_copy);
}

Status ArrayImages::make(Image& image) {
  const Texture& of = image.of;
  CUDA_ARRAY3D_DESCRIPTOR description{};
  description.Width = of.width;
  const bool flat = of.shape == TextureShape::k1D || of.shape == TextureShape::k1DLayered;
  description.Height = flat ? 0 : of.height;
  description.Depth = of.shape == TextureShape::k1D || of.shape == TextureShape::k2D ? 0 : of.depth;
  description.Format = format_of(of);
  description.NumChannels = of.channels;
  description.Flags = flags_of(of);
  HEDDLE_TRY(driver_.check(driver_.cuArray3DCreate(&image.array, &description),
                           stringf("a CUDA array of %u x %u x %u elements", of.width, of.height, of.depth).c_str()));
  return driver_.check(driver_.cuEventCreate(&image.last_copy, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
}

Result<ArrayImages::Image*> ArrayImages::image_of(const Texture& texture) {
  const auto known =
      std::find_if(images_.begin(), images_.end(), [&](const Image& each) { return same_memory(each.of, texture); });
  if (known != images_.end()) {
    known->writable |= texture.has(Texture::kSurface);
    return &*known;
  }
  const Bytes bytes{image_bytes(texture)};
  if (taken_ + bytes > room_)
    return fail(ErrorCode::kLimitExceeded, "a CUDA array of %s: the program has room for %s, of which %s are taken",
                to_string(bytes).c_str(), to_string(room_).c_str(), to_string(taken_).c_str());
  Image image;
  image.of = texture;
  image.writable = texture.has(Texture::kSurface);
  if (Status made = make(image); !made) {
    destroy(image);
    return tl::unexpected(std::move(made).error());
  }
  taken_ += bytes;
  return &images_.emplace_back(image);
}

CUresult ArrayImages::fill(Image& image, CUsurfObject surface, CUstream stream) {
  image.surface = surface;
  image.filling = true;
  ++filling_;
  return copy(image, SurfaceCopy::Direction::kToArray, stream, 0, image.of.depth);
}

CUresult ArrayImages::copy(Image& image, SurfaceCopy::Direction direction, CUstream stream, uint64_t first,
                           uint64_t slices) {
  CUresult result = CUDA_SUCCESS;
  if (image.last_on && image.last_on != stream)
    result = driver_.cuStreamWaitEvent(stream, image.last_copy, CU_EVENT_WAIT_DEFAULT);
  if (result == CUDA_SUCCESS)
    result = copier_.enqueue(stream, direction, image.surface, image.of, static_cast<uint32_t>(first),
                             static_cast<uint32_t>(slices));
  if (result == CUDA_SUCCESS) result = driver_.cuEventRecord(image.last_copy, stream);
  image.last_on = stream;
  return result;
}

CUresult ArrayImages::written(CUstream stream, uint64_t address, uint64_t bytes) {
  for (Image& image : images_) {
    if (!image.surface || !overlaps(image.of, address, bytes)) continue;
    const uint64_t begin = std::max(address, image.of.address) - image.of.address;
    const uint64_t end = std::min(address + bytes, image.of.address + image.of.bytes()) - image.of.address;
    const uint64_t slice = std::max<uint64_t>(image.of.slice, 1);
    const bool deep = image.of.depth > 1;
    const uint64_t first = deep ? begin / slice : 0, last = deep ? (end - 1) / slice : 0;
    const CUresult result = copy(image, SurfaceCopy::Direction::kToArray, stream, first, last - first + 1);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult ArrayImages::surfaces_written(CUstream stream) {
  for (Image& image : images_) {
    if (!image.writable || !image.surface) continue;
    const CUresult result = copy(image, SurfaceCopy::Direction::kToMemory, stream, 0, image.of.depth);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult ArrayImages::await_filled(CUstream stream) {
  if (filling_ == 0) return CUDA_SUCCESS;
  for (Image& image : images_) {
    if (!image.filling) continue;
    CUresult result = driver_.cuEventQuery(image.last_copy);
    if (result == CUDA_SUCCESS) {
      image.filling = false;
      --filling_;
    } else if (result == CUDA_ERROR_NOT_READY && image.last_on != stream) {
      result = driver_.cuStreamWaitEvent(stream, image.last_copy, CU_EVENT_WAIT_DEFAULT);
    }
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) return result;
  }
  return CUDA_SUCCESS;
}

void ArrayImages::forget(uint64_t address, uint64_t bytes) {
  for (auto image = images_.begin(); image != images_.end();) {
    if (!overlaps(image->of, address, bytes)) {
      ++image;
      continue;
    }
    if (image->filling) --filling_;
    taken_ -= Bytes{image_bytes(image->of)};
    destroy(*image);
    image = images_.erase(image);
  }
}

}  // namespace heddle::cuda
