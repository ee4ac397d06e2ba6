// Copies, of every shape.

#include "client/driver/contexts.h"
#include "client/driver/copy_parameters.h"
#include "client/driver/functions.h"
#include "client/driver/runtime_functions.h"

namespace heddle::client {
namespace {

void* pointer_to(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);
}

// --- rows of bytes ---
template <cudaMemcpyKind kKind>
CUresult copy(void* to, const void* from, size_t bytes) {
  return in_context([&] { return cudaMemcpy(to, from, bytes, kKind); });
}

template <cudaMemcpyKind kKind>
CUresult copy_async(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  return in_context([&] { return cudaMemcpyAsync(to, from, bytes, kKind, stream); });
}

// Addresses say whose memory it is; the contexts have to be some.
Done check_contexts(CUcontext to, CUcontext from) {
  for (const CUcontext handle : {to, from}) {
    if (auto context = find_context(handle); !context) return tl::unexpected(std::move(context).error());
  }
  return {};
}

CUresult copy_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes) {
  return in_context([&]() -> Done {
    HEDDLE_ANSWER(check_contexts(to_context, from_context));
    const LastErrorKept kept;
    const cudaError_t code = cudaMemcpy(pointer_to(to), pointer_to(from), bytes, cudaMemcpyDefault);
    return code == cudaSuccess ? Done{} : refuse(code);
  });
}

CUresult copy_peer_async(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                         cudaStream_t stream) {
  return in_context([&]() -> Done {
    HEDDLE_ANSWER(check_contexts(to_context, from_context));
    const LastErrorKept kept;
    const cudaError_t code = cudaMemcpyAsync(pointer_to(to), pointer_to(from), bytes, cudaMemcpyDefault, stream);
    return code == cudaSuccess ? Done{} : refuse(code);
  });
}

// --- boxes ---
// Runs `copy(&p)` on the runtime's words for the box.
template <class Copy>
CUresult copy_box(const CUDA_MEMCPY3D& box, Copy&& copy) {
  return in_context([&]() -> Done {
    const auto p = box_of(box);
    if (!p) return tl::unexpected(p.error());
    const LastErrorKept kept;
    const cudaError_t code = copy(&*p);
    return code == cudaSuccess ? Done{} : refuse(code);
  });
}

CUresult copy_3d(const CUDA_MEMCPY3D* p) {
  return p ? copy_box(*p, cudaMemcpy3D) : CUDA_ERROR_INVALID_VALUE;
}

CUresult copy_3d_async(const CUDA_MEMCPY3D* p, cudaStream_t stream) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  return copy_box(*p, [&](const cudaMemcpy3DParms* box) { return cudaMemcpy3DAsync(box, stream); });
}

CUresult copy_2d(const CUDA_MEMCPY2D* p) {
  return p ? copy_box(box_of_rows(*p), cudaMemcpy3D) : CUDA_ERROR_INVALID_VALUE;
}

CUresult copy_2d_async(const CUDA_MEMCPY2D* p, cudaStream_t stream) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  return copy_box(box_of_rows(*p), [&](const cudaMemcpy3DParms* box) { return cudaMemcpy3DAsync(box, stream); });
}

// --- one-dimensional arrays, by bytes ---
CUresult into_array(cudaArray_t to, size_t offset, const void* from, size_t bytes) {
  return in_context([&] { return cudaMemcpyToArray(to, offset, 0, from, bytes, cudaMemcpyDefault); });
}

CUresult into_array_async(cudaArray_t to, size_t offset, const void* from, size_t bytes, cudaStream_t stream) {
  return in_context([&] { return cudaMemcpyToArrayAsync(to, offset, 0, from, bytes, cudaMemcpyDefault, stream); });
}

CUresult out_of_array(void* to, cudaArray_t from, size_t offset, size_t bytes) {
  return in_context([&] { return cudaMemcpyFromArray(to, from, offset, 0, bytes, cudaMemcpyDefault); });
}

CUresult out_of_array_async(void* to, cudaArray_t from, size_t offset, size_t bytes, cudaStream_t stream) {
  return in_context([&] { return cudaMemcpyFromArrayAsync(to, from, offset, 0, bytes, cudaMemcpyDefault, stream); });
}

CUresult between_arrays(cudaArray_t to, size_t to_offset, cudaArray_t from, size_t from_offset, size_t bytes) {
  return in_context(
      [&] { return cudaMemcpyArrayToArray(to, to_offset, 0, from, from_offset, 0, bytes, cudaMemcpyDefault); });
}

}  // namespace

std::span<const DriverFunction> driver_copy_functions() {
  static const DriverFunction rows[] = {
      HEDDLE_DRIVER_PTDS(cuMemcpy, 4000, copy<cudaMemcpyDefault>),
      HEDDLE_DRIVER_PTSZ(cuMemcpyAsync, 4000, copy_async<cudaMemcpyDefault>),
      HEDDLE_DRIVER_PTDS(cuMemcpyHtoD_v2, 3020, copy<cudaMemcpyHostToDevice>),
      HEDDLE_DRIVER_PTSZ(cuMemcpyHtoDAsync_v2, 3020, copy_async<cudaMemcpyHostToDevice>),
      HEDDLE_DRIVER_PTDS(cuMemcpyDtoH_v2, 3020, copy<cudaMemcpyDeviceToHost>),
      HEDDLE_DRIVER_PTSZ(cuMemcpyDtoHAsync_v2, 3020, copy_async<cudaMemcpyDeviceToHost>),
      HEDDLE_DRIVER_PTDS(cuMemcpyDtoD_v2, 3020, copy<cudaMemcpyDeviceToDevice>),
      HEDDLE_DRIVER_PTSZ(cuMemcpyDtoDAsync_v2, 3020, copy_async<cudaMemcpyDeviceToDevice>),
      HEDDLE_DRIVER_PTDS(cuMemcpyPeer, 4000, copy_peer),
      HEDDLE_DRIVER_PTSZ(cuMemcpyPeerAsync, 4000, copy_peer_async),
      HEDDLE_DRIVER_PTDS(cuMemcpy2D_v2, 3020, copy_2d),
      HEDDLE_DRIVER_PTDS(cuMemcpy2DUnaligned_v2, 3020, copy_2d),
      HEDDLE_DRIVER_PTSZ(cuMemcpy2DAsync_v2, 3020, copy_2d_async),
      HEDDLE_DRIVER_PTDS(cuMemcpy3D_v2, 3020, copy_3d),
      HEDDLE_DRIVER_PTSZ(cuMemcpy3DAsync_v2, 3020, copy_3d_async),
      HEDDLE_DRIVER_PTDS(cuMemcpy3DPeer, 4000, copy_3d),
      HEDDLE_DRIVER_PTSZ(cuMemcpy3DPeerAsync, 4000, copy_3d_async),
      HEDDLE_DRIVER_PTDS(cuMemcpyHtoA_v2, 3020, into_array),
      HEDDLE_DRIVER_PTSZ(cuMemcpyHtoAAsync_v2, 3020, into_array_async),
      HEDDLE_DRIVER_PTDS(cuMemcpyDtoA_v2, 3020, into_array),
      HEDDLE_DRIVER_PTDS(cuMemcpyAtoH_v2, 3020, out_of_array),
      HEDDLE_DRIVER_PTSZ(cuMemcpyAtoHAsync_v2, 3020, out_of_array_async),
      HEDDLE_DRIVER_PTDS(cuMemcpyAtoD_v2, 3020, out_of_array),
      HEDDLE_DRIVER_PTDS(cuMemcpyAtoA_v2, 3020, between_arrays),
  };
  return rows;
}

}  // namespace heddle::client
