// cudaMemcpy and its family: 1D, 2D, 3D, between devices.

#include "client/api/submit.h"

namespace heddle::client {
namespace {

// `plan()` is called once the device is known to be well.
template <class Plan>
Done run(cudaStream_t stream, CopyMode mode, Plan&& plan) {
  auto resolved = enter_stream(stream);
  if (!resolved) return tl::unexpected(std::move(resolved).error());
  HEDDLE_ANSWER(resolved->device->failure());
  Answer<CopyPlan> planned = plan();
  if (!planned) return tl::unexpected(std::move(planned).error());
  return submit_copy(*resolved, *planned, mode);
}

Done copy_linear(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream, CopyMode mode) {
  return run(stream, mode, [&] { return plan_linear(to, from, bytes, kind); });
}

Done copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
               cudaMemcpyKind kind, cudaStream_t stream, CopyMode mode) {
  return run(stream, mode, [&] { return plan_rows(to, to_pitch, from, from_pitch, width, height, kind); });
}

template <class Parameters>
Done copy_box(const Parameters* p, cudaStream_t stream, CopyMode mode) {
  if (!p) return refuse(cudaErrorInvalidValue);
  return run(stream, mode, [&] { return plan_box(*p); });
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
  return answer([&] { return copy_box(p, nullptr, CopyMode::kBlocking); });
}

HEDDLE_EXPORT cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t stream) {
  return answer([&] { return copy_box(p, stream, CopyMode::kAsync); });
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
  return answer([&] { return copy_box(p, nullptr, CopyMode::kBlocking); });
}

HEDDLE_EXPORT cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* p, cudaStream_t stream) {
  return answer([&] { return copy_box(p, stream, CopyMode::kAsync); });
}

}  // namespace heddle::client
