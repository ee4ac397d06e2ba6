#include "client/driver/copy_parameters.h"

#include "client/copy/arrays.h"

namespace heddle::client {
namespace {

// One end as the driver has it.
struct DriverEnd {
  size_t x, y, z, lod;
  CUmemorytype type;
  void* host;
  CUdeviceptr device;
  cudaArray_t array;
  size_t pitch, height;
};
// And as the runtime has it.
struct RuntimeEnd {
  cudaArray_t array = nullptr;
  cudaPos at{};
  cudaPitchedPtr memory{};
};

Answer<size_t> element_bytes(cudaArray_t handle) {
  auto array = arrays().find(handle);
  if (!array) return tl::unexpected(std::move(array).error());
  return array->layout.texel_bytes();
}

// Bytes of one element, where either end is an array; else 1.
Answer<size_t> element_bytes(const DriverEnd& one, const DriverEnd& other) {
  if (one.type == CU_MEMORYTYPE_ARRAY) return element_bytes(one.array);
  if (other.type == CU_MEMORYTYPE_ARRAY) return element_bytes(other.array);
  return 1;
}

Answer<RuntimeEnd> runtime_end(const DriverEnd& end, const CUDA_MEMCPY3D& p, size_t element) {
  if (end.lod != 0) return refuse(cudaErrorInvalidValue);
  if (end.type == CU_MEMORYTYPE_ARRAY) {
    if (!end.array || end.x % element != 0) return refuse(cudaErrorInvalidValue);
    return RuntimeEnd{end.array, {end.x / element, end.y, end.z}, {}};
  }
  if (end.type != CU_MEMORYTYPE_HOST && end.type != CU_MEMORYTYPE_DEVICE && end.type != CU_MEMORYTYPE_UNIFIED)
    return refuse(cudaErrorInvalidValue);
  // Without a pitch the rows, and without a height the slices, lie behind each other.
  const size_t pitch = end.pitch ? end.pitch : end.x + p.WidthInBytes;
  const size_t height = end.height ? end.height : end.y + p.Height;
  void* const pointer = end.type == CU_MEMORYTYPE_HOST ? end.host : reinterpret_cast<void*>(end.device);
  return RuntimeEnd{nullptr, {end.x, end.y, end.z}, {pointer, pitch, p.WidthInBytes, height}};
}

DriverEnd driver_end(const RuntimeEnd& end, size_t element) {
  if (end.array) return {end.at.x * element, end.at.y, end.at.z, 0, CU_MEMORYTYPE_ARRAY, nullptr, 0, end.array, 0, 0};
  const auto address = reinterpret_cast<CUdeviceptr>(end.memory.ptr);
  return {end.at.x, end.at.y,         end.at.z,        0, CU_MEMORYTYPE_UNIFIED, nullptr, address,
          nullptr,  end.memory.pitch, end.memory.ysize};
}

}  // namespace

Answer<cudaMemcpy3DParms> box_of(const CUDA_MEMCPY3D& p) {
  const DriverEnd from{p.srcXInBytes, p.srcY,     p.srcZ,     p.srcLOD,   p.srcMemoryType, const_cast<void*>(p.srcHost),
                       p.srcDevice,   p.srcArray, p.srcPitch, p.srcHeight};
  const DriverEnd to{p.dstXInBytes, p.dstY,      p.dstZ,     p.dstLOD,   p.dstMemoryType,
                     p.dstHost,     p.dstDevice, p.dstArray, p.dstPitch, p.dstHeight};
  const auto element = element_bytes(to, from);
  if (!element) return tl::unexpected(element.error());
  if (p.WidthInBytes % *element != 0) return refuse(cudaErrorInvalidValue);
  const auto source = runtime_end(from, p, *element), target = runtime_end(to, p, *element);
  if (!source) return tl::unexpected(source.error());
  if (!target) return tl::unexpected(target.error());
  return cudaMemcpy3DParms{source->array,
                           source->at,
                           source->memory,
                           target->array,
                           target->at,
                           target->memory,
                           {p.WidthInBytes / *element, p.Height, p.Depth},
                           cudaMemcpyDefault};
}

CUDA_MEMCPY3D box_of_rows(const CUDA_MEMCPY2D& p) {
  CUDA_MEMCPY3D box{};
  box.srcXInBytes = p.srcXInBytes, box.srcY = p.srcY;
  box.srcMemoryType = p.srcMemoryType;
  box.srcHost = p.srcHost, box.srcDevice = p.srcDevice, box.srcArray = p.srcArray;
  box.srcPitch = p.srcPitch;
  box.dstXInBytes = p.dstXInBytes, box.dstY = p.dstY;
  box.dstMemoryType = p.dstMemoryType;
  box.dstHost = p.dstHost, box.dstDevice = p.dstDevice, box.dstArray = p.dstArray;
  box.dstPitch = p.dstPitch;
  box.WidthInBytes = p.WidthInBytes, box.Height = p.Height, box.Depth = 1;
  return box;
}

Answer<CUDA_MEMCPY3D> box_of(const cudaMemcpy3DParms& p) {
  const cudaArray_t counts = p.dstArray ? p.dstArray : p.srcArray;
  const auto element = counts ? element_bytes(counts) : Answer<size_t>(1);
  if (!element) return tl::unexpected(element.error());
  const DriverEnd from = driver_end({p.srcArray, p.srcPos, p.srcPtr}, *element);
  const DriverEnd to = driver_end({p.dstArray, p.dstPos, p.dstPtr}, *element);
  return CUDA_MEMCPY3D{from.x,
                       from.y,
                       from.z,
                       from.lod,
                       from.type,
                       from.host,
                       from.device,
                       from.array,
                       nullptr,
                       from.pitch,
                       from.height,
                       to.x,
                       to.y,
                       to.z,
                       to.lod,
                       to.type,
                       to.host,
                       to.device,
                       to.array,
                       nullptr,
                       to.pitch,
                       to.height,
                       p.extent.width * *element,
                       p.extent.height,
                       p.extent.depth};
}

}  // namespace heddle::client
