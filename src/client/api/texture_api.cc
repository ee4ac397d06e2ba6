// Texture and surface objects.

#include <cstring>

#include "client/copy/arrays.h"
#include "client/runtime.h"

namespace heddle::client {
namespace {

constexpr uint64_t kMostBufferElements = 1u << 28;
constexpr uint64_t kMostPitchWidth = 131072, kMostPitchHeight = 65000;
constexpr int kLinearFilter = 1, kNormalizedFloat = 1;

// What is bound, and whose memory it is.
struct Resource {
  Texture texture;
  VirtualDevice* device = nullptr;
};

Answer<Resource> of_array(const cudaResourceDesc& description) {
  auto array = arrays().find(description.res.array.array);
  if (!array) return tl::unexpected(std::move(array).error());
  return Resource{array->layout, array->device};
}

// Memory of this device, or host memory that its kernels see.
Done bind(const void* pointer, Resource& resource) {
  auto place = place_of(pointer);
  if (!place) return tl::unexpected(std::move(place).error());
  Texture& texture = resource.texture;
  const uint64_t address = reinterpret_cast<uint64_t>(pointer), bytes = texture.bytes();
  const bool covered = place->kind == CopyPlace::kDevice
                           ? place->device == resource.device && resource.device->memory().covers(address, bytes)
                           : place->kind == CopyPlace::kPinned && runtime().host_memory().covers(address, bytes);
  if (!covered || address % texture.texel_bytes() != 0) return refuse(cudaErrorInvalidValue);
  const bool gpu = resource.device->model().kind == DeviceKind::kCuda;
  const bool aligned =
      address % kTextureAlign == 0 && (texture.has(Texture::kBuffer) || texture.pitch % kTexturePitchAlign == 0);
  if (gpu && !aligned)
    return refuse(cudaErrorInvalidValue,
                  stringf("a texture of memory at %#lx with rows of %lu bytes: a GPU wants multiples of %lu and %lu",
                          address, texture.pitch, kTextureAlign, kTexturePitchAlign));
  texture.address = address;
  return {};
}

Answer<Resource> of_buffer(const cudaResourceDesc& description, VirtualDevice* device) {
  const auto& linear = description.res.linear;
  Resource resource{{}, device};
  Texture& texture = resource.texture;
  HEDDLE_ANSWER(set_format(linear.desc, texture));
  const uint64_t elements = linear.sizeInBytes / texture.texel_bytes();
  if (elements == 0 || elements > kMostBufferElements) return refuse(cudaErrorInvalidValue);
  texture.flags = Texture::kBuffer;
  texture.width = static_cast<uint32_t>(elements);
  texture.pitch = texture.slice = elements * texture.texel_bytes();
  HEDDLE_ANSWER(bind(linear.devPtr, resource));
  return resource;
}

Answer<Resource> of_rows(const cudaResourceDesc& description, VirtualDevice* device) {
  const auto& rows = description.res.pitch2D;
  Resource resource{{}, device};
  Texture& texture = resource.texture;
  HEDDLE_ANSWER(set_format(rows.desc, texture));
  if (rows.width == 0 || rows.width > kMostPitchWidth || rows.height == 0 || rows.height > kMostPitchHeight ||
      rows.pitchInBytes < rows.width * texture.texel_bytes() || rows.pitchInBytes % texture.texel_bytes() != 0)
    return refuse(cudaErrorInvalidValue);
  texture.shape = TextureShape::k2D;
  texture.width = static_cast<uint32_t>(rows.width);
  texture.height = static_cast<uint32_t>(rows.height);
  texture.pitch = rows.pitchInBytes;
  texture.slice = texture.pitch * texture.height;
  HEDDLE_ANSWER(bind(rows.devPtr, resource));
  return resource;
}

Answer<Resource> resource_of(const cudaResourceDesc& description) {
  auto device = runtime().current_device();
  if (!device) return tl::unexpected(std::move(device).error());
  switch (description.resType) {
    case cudaResourceTypeArray:
      return of_array(description);
    case cudaResourceTypeLinear:
      return of_buffer(description, *device);
    case cudaResourceTypePitch2D:
      return of_rows(description, *device);
    case cudaResourceTypeMipmappedArray:
      return refuse(cudaErrorNotSupported, "textures of mipmapped arrays are not supported");
  }
  return refuse(cudaErrorInvalidValue);
}

Done set_sampling(const cudaTextureDesc& sampling, Texture& texture) {
  const bool integers = texture.kind != TexelKind::kFloat;
  const bool as_float = !integers || (sampling.readMode == kNormalizedFloat && texture.channel_bytes < 4);
  const bool linear = sampling.filterMode == kLinearFilter;
  for (size_t i = 0; i < std::size(texture.modes); ++i) {
    if (sampling.addressMode[i] < 0 || sampling.addressMode[i] > static_cast<int>(AddressMode::kBorder))
      return refuse(cudaErrorInvalidValue);
    texture.modes[i] = static_cast<AddressMode>(sampling.addressMode[i]);
  }
  if (sampling.filterMode < 0 || sampling.filterMode > 1 || sampling.readMode < 0 || sampling.readMode > 1)
    return refuse(cudaErrorInvalidValue);
  if (linear && !texture.has(Texture::kBuffer) && !as_float) return refuse(cudaErrorInvalidFilterSetting);
  if (linear && sampling.seamlessCubemap)
    return refuse(cudaErrorNotSupported, "textures that are filtered across the edges of a cube are not supported");
  if (linear) texture.flags |= Texture::kLinearFilter;
  if (sampling.normalizedCoords) texture.flags |= Texture::kNormalizedCoordinates;
  if (integers && as_float) texture.flags |= Texture::kNormalizedValues;
  if (sampling.sRGB) texture.flags |= Texture::kSrgb;
  std::memcpy(texture.border, sampling.borderColor, sizeof texture.border);
  return {};
}

Done create_texture(cudaTextureObject_t* object, const cudaResourceDesc* description, const cudaTextureDesc* sampling,
                    const void* view) {
  if (!object || !description || !sampling) return refuse(cudaErrorInvalidValue);
  if (view) return refuse(cudaErrorNotSupported, "textures with a resource view are not supported");
  auto resource = resource_of(*description);
  if (!resource) return tl::unexpected(std::move(resource).error());
  HEDDLE_ANSWER(set_sampling(*sampling, resource->texture));
  auto handle = resource->device->textures().open(resource->texture, {*description, *sampling, false, 0});
  if (!handle) return tl::unexpected(std::move(handle).error());
  *object = *handle;
  return {};
}

Done create_surface(cudaSurfaceObject_t* object, const cudaResourceDesc* description) {
  if (!object || !description || description->resType != cudaResourceTypeArray) return refuse(cudaErrorInvalidValue);
  auto resource = resource_of(*description);
  if (!resource) return tl::unexpected(std::move(resource).error());
  auto array = arrays().find(description->res.array.array);
  if (!array || !(array->flags & cudaArraySurfaceLoadStore)) return refuse(cudaErrorInvalidValue);
  resource->texture.flags = Texture::kSurface | (resource->texture.flags & Texture::kGather);
  auto handle = resource->device->textures().open(resource->texture, {*description, {}, true, 0});
  if (!handle) return tl::unexpected(std::move(handle).error());
  *object = *handle;
  return {};
}

// The device that made the object.
Answer<VirtualDevice*> device_of_object(uint64_t object) {
  const auto handle = Handle::parse(kTextureTag, object);
  if (!handle) return refuse(cudaErrorInvalidValue);
  return runtime().device(static_cast<int>(handle->device));
}

Done destroy(uint64_t object, bool surface) {
  if (object == 0) return {};
  auto device = device_of_object(object);
  if (!device) return tl::unexpected(std::move(device).error());
  return (*device)->textures().close(object, surface);
}

Answer<TextureState> state_of(uint64_t object, bool surface) {
  auto device = device_of_object(object);
  if (!device) return tl::unexpected(std::move(device).error());
  return (*device)->textures().find(object, surface);
}

Done describe(cudaResourceDesc* description, uint64_t object, bool surface) {
  if (!description) return refuse(cudaErrorInvalidValue);
  auto state = state_of(object, surface);
  if (!state) return tl::unexpected(std::move(state).error());
  *description = state->resource;
  return {};
}

}  // namespace

HEDDLE_EXPORT cudaError_t cudaCreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                                  const cudaTextureDesc* sampling, const void* view) {
  return answer([&] { return create_texture(object, resource, sampling, view); });
}

HEDDLE_EXPORT cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) {
  return answer([&] { return destroy(object, false); });
}

HEDDLE_EXPORT cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* description, cudaTextureObject_t object) {
  return answer([&] { return describe(description, object, false); });
}

HEDDLE_EXPORT cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* sampling, cudaTextureObject_t object) {
  return answer([&]() -> Done {
    if (!sampling) return refuse(cudaErrorInvalidValue);
    auto state = state_of(object, false);
    if (!state) return tl::unexpected(std::move(state).error());
    *sampling = state->sampling;
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* object, const cudaResourceDesc* resource) {
  return answer([&] { return create_surface(object, resource); });
}

HEDDLE_EXPORT cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object) {
  return answer([&] { return destroy(object, true); });
}

HEDDLE_EXPORT cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* description, cudaSurfaceObject_t object) {
  return answer([&] { return describe(description, object, true); });
}

}  // namespace heddle::client
