// CUDA arrays: made, freed, asked for what they are.

#include "client/context.h"
#include "client/copy/arrays.h"
#include "client/runtime.h"

namespace heddle::client {
namespace {

// The largest buffer that a texture can be bound to, in elements.
constexpr size_t kMostBufferElements = 1u << 28;

// What a GPU cannot read where it lies, its worker keeps a copy of, on the program's account.
Answer<uint64_t> room_for(const Array& array) {
  Texture most = array.layout;
  if (array.flags & cudaArraySurfaceLoadStore) most.flags |= Texture::kSurface;
  if (array.device->model().kind != DeviceKind::kCuda || !needs_image(most)) return 0;
  return array.device->memory().allocate_room(image_bytes(most));
}

Done make(cudaArray_t* handle, const cudaChannelFormatDesc* format, const cudaExtent& extent, unsigned flags) {
  if (!handle || !format) return refuse(cudaErrorInvalidValue);
  auto device = runtime().current_device();
  if (!device) return tl::unexpected(std::move(device).error());
  Array array{*format, extent, flags, *device, {}};
  HEDDLE_ANSWER(set_format(*format, array.layout));
  HEDDLE_ANSWER(set_extent(extent, flags, array.layout));
  auto address = (*device)->memory().allocate(array.layout.bytes());
  if (!address) return tl::unexpected(std::move(address).error());
  array.layout.address = *address;
  auto room = room_for(array);
  if (!room) {
    (void)(*device)->memory().release(*address);
    return tl::unexpected(std::move(room).error());
  }
  array.room = *room;
  *handle = arrays().add(array);
  return {};
}

Done release(cudaArray_t handle) {
  if (!handle) {  // still a call that connects, and that shows errors
    auto device = runtime().current_device();
    return device ? (*device)->failure() : Done(tl::unexpected(std::move(device).error()));
  }
  auto array = arrays().take(handle);
  if (!array) return tl::unexpected(std::move(array).error());
  disown(Owned::kArray, reinterpret_cast<uint64_t>(handle));
  Done released = array->device->memory().release(array->layout.address);
  if (array->room == 0) return released;
  Done room_released = array->device->memory().release(array->room);  // behind the array: its copy goes first
  return released ? room_released : released;
}

}  // namespace

HEDDLE_EXPORT cudaError_t cudaMallocArray(cudaArray_t* handle, const cudaChannelFormatDesc* format, size_t width,
                                          size_t height, unsigned flags) {
  return answer([&]() -> Done {
    if (flags & (cudaArrayLayered | cudaArrayCubemap)) return refuse(cudaErrorInvalidValue);
    return make(handle, format, {width, height, 0}, flags);
  });
}

HEDDLE_EXPORT cudaError_t cudaMalloc3DArray(cudaArray_t* handle, const cudaChannelFormatDesc* format, cudaExtent extent,
                                            unsigned flags) {
  return answer([&] { return make(handle, format, extent, flags); });
}

HEDDLE_EXPORT cudaError_t cudaFreeArray(cudaArray_t handle) {
  return answer([&] { return release(handle); });
}

HEDDLE_EXPORT cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned* flags,
                                           cudaArray_t handle) {
  return answer([&]() -> Done {
    auto array = arrays().find(handle);
    if (!array) return tl::unexpected(std::move(array).error());
    if (format) *format = array->format;
    if (extent) *extent = array->extent;
    if (flags) *flags = array->flags;
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_t handle) {
  return answer([&]() -> Done {
    if (!format) return refuse(cudaErrorInvalidValue);
    auto array = arrays().find(handle);
    if (!array) return tl::unexpected(std::move(array).error());
    *format = array->format;
    return {};
  });
}

HEDDLE_EXPORT cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, int f) {
  return {x, y, z, w, f};
}

HEDDLE_EXPORT cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t* width, const cudaChannelFormatDesc* format,
                                                               int device) {
  return answer([&]() -> Done {
    if (!width || !format) return refuse(cudaErrorInvalidValue);
    auto opened = runtime().device(device);
    if (!opened) return tl::unexpected(std::move(opened).error());
    Texture texture;
    HEDDLE_ANSWER(set_format(*format, texture));
    *width = kMostBufferElements;
    return {};
  });
}

}  // namespace heddle::client
