#include "client/copy/arrays.h"

#include <algorithm>

namespace heddle::client {
namespace {

constexpr uint64_t kArrayTag = 0x4841ull << 48;
constexpr unsigned kKnownFlags =
    cudaArrayLayered | cudaArraySurfaceLoadStore | cudaArrayCubemap | cudaArrayTextureGather;
constexpr uint64_t kFaces = 6;

// What attributes.cc reports, as GPUs have it.
struct Largest {
  uint64_t width, height, depth;
};
Largest largest_of(TextureShape shape) {
  switch (shape) {
    case TextureShape::k1D:
      return {131072, 1, 1};
    case TextureShape::k2D:
      return {131072, 65536, 1};
    case TextureShape::k3D:
      return {16384, 16384, 16384};
    case TextureShape::k1DLayered:
      return {32768, 1, 2048};
    case TextureShape::k2DLayered:
      return {32768, 32768, 2048};
    case TextureShape::kCube:
      return {32768, 32768, kFaces};
    case TextureShape::kCubeLayered:
      return {32768, 32768, 2046};
  }
  return {0, 0, 0};
}

TextureShape shape_of(const cudaExtent& extent, unsigned flags) {
  const bool layered = flags & cudaArrayLayered;
  if (flags & cudaArrayCubemap) return layered ? TextureShape::kCubeLayered : TextureShape::kCube;
  if (layered) return extent.height == 0 ? TextureShape::k1DLayered : TextureShape::k2DLayered;
  if (extent.depth > 0) return TextureShape::k3D;
  return extent.height == 0 ? TextureShape::k1D : TextureShape::k2D;
}

// Whether the dimensions that the shape needs are there.
bool is_complete(const cudaExtent& extent, TextureShape shape) {
  const bool cube = shape == TextureShape::kCube || shape == TextureShape::kCubeLayered;
  if (extent.width == 0) return false;
  if (shape == TextureShape::k3D && extent.height == 0) return false;
  if (shape == TextureShape::k1DLayered || shape == TextureShape::k2DLayered) return extent.depth > 0;
  if (!cube) return true;
  const bool faces =
      shape == TextureShape::kCube ? extent.depth == kFaces : extent.depth > 0 && extent.depth % kFaces == 0;
  return faces && extent.width == extent.height;
}

}  // namespace

Done set_format(const cudaChannelFormatDesc& format, Texture& texture) {
  const int bits[] = {format.x, format.y, format.z, format.w};
  const auto channels = static_cast<uint8_t>(std::find(std::begin(bits), std::end(bits), 0) - std::begin(bits));
  const bool alike = std::all_of(bits, bits + channels, [&](int each) { return each == bits[0]; }) &&
                     std::all_of(bits + channels, std::end(bits), [](int each) { return each == 0; });
  const bool sized = bits[0] == 8 || bits[0] == 16 || bits[0] == 32;
  const bool known = format.f >= cudaChannelFormatKindSigned && format.f <= cudaChannelFormatKindFloat &&
                     !(format.f == cudaChannelFormatKindFloat && bits[0] == 8);
  if (!alike || !sized || !known || channels == 3) return refuse(cudaErrorInvalidChannelDescriptor);
  texture.channels = channels;
  texture.channel_bytes = static_cast<uint8_t>(bits[0] / 8);
  texture.kind = format.f == cudaChannelFormatKindFloat      ? TexelKind::kFloat
                 : format.f == cudaChannelFormatKindUnsigned ? TexelKind::kUnsigned
                                                             : TexelKind::kSigned;
  return {};
}

Done set_extent(const cudaExtent& extent, unsigned flags, Texture& texture) {
  if (flags & ~kKnownFlags)
    return refuse(cudaErrorNotSupported, stringf("CUDA arrays with flags %#x are not supported", flags));
  const TextureShape shape = shape_of(extent, flags);
  const Largest most = largest_of(shape);
  if (!is_complete(extent, shape) || extent.width > most.width || extent.height > most.height ||
      extent.depth > std::max<uint64_t>(most.depth, 1))
    return refuse(cudaErrorInvalidValue);
  texture.shape = shape;
  texture.width = static_cast<uint32_t>(extent.width);
  texture.height = static_cast<uint32_t>(std::max<size_t>(extent.height, 1));
  texture.depth = static_cast<uint32_t>(std::max<size_t>(extent.depth, 1));
  texture.pitch = uint64_t{texture.width} * texture.texel_bytes();
  texture.slice = texture.pitch * texture.height;
  if (flags & cudaArrayTextureGather) texture.flags |= Texture::kGather;
  return {};
}

Arrays& arrays() {
  static auto* const all = new Arrays;
  return *all;
}

cudaArray_t Arrays::add(const Array& array) {
  const std::lock_guard lock(mutex_);
  const uint64_t handle = kArrayTag | next_++;
  arrays_[handle] = array;
  return reinterpret_cast<cudaArray_t>(handle);
}

Answer<Array> Arrays::find(cudaArray_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = arrays_.find(reinterpret_cast<uint64_t>(handle));
  if (found == arrays_.end()) return refuse(cudaErrorInvalidResourceHandle);
  return found->second;
}

Answer<Array> Arrays::take(cudaArray_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = arrays_.find(reinterpret_cast<uint64_t>(handle));
  if (found == arrays_.end()) return refuse(cudaErrorInvalidResourceHandle);
  const Array array = found->second;
  arrays_.erase(found);
  return array;
}

void Arrays::forget(const VirtualDevice* device) {
  const std::lock_guard lock(mutex_);
  std::erase_if(arrays_, [&](const auto& entry) { return entry.second.device == device; });
}

Answer<CopyPlace> place_in(const Array& array, const cudaPos& at, const CopyShape& shape) {
  const Texture& layout = array.layout;
  const auto fits = [](uint64_t begin, uint64_t count, uint64_t size) {
    return begin <= size && count <= size - begin;
  };
  if (!fits(at.x, shape.width, layout.pitch) || !fits(at.y, shape.height, layout.height) ||
      !fits(at.z, shape.depth, layout.depth))
    return refuse(cudaErrorInvalidValue);
  CopyPlace place;
  place.kind = CopyPlace::kDevice;
  place.address = layout.address + at.z * layout.slice + at.y * layout.pitch + at.x;
  place.pitch = layout.pitch;
  place.slice = layout.slice;
  place.device = array.device;
  place.in_array = true;
  return place;
}

}  // namespace heddle::client
