// CUDA arrays, texture and surface objects.

#include <cstring>

#include "client/driver/array_format.h"
#include "client/driver/contexts.h"
#include "client/driver/functions.h"
#include "client/driver/runtime_functions.h"

namespace heddle::client {
namespace {

// --- arrays ---
CUresult create_3d(cudaArray_t* array, const CUDA_ARRAY3D_DESCRIPTOR* p) {
  return in_context([&]() -> Done {
    if (!array || !p) return refuse(cudaErrorInvalidValue);
    const auto format = channel_format(p->Format, p->NumChannels);
    if (!format) return tl::unexpected(format.error());
    const LastErrorKept kept;
    const cudaError_t made = cudaMalloc3DArray(array, &*format, {p->Width, p->Height, p->Depth}, p->Flags);
    if (made != cudaSuccess) return refuse(made);
    own(Owned::kArray, reinterpret_cast<uint64_t>(*array));
    return {};
  });
}

CUresult create(cudaArray_t* array, const CUDA_ARRAY_DESCRIPTOR* p) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR box{p->Width, p->Height, 0, p->Format, p->NumChannels, 0};
  return create_3d(array, &box);
}

CUresult destroy(cudaArray_t array) {
  return in_driver([&] { return array ? cudaFreeArray(array) : cudaErrorInvalidResourceHandle; });
}

CUresult describe_3d(CUDA_ARRAY3D_DESCRIPTOR* to, cudaArray_t array) {
  return in_driver([&] {
    cudaChannelFormatDesc format;
    cudaExtent extent;
    unsigned flags = 0;
    if (!to) return cudaErrorInvalidValue;
    const cudaError_t found = cudaArrayGetInfo(&format, &extent, &flags, array);
    if (found != cudaSuccess) return found;
    const ArrayFormat element = array_format(format);
    *to = {extent.width, extent.height, extent.depth, element.format, element.channels, flags};
    return cudaSuccess;
  });
}

CUresult describe(CUDA_ARRAY_DESCRIPTOR* to, cudaArray_t array) {
  CUDA_ARRAY3D_DESCRIPTOR box;
  if (!to) return CUDA_ERROR_INVALID_VALUE;
  const CUresult found = describe_3d(&box, array);
  if (found == CUDA_SUCCESS) *to = {box.Width, box.Height, box.Format, box.NumChannels};
  return found;
}

// --- what objects are made of, in the runtime's words ---
Answer<cudaResourceDesc> resource_of(const CUDA_RESOURCE_DESC& from) {
  cudaResourceDesc to{};
  to.resType = from.resType;
  if (from.flags != 0) return refuse(cudaErrorInvalidValue);
  if (from.resType == cudaResourceTypeArray) {
    to.res.array.array = from.res.array.hArray;
  } else if (from.resType == cudaResourceTypeLinear) {
    const auto& linear = from.res.linear;
    const auto format = channel_format(linear.format, linear.numChannels);
    if (!format) return tl::unexpected(format.error());
    to.res.linear = {reinterpret_cast<void*>(linear.devPtr), *format, linear.sizeInBytes};
  } else if (from.resType == cudaResourceTypePitch2D) {
    const auto& rows = from.res.pitch2D;
    const auto format = channel_format(rows.format, rows.numChannels);
    if (!format) return tl::unexpected(format.error());
    to.res.pitch2D = {reinterpret_cast<void*>(rows.devPtr), *format, rows.width, rows.height, rows.pitchInBytes};
  }
  return to;
}

CUDA_RESOURCE_DESC resource_of(const cudaResourceDesc& from) {
  CUDA_RESOURCE_DESC to{};
  to.resType = from.resType;
  if (from.resType == cudaResourceTypeArray) {
    to.res.array.hArray = from.res.array.array;
  } else if (from.resType == cudaResourceTypeLinear) {
    const auto& linear = from.res.linear;
    const ArrayFormat format = array_format(linear.desc);
    to.res.linear = {reinterpret_cast<CUdeviceptr>(linear.devPtr), format.format, format.channels, linear.sizeInBytes};
  } else {
    const auto& rows = from.res.pitch2D;
    const ArrayFormat format = array_format(rows.desc);
    to.res.pitch2D = {reinterpret_cast<CUdeviceptr>(rows.devPtr),
                      format.format,
                      format.channels,
                      rows.width,
                      rows.height,
                      rows.pitchInBytes};
  }
  return to;
}

// The driver normalizes integers unless it is told not to; the runtime the other way round.
cudaTextureDesc sampling_of(const CUDA_TEXTURE_DESC& from) {
  cudaTextureDesc to{};
  std::memcpy(to.addressMode, from.addressMode, sizeof to.addressMode);
  to.filterMode = from.filterMode;
  to.readMode = from.flags & CU_TRSF_READ_AS_INTEGER ? 0 : 1;
  to.sRGB = from.flags & CU_TRSF_SRGB ? 1 : 0;
  std::memcpy(to.borderColor, from.borderColor, sizeof to.borderColor);
  to.normalizedCoords = from.flags & CU_TRSF_NORMALIZED_COORDINATES ? 1 : 0;
  to.maxAnisotropy = from.maxAnisotropy;
  to.mipmapFilterMode = from.mipmapFilterMode;
  to.mipmapLevelBias = from.mipmapLevelBias;
  to.minMipmapLevelClamp = from.minMipmapLevelClamp;
  to.maxMipmapLevelClamp = from.maxMipmapLevelClamp;
  to.disableTrilinearOptimization = from.flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION ? 1 : 0;
  to.seamlessCubemap = from.flags & CU_TRSF_SEAMLESS_CUBEMAP ? 1 : 0;
  return to;
}

CUDA_TEXTURE_DESC sampling_of(const cudaTextureDesc& from) {
  CUDA_TEXTURE_DESC to{};
  std::memcpy(to.addressMode, from.addressMode, sizeof to.addressMode);
  to.filterMode = from.filterMode;
  to.flags = (from.readMode == 0 ? CU_TRSF_READ_AS_INTEGER : 0) |
             (from.normalizedCoords ? CU_TRSF_NORMALIZED_COORDINATES : 0) | (from.sRGB ? CU_TRSF_SRGB : 0) |
             (from.disableTrilinearOptimization ? CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION : 0) |
             (from.seamlessCubemap ? CU_TRSF_SEAMLESS_CUBEMAP : 0);
  to.maxAnisotropy = from.maxAnisotropy;
  to.mipmapFilterMode = from.mipmapFilterMode;
  to.mipmapLevelBias = from.mipmapLevelBias;
  to.minMipmapLevelClamp = from.minMipmapLevelClamp;
  to.maxMipmapLevelClamp = from.maxMipmapLevelClamp;
  std::memcpy(to.borderColor, from.borderColor, sizeof to.borderColor);
  return to;
}

Done done(cudaError_t code) {
  return code == cudaSuccess ? Done{} : refuse(code);
}

// --- objects ---
CUresult create_texture(cudaTextureObject_t* object, const CUDA_RESOURCE_DESC* resource,
                        const CUDA_TEXTURE_DESC* sampling, const void* view) {
  return in_context([&]() -> Done {
    if (!object || !resource || !sampling) return refuse(cudaErrorInvalidValue);
    const auto from = resource_of(*resource);
    if (!from) return tl::unexpected(from.error());
    const cudaTextureDesc by = sampling_of(*sampling);
    const LastErrorKept kept;
    return done(cudaCreateTextureObject(object, &*from, &by, view));
  });
}

CUresult create_surface(cudaSurfaceObject_t* object, const CUDA_RESOURCE_DESC* resource) {
  return in_context([&]() -> Done {
    if (!object || !resource) return refuse(cudaErrorInvalidValue);
    const auto from = resource_of(*resource);
    if (!from) return tl::unexpected(from.error());
    const LastErrorKept kept;
    return done(cudaCreateSurfaceObject(object, &*from));
  });
}

// `find(&runtime's words)`.
template <class Find>
CUresult tell_resource(CUDA_RESOURCE_DESC* to, Find&& find) {
  return in_driver([&] {
    cudaResourceDesc found{};
    if (!to) return cudaErrorInvalidValue;
    const cudaError_t code = find(&found);
    if (code == cudaSuccess) *to = resource_of(found);
    return code;
  });
}

CUresult texture_resource(CUDA_RESOURCE_DESC* to, cudaTextureObject_t object) {
  return tell_resource(to, [&](cudaResourceDesc* found) { return cudaGetTextureObjectResourceDesc(found, object); });
}

CUresult surface_resource(CUDA_RESOURCE_DESC* to, cudaSurfaceObject_t object) {
  return tell_resource(to, [&](cudaResourceDesc* found) { return cudaGetSurfaceObjectResourceDesc(found, object); });
}

CUresult texture_sampling(CUDA_TEXTURE_DESC* to, cudaTextureObject_t object) {
  return in_driver([&] {
    cudaTextureDesc found{};
    if (!to) return cudaErrorInvalidValue;
    const cudaError_t code = cudaGetTextureObjectTextureDesc(&found, object);
    if (code == cudaSuccess) *to = sampling_of(found);
    return code;
  });
}

}  // namespace

std::span<const DriverFunction> driver_array_functions() {
  static const DriverFunction rows[] = {
      HEDDLE_DRIVER(cuArrayCreate_v2, 3020, create),
      HEDDLE_DRIVER(cuArray3DCreate_v2, 3020, create_3d),
      HEDDLE_DRIVER(cuArrayDestroy, 2000, destroy),
      HEDDLE_DRIVER(cuArrayGetDescriptor_v2, 3020, describe),
      HEDDLE_DRIVER(cuArray3DGetDescriptor_v2, 3020, describe_3d),
      HEDDLE_DRIVER(cuTexObjectCreate, 5000, create_texture),
      HEDDLE_DRIVER(cuTexObjectDestroy, 5000, SameAnywhere<&cudaDestroyTextureObject>::call),
      HEDDLE_DRIVER(cuTexObjectGetResourceDesc, 5000, texture_resource),
      HEDDLE_DRIVER(cuTexObjectGetTextureDesc, 5000, texture_sampling),
      HEDDLE_DRIVER(cuSurfObjectCreate, 5000, create_surface),
      HEDDLE_DRIVER(cuSurfObjectDestroy, 5000, SameAnywhere<&cudaDestroySurfaceObject>::call),
      HEDDLE_DRIVER(cuSurfObjectGetResourceDesc, 5000, surface_resource),
  };
  return rows;
}

}  // namespace heddle::client
