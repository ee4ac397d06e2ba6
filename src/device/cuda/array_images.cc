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
  for (Image& image : rehearsed_) destroy(image);
  if (rehearsal_) driver_.cuMemFree(rehearsal_);
}

Status ArrayImages::rehearse(CUstream stream) {
  Texture part;
  part.width = part.height = 6;  // of a cube, too
  HEDDLE_TRY(driver_.check(driver_.cuMemAlloc(&rehearsal_, 6ull * 6 * 6 * 16), "cuMemAlloc"));
  part.address = rehearsal_;
  part.kind = TexelKind::kUnsigned;
  for (const auto& [channels, bytes] : {std::pair<uint8_t, uint8_t>{1, 1}, {1, 2}, {1, 4}, {2, 4}, {4, 4}}) {
    part.channels = channels, part.channel_bytes = bytes;
    for (const TextureShape shape : {TextureShape::k1D, TextureShape::k2D, TextureShape::k3D, TextureShape::k1DLayered,
                                     TextureShape::k2DLayered, TextureShape::kCube, TextureShape::kCubeLayered})
      HEDDLE_TRY(rehearse(part, shape, stream));
  }
  return {};
}

Status ArrayImages::rehearse(Texture part, TextureShape shape, CUstream stream) {
  const bool flat = shape == TextureShape::k1D || shape == TextureShape::k1DLayered;
  part.shape = shape;
  part.height = flat ? 1 : part.width;
  part.depth = shape == TextureShape::k1D || shape == TextureShape::k2D ? 1 : 6;
  part.pitch = uint64_t{part.width} * part.texel_bytes();
  part.slice = part.pitch * part.height;
  Image& image = rehearsed_.emplace_back();
  image.of = part;
  HEDDLE_TRY(make(image));
  CUresult result = copy(image, Direction::kToImage, stream, 0, part.depth);
  if (result == CUDA_SUCCESS) result = copy(image, Direction::kToMemory, stream, 0, part.depth);
  return driver_.check(result, "copying a CUDA array");
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

Result<CUarray> ArrayImages::image_of(const Texture& texture, CUstream stream) {
  const auto known =
      std::find_if(images_.begin(), images_.end(), [&](const Image& each) { return same_memory(each.of, texture); });
  if (known != images_.end()) {
    known->writable |= texture.has(Texture::kSurface);
    return known->array;
  }
  if (texture.slice % std::max<uint64_t>(texture.pitch, 1) != 0)
    return fail(ErrorCode::kInvalidArgument, "a texture with slices of %llu bytes, which are no whole rows of %llu",
                static_cast<unsigned long long>(texture.slice), static_cast<unsigned long long>(texture.pitch));
  const Bytes bytes{image_bytes(texture)};
  if (taken_ + bytes > room_)
    return fail(ErrorCode::kLimitExceeded, "a CUDA array of %s: the program has room for %s, of which %s are taken",
                to_string(bytes).c_str(), to_string(room_).c_str(), to_string(taken_).c_str());
  Image image;
  image.of = texture;
  image.writable = texture.has(Texture::kSurface);
  Status status = make(image);
  if (status)
    status = driver_.check(copy(image, Direction::kToImage, stream, 0, texture.depth), "filling a CUDA array");
  if (!status) {
    destroy(image);
    return tl::unexpected(std::move(status).error());
  }
  image.filling = true;
  ++filling_;
  taken_ += bytes;
  images_.push_back(image);
  return image.array;
}

CUresult ArrayImages::copy(Image& image, Direction direction, CUstream stream, uint64_t first_slice, uint64_t slices) {
  const Texture& of = image.of;
  CUDA_MEMCPY3D box{};
  box.WidthInBytes = uint64_t{of.width} * of.texel_bytes();
  box.Height = of.height;
  box.Depth = slices;
  const uint64_t memory = of.address + first_slice * of.slice;
  const uint64_t rows = of.depth > 1 ? of.slice / of.pitch : of.height;
  if (direction == Direction::kToImage) {
    box.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    box.srcDevice = memory, box.srcPitch = of.pitch, box.srcHeight = rows;
    box.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    box.dstArray = image.array, box.dstZ = first_slice;
  } else {
    box.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    box.srcArray = image.array, box.srcZ = first_slice;
    box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    box.dstDevice = memory, box.dstPitch = of.pitch, box.dstHeight = rows;
  }
  CUresult result = CUDA_SUCCESS;
  if (image.last_on && image.last_on != stream)
    result = driver_.cuStreamWaitEvent(stream, image.last_copy, CU_EVENT_WAIT_DEFAULT);
  if (result == CUDA_SUCCESS) result = driver_.cuMemcpy3DAsync(&box, stream);
  if (result == CUDA_SUCCESS) result = driver_.cuEventRecord(image.last_copy, stream);
  image.last_on = stream;
  return result;
}

CUresult ArrayImages::written(CUstream stream, uint64_t address, uint64_t bytes) {
  for (Image& image : images_) {
    if (!overlaps(image.of, address, bytes)) continue;
    const uint64_t begin = std::max(address, image.of.address) - image.of.address;
    const uint64_t end = std::min(address + bytes, image.of.address + image.of.bytes()) - image.of.address;
    const uint64_t slice = std::max<uint64_t>(image.of.slice, 1);
    const bool deep = image.of.depth > 1;
    const uint64_t first = deep ? begin / slice : 0, last = deep ? (end - 1) / slice : 0;
    const CUresult result = copy(image, Direction::kToImage, stream, first, last - first + 1);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult ArrayImages::surfaces_written(CUstream stream) {
  for (Image& image : images_) {
    if (!image.writable) continue;
    const CUresult result = copy(image, Direction::kToMemory, stream, 0, image.of.depth);
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
