// cudaMemset and its family.

#include "client/api/submit.h"

namespace heddle::client {
namespace {

Done fill(void* pointer, uint64_t pitch, uint64_t slice, int value, const CopyShape& shape, cudaStream_t stream) {
  auto resolved = enter_stream(stream);
  if (!resolved) return tl::unexpected(std::move(resolved).error());
  HEDDLE_ANSWER(resolved->device->failure());
  if (shape.empty()) return {};
  auto place = place_of(pointer, pitch, slice);
  if (!place) return tl::unexpected(std::move(place).error());
  return submit_fill(*resolved, {*place, shape, static_cast<uint8_t>(value), 1});
}

Done fill_rows(void* pointer, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  if (height > 1 && width > pitch) return refuse(cudaErrorInvalidPitchValue);
  return fill(pointer, pitch, pitch * height, value, {width, height, 1}, stream);
}

Done fill_box(const cudaPitchedPtr& pointer, int value, const cudaExtent& extent, cudaStream_t stream) {
  if (extent.width > pointer.pitch && (extent.height > 1 || extent.depth > 1))
    return refuse(cudaErrorInvalidPitchValue);
  return fill(pointer.ptr, pointer.pitch, pointer.pitch * pointer.ysize, value,
              {extent.width, extent.height, extent.depth}, stream);
}

}  // namespace

HEDDLE_EXPORT cudaError_t cudaMemset(void* pointer, int value, size_t bytes) {
  return answer([&] { return fill(pointer, bytes, bytes, value, {bytes, 1, 1}, nullptr); });
}

HEDDLE_EXPORT cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t stream) {
  return answer([&] { return fill(pointer, bytes, bytes, value, {bytes, 1, 1}, stream); });
}

HEDDLE_EXPORT cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height) {
  return answer([&] { return fill_rows(pointer, pitch, value, width, height, nullptr); });
}

HEDDLE_EXPORT cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int value, size_t width, size_t height,
                                            cudaStream_t stream) {
  return answer([&] { return fill_rows(pointer, pitch, value, width, height, stream); });
}

HEDDLE_EXPORT cudaError_t cudaMemset3D(cudaPitchedPtr pointer, int value, cudaExtent extent) {
  return answer([&] { return fill_box(pointer, value, extent, nullptr); });
}

HEDDLE_EXPORT cudaError_t cudaMemset3DAsync(cudaPitchedPtr pointer, int value, cudaExtent extent, cudaStream_t stream) {
  return answer([&] { return fill_box(pointer, value, extent, stream); });
}

}  // namespace heddle::client
