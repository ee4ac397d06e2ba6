// Copies to and from CUDA arrays. cudaMemcpy3D, which takes arrays too, is in memcpy_api.cc.

#include "client/api/submit.h"
#include "client/copy/arrays.h"

namespace heddle::client {
namespace {

// One end of a copy that may be an array: a box of it, or memory.
struct Box {
  cudaArray_t array;
  size_t x, y;  // bytes, rows
};

Answer<CopyPlace> rows_of(const Box& box, const CopyShape& shape) {
  auto array = arrays().find(box.array);
  if (!array) return tl::unexpected(std::move(array).error());
  return place_in(*array, {box.x, box.y, 0}, shape);
}

// `count` bytes from (x, y) on, row after row: one piece, since rows have no gaps between them.
Answer<CopyPlace> run_of(const Box& box, size_t count) {
  auto array = arrays().find(box.array);
  if (!array) return tl::unexpected(std::move(array).error());
  auto place = place_in(*array, {box.x, box.y, 0}, {0, 0, 0});
  if (!place) return place;
  const Texture& layout = array->layout;
  if (count > layout.address + layout.slice - place->address) return refuse(cudaErrorInvalidValue);
  place->pitch = place->slice = count;
  return place;
}

Done join(const Answer<CopyPlace>& to, const Answer<CopyPlace>& from, const CopyShape& shape, cudaMemcpyKind kind,
          cudaStream_t stream, CopyMode mode) {
  if (!to) return tl::unexpected(to.error());
  if (!from) return tl::unexpected(from.error());
  auto resolved = enter_stream(stream);
  if (!resolved) return tl::unexpected(std::move(resolved).error());
  HEDDLE_ANSWER(resolved->device->failure());
  auto plan = plan_places(*to, *from, shape, kind);
  if (!plan) return tl::unexpected(std::move(plan).error());
  return submit_copy(*resolved, *plan, mode);
}

Answer<CopyPlace> memory_at(const void* pointer, size_t pitch, size_t width, size_t height) {
  if (height > 1 && pitch < width) return refuse(cudaErrorInvalidPitchValue);
  if (!pointer && width > 0 && height > 0) return refuse(cudaErrorInvalidValue);
  return place_of(pointer, pitch, pitch * height);
}

Done rows_in(const Box& to, const void* from, size_t pitch, size_t width, size_t height, cudaMemcpyKind kind,
             cudaStream_t stream, CopyMode mode) {
  const CopyShape shape{width, height, 1};
  return join(rows_of(to, shape), memory_at(from, pitch, width, height), shape, kind, stream, mode);
}

Done rows_out(void* to, size_t pitch, const Box& from, size_t width, size_t height, cudaMemcpyKind kind,
              cudaStream_t stream, CopyMode mode) {
  const CopyShape shape{width, height, 1};
  return join(memory_at(to, pitch, width, height), rows_of(from, shape), shape, kind, stream, mode);
}

Done run_in(const Box& to, const void* from, size_t count, cudaMemcpyKind kind, cudaStream_t stream, CopyMode mode) {
  return join(run_of(to, count), memory_at(from, count, count, 1), {count, 1, 1}, kind, stream, mode);
}

Done run_out(void* to, const Box& from, size_t count, cudaMemcpyKind kind, cudaStream_t stream, CopyMode mode) {
  return join(memory_at(to, count, count, 1), run_of(from, count), {count, 1, 1}, kind, stream, mode);
}

}  // namespace

HEDDLE_EXPORT cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch,
                                              size_t width, size_t height, cudaMemcpyKind kind) {
  return answer([&] { return rows_in({to, x, y}, from, pitch, width, height, kind, nullptr, CopyMode::kBlocking); });
}

HEDDLE_EXPORT cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch,
                                                   size_t width, size_t height, cudaMemcpyKind kind,
                                                   cudaStream_t stream) {
  return answer([&] { return rows_in({to, x, y}, from, pitch, width, height, kind, stream, CopyMode::kAsync); });
}

HEDDLE_EXPORT cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_t from, size_t x, size_t y,
                                                size_t width, size_t height, cudaMemcpyKind kind) {
  return answer([&] { return rows_out(to, pitch, {from, x, y}, width, height, kind, nullptr, CopyMode::kBlocking); });
}

HEDDLE_EXPORT cudaError_t cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, cudaArray_t from, size_t x, size_t y,
                                                     size_t width, size_t height, cudaMemcpyKind kind,
                                                     cudaStream_t stream) {
  return answer([&] { return rows_out(to, pitch, {from, x, y}, width, height, kind, stream, CopyMode::kAsync); });
}

HEDDLE_EXPORT cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_t from,
                                                   size_t from_x, size_t from_y, size_t width, size_t height,
                                                   cudaMemcpyKind kind) {
  return answer([&] {
    const CopyShape shape{width, height, 1};
    return join(rows_of({to, to_x, to_y}, shape), rows_of({from, from_x, from_y}, shape), shape, kind, nullptr,
                CopyMode::kBlocking);
  });
}

HEDDLE_EXPORT cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t count,
                                            cudaMemcpyKind kind) {
  return answer([&] { return run_in({to, x, y}, from, count, kind, nullptr, CopyMode::kBlocking); });
}

HEDDLE_EXPORT cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from, size_t count,
                                                 cudaMemcpyKind kind, cudaStream_t stream) {
  return answer([&] { return run_in({to, x, y}, from, count, kind, stream, CopyMode::kAsync); });
}

HEDDLE_EXPORT cudaError_t cudaMemcpyFromArray(void* to, cudaArray_t from, size_t x, size_t y, size_t count,
                                              cudaMemcpyKind kind) {
  return answer([&] { return run_out(to, {from, x, y}, count, kind, nullptr, CopyMode::kBlocking); });
}

HEDDLE_EXPORT cudaError_t cudaMemcpyFromArrayAsync(void* to, cudaArray_t from, size_t x, size_t y, size_t count,
                                                   cudaMemcpyKind kind, cudaStream_t stream) {
  return answer([&] { return run_out(to, {from, x, y}, count, kind, stream, CopyMode::kAsync); });
}

HEDDLE_EXPORT cudaError_t cudaMemcpyArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_t from,
                                                 size_t from_x, size_t from_y, size_t count, cudaMemcpyKind kind) {
  return answer([&] {
    return join(run_of({to, to_x, to_y}, count), run_of({from, from_x, from_y}, count), {count, 1, 1}, kind, nullptr,
                CopyMode::kBlocking);
  });
}

}  // namespace heddle::client
