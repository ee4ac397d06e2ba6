// cudaMemcpy and its family: 1D, 2D, 3D, between devices.

#include "client/copy.h"

namespace heddle::client {
namespace {

// CUDA takes the direction from the pointers too; a stated one must be possible.
Done check_kind(cudaMemcpyKind kind, const CopyPlace& to, const CopyPlace& from) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return to.on_device() || from.on_device() ? refuse(cudaErrorInvalidValue) : Done{};
    case cudaMemcpyHostToDevice:
      return to.in_window() ? Done{} : refuse(cudaErrorInvalidValue);
    case cudaMemcpyDeviceToHost:
      return from.in_window() ? Done{} : refuse(cudaErrorInvalidValue);
    case cudaMemcpyDeviceToDevice:
      return to.in_window() && from.in_window() ? Done{} : refuse(cudaErrorInvalidValue);
    case cudaMemcpyDefault:
      return {};
  }
  return refuse(cudaErrorInvalidMemcpyDirection);
}

struct Ends {
  const void* to;
  uint64_t to_pitch, to_slice;
  const void* from;
  uint64_t from_pitch, from_slice;
};

Done copy_between(const Ends& ends, const CopyShape& shape, cudaMemcpyKind kind, cudaStream_t stream, CopyMode mode) {
  auto resolved = resolve_stream(stream);
  if (!resolved) return tl::unexpected(std::move(resolved).error());
  HEDDLE_ANSWER(resolved->device->failure());
  if (shape.empty()) return {};
  if (!ends.to || !ends.from) return refuse(cudaErrorInvalidValue);
  auto to = place_of(ends.to, ends.to_pitch, ends.to_slice);
  if (!to) return tl::unexpected(std::move(to).error());
  auto from = place_of(ends.from, ends.from_pitch, ends.from_slice);
  if (!from) return tl::unexpected(std::move(from).error());
  HEDDLE_ANSWER(check_kind(kind, *to, *from));
  return copy(*resolved, *to, *from, shape, mode);
}

Done copy_linear(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream, CopyMode mode) {
  return copy_between({to, bytes, bytes, from, bytes, bytes}, {bytes, 1, 1}, kind, stream, mode);
}

Done copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
               cudaMemcpyKind kind, cudaStream_t stream, CopyMode mode) {
  if (height > 1 && (width > to_pitch || width > from_pitch)) return refuse(cudaErrorInvalidPitchValue);
  return copy_between({to, to_pitch, to_pitch * height, from, from_pitch, from_pitch * height}, {width, height, 1},
                      kind, stream, mode);
}

const void* box_start(const cudaPitchedPtr& base, const cudaPos& at) {
  return static_cast<const char*>(base.ptr) + (at.z * base.ysize + at.y) * base.pitch + at.x;
}

// Without arrays, x and width count bytes.
template <class Parameters>
Done copy_box(const Parameters* p, cudaMemcpyKind kind, cudaStream_t stream, CopyMode mode) {
  if (!p) return refuse(cudaErrorInvalidValue);
  if (p->srcArray || p->dstArray) return refuse(cudaErrorNotSupported, "copies of CUDA arrays are not supported");
  const auto& [width, height, depth] = p->extent;
  if (width == 0 || height == 0 || depth == 0) return {};
  if (!p->srcPtr.ptr || !p->dstPtr.ptr) return refuse(cudaErrorInvalidValue);
  if (width + p->srcPos.x > p->srcPtr.pitch || width + p->dstPos.x > p->dstPtr.pitch)
    return refuse(cudaErrorInvalidPitchValue);
  return copy_between({box_start(p->dstPtr, p->dstPos), p->dstPtr.pitch, p->dstPtr.pitch * p->dstPtr.ysize,
                       box_start(p->srcPtr, p->srcPos), p->srcPtr.pitch, p->srcPtr.pitch * p->srcPtr.ysize},
                      {width, height, depth}, kind, stream, mode);
}

// The devices are in the addresses already.
Done check_devices(int to, int from) {
  for (int device : {to, from}) {
    if (auto found = runtime().device(device); !found) return tl::unexpected(std::move(found).error());
  }
  return {};
}

}  // namespace

HEDDLE_EXPORT cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return answer([&] { return copy_linear(to, from, bytes, kind, nullptr, CopyMode::kBlocking); });
}

HEDDLE_EXPORT cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                          cudaStream_t stream) {
  return answer([&] { return copy_linear(to, from, bytes, kind, stream, CopyMode::kAsync); });
}

HEDDLE_EXPORT cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                       size_t height, cudaMemcpyKind kind) {
  return answer(
      [&] { return copy_rows(to, to_pitch, from, from_pitch, width, height, kind, nullptr, CopyMode::kBlocking); });
}

HEDDLE_EXPORT cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                            size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return answer(
      [&] { return copy_rows(to, to_pitch, from, from_pitch, width, height, kind, stream, CopyMode::kAsync); });
}

HEDDLE_EXPORT cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) {
  return answer([&] { return copy_box(p, p ? p->kind : cudaMemcpyDefault, nullptr, CopyMode::kBlocking); });
}

HEDDLE_EXPORT cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t stream) {
  return answer([&] { return copy_box(p, p ? p->kind : cudaMemcpyDefault, stream, CopyMode::kAsync); });
}

HEDDLE_EXPORT cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes) {
  return answer([&]() -> Done {
    HEDDLE_ANSWER(check_devices(to_device, from_device));
    return copy_linear(to, from, bytes, cudaMemcpyDeviceToDevice, nullptr, CopyMode::kBlocking);
  });
}

HEDDLE_EXPORT cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                              cudaStream_t stream) {
  return answer([&]() -> Done {
    HEDDLE_ANSWER(check_devices(to_device, from_device));
    return copy_linear(to, from, bytes, cudaMemcpyDeviceToDevice, stream, CopyMode::kAsync);
  });
}

HEDDLE_EXPORT cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* p) {
  return answer([&] { return copy_box(p, cudaMemcpyDefault, nullptr, CopyMode::kBlocking); });
}

HEDDLE_EXPORT cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* p, cudaStream_t stream) {
  return answer([&] { return copy_box(p, cudaMemcpyDefault, stream, CopyMode::kAsync); });
}

}  // namespace heddle::client
