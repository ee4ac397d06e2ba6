// cuMemset and its family: elements of one, two and four bytes.

#include "client/api/submit.h"
#include "client/driver/contexts.h"
#include "client/driver/functions.h"

namespace heddle::client {
namespace {

template <class Element>
CUresult fill_rows(CUdeviceptr address, size_t pitch, Element value, size_t width, size_t height, cudaStream_t stream) {
  return in_stream(stream, [&]() -> Done {
    auto resolved = enter_stream(stream);
    if (!resolved) return tl::unexpected(std::move(resolved).error());
    HEDDLE_ANSWER(resolved->device->failure());
    if (width == 0 || height == 0) return {};
    const cudaMemsetParams p{reinterpret_cast<void*>(address), pitch, value, sizeof(Element), width, height};
    const auto work = fill_work(&p);
    if (!work) return tl::unexpected(work.error());
    return submit_fill(*resolved, std::get<FillWork>(*work).fill);
  });
}

template <class Element>
struct Fills {
  static CUresult fill(CUdeviceptr address, Element value, size_t count) {
    return fill_rows(address, 0, value, count, 1, nullptr);
  }
  static CUresult fill_async(CUdeviceptr address, Element value, size_t count, cudaStream_t stream) {
    return fill_rows(address, 0, value, count, 1, stream);
  }
  static CUresult fill_2d(CUdeviceptr address, size_t pitch, Element value, size_t width, size_t height) {
    return fill_rows(address, pitch, value, width, height, nullptr);
  }
  static CUresult fill_2d_async(CUdeviceptr address, size_t pitch, Element value, size_t width, size_t height,
                                cudaStream_t stream) {
    return fill_rows(address, pitch, value, width, height, stream);
  }
};
using Bytes8 = Fills<unsigned char>;
using Bytes16 = Fills<unsigned short>;
using Bytes32 = Fills<unsigned>;

}  // namespace

std::span<const DriverFunction> driver_fill_functions() {
  static const DriverFunction rows[] = {
      HEDDLE_DRIVER_PTDS(cuMemsetD8_v2, 3020, Bytes8::fill),
      HEDDLE_DRIVER_PTDS(cuMemsetD16_v2, 3020, Bytes16::fill),
      HEDDLE_DRIVER_PTDS(cuMemsetD32_v2, 3020, Bytes32::fill),
      HEDDLE_DRIVER_PTSZ(cuMemsetD8Async, 3020, Bytes8::fill_async),
      HEDDLE_DRIVER_PTSZ(cuMemsetD16Async, 3020, Bytes16::fill_async),
      HEDDLE_DRIVER_PTSZ(cuMemsetD32Async, 3020, Bytes32::fill_async),
      HEDDLE_DRIVER_PTDS(cuMemsetD2D8_v2, 3020, Bytes8::fill_2d),
      HEDDLE_DRIVER_PTDS(cuMemsetD2D16_v2, 3020, Bytes16::fill_2d),
      HEDDLE_DRIVER_PTDS(cuMemsetD2D32_v2, 3020, Bytes32::fill_2d),
      HEDDLE_DRIVER_PTSZ(cuMemsetD2D8Async, 3020, Bytes8::fill_2d_async),
      HEDDLE_DRIVER_PTSZ(cuMemsetD2D16Async, 3020, Bytes16::fill_2d_async),
      HEDDLE_DRIVER_PTSZ(cuMemsetD2D32Async, 3020, Bytes32::fill_2d_async),
  };
  return rows;
}

}  // namespace heddle::client
