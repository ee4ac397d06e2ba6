#include "device/cuda/transfer.h"

#include <cstring>

namespace heddle::cuda {
namespace {

using device::CopyDirection;
using device::CopyEnd;
using device::CopyShape;
using device::FillShape;

void* pointer(uint64_t address) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(address));
}

uint64_t row_address(const CopyEnd& end, uint64_t row, uint64_t slice) {
  return end.address + row * end.pitch + slice * end.slice;
}

CUresult enqueue_row(const Driver& driver, CUstream stream, CopyDirection direction, uint64_t to, uint64_t from,
                     uint64_t bytes) {
  switch (direction) {
    case CopyDirection::kToDevice:
      return driver.cuMemcpyHtoDAsync(to, pointer(from), bytes, stream);
    case CopyDirection::kToHost:
      return driver.cuMemcpyDtoHAsync(pointer(to), from, bytes, stream);
    default:
      return driver.cuMemcpyDtoDAsync(to, from, bytes, stream);
  }
}

CUresult enqueue_plane(const Driver& driver, CUstream stream, CopyDirection direction, uint64_t to, uint64_t from,
                       const CopyShape& shape) {
  CUDA_MEMCPY2D plane{};
  const bool from_host = direction == CopyDirection::kToDevice, to_host = direction == CopyDirection::kToHost;
  plane.srcMemoryType = from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  plane.dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  if (from_host) {
    plane.srcHost = pointer(from);
  } else {
    plane.srcDevice = from;
  }
  if (to_host) {
    plane.dstHost = pointer(to);
  } else {
    plane.dstDevice = to;
  }
  plane.srcPitch = shape.from.pitch;
  plane.dstPitch = shape.to.pitch;
  plane.WidthInBytes = shape.width;
  plane.Height = shape.height;
  return driver.cuMemcpy2DAsync(&plane, stream);
}

CUresult fill_row(const Driver& driver, CUstream stream, uint64_t at, uint64_t bytes, const FillShape& shape) {
  if (shape.element_bytes == 4) return driver.cuMemsetD32Async(at, shape.value, bytes / 4, stream);
  if (shape.element_bytes == 2)
    return driver.cuMemsetD16Async(at, static_cast<unsigned short>(shape.value), bytes / 2, stream);
  return driver.cuMemsetD8Async(at, static_cast<unsigned char>(shape.value), bytes, stream);
}

CUresult fill_plane(const Driver& driver, CUstream stream, uint64_t at, const FillShape& shape) {
  const uint64_t pitch = shape.to.pitch;
  if (shape.element_bytes == 4)
    return driver.cuMemsetD2D32Async(at, pitch, shape.value, shape.width / 4, shape.height, stream);
  if (shape.element_bytes == 2)
    return driver.cuMemsetD2D16Async(at, pitch, static_cast<unsigned short>(shape.value), shape.width / 2, shape.height,
                                     stream);
  return driver.cuMemsetD2D8Async(at, pitch, static_cast<unsigned char>(shape.value), shape.width, shape.height,
                                  stream);
}

}  // namespace

CopyShape merged(CopyShape shape) {
  const auto joined = [&](const CopyEnd& end) { return shape.height == 1 || end.pitch == shape.width; };
  if (joined(shape.to) && joined(shape.from)) {
    shape.width *= shape.height;
    shape.height = 1;
    if (shape.depth > 1 && shape.to.slice == shape.width && shape.from.slice == shape.width) {
      shape.width *= shape.depth;
      shape.depth = 1;
    }
  }
  return shape;
}

Result<uint64_t> payload(const char* what, uint64_t width, uint64_t height, uint64_t depth) {
  uint64_t bytes;
  if (!__builtin_mul_overflow(width, height, &bytes) && !__builtin_mul_overflow(bytes, depth, &bytes)) return bytes;
  return fail(ErrorCode::kInvalidArgument, "%s of %llu x %llu x %llu bytes: more than there are addresses", what,
              static_cast<unsigned long long>(width), static_cast<unsigned long long>(height),
              static_cast<unsigned long long>(depth));
}

uint64_t extent(const CopyEnd& end, uint64_t width, uint64_t height, uint64_t depth) {
  return (depth - 1) * end.slice + (height - 1) * end.pitch + width;
}

std::optional<std::string> check_rows(const char* what, const CopyEnd& end, uint64_t width, uint64_t height,
                                      uint64_t depth, const AddressCheck& accessible) {
  // Mostly all of it is mapped in one piece, margins included.
  if (accessible(end.address, extent(end, width, height, depth))) return std::nullopt;
  for (uint64_t slice = 0; slice < depth; ++slice) {
    for (uint64_t row = 0; row < height; ++row) {
      const uint64_t address = row_address(end, row, slice);
      if (accessible(address, width)) continue;
      return stringf("%s of %llu bytes at 0x%llx: not all of it is mapped", what,
                     static_cast<unsigned long long>(width), static_cast<unsigned long long>(address));
    }
  }
  return std::nullopt;
}

CUresult enqueue_copy(const Driver& driver, CUstream stream, CopyDirection direction, const CopyShape& given) {
  const CopyShape shape = merged(given);
  for (uint64_t slice = 0; slice < shape.depth; ++slice) {
    const uint64_t to = row_address(shape.to, 0, slice), from = row_address(shape.from, 0, slice);
    const CUresult result = shape.height == 1 ? enqueue_row(driver, stream, direction, to, from, shape.width)
                                              : enqueue_plane(driver, stream, direction, to, from, shape);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult enqueue_fill(const Driver& driver, CUstream stream, const FillShape& shape) {
  const bool whole = shape.height == 1 || shape.to.pitch == shape.width;
  for (uint64_t slice = 0; slice < shape.depth; ++slice) {
    const uint64_t at = row_address(shape.to, 0, slice);
    const CUresult result =
        whole ? fill_row(driver, stream, at, shape.width * shape.height, shape) : fill_plane(driver, stream, at, shape);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

void copy_on_host(const CopyShape& given) {
  const CopyShape shape = merged(given);
  for (uint64_t slice = 0; slice < shape.depth; ++slice) {
    for (uint64_t row = 0; row < shape.height; ++row)
      std::memmove(pointer(row_address(shape.to, row, slice)), pointer(row_address(shape.from, row, slice)),
                   shape.width);
  }
}

}  // namespace heddle::cuda
