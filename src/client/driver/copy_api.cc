// Copies, of every shape.

#include <algorithm>

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
  return in_stream(stream, [&] { return cudaMemcpyAsync(to, from, bytes, kKind, stream); });
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
  return in_stream(stream, [&]() -> Done {
    HEDDLE_ANSWER(check_contexts(to_context, from_context));
    const LastErrorKept kept;
    const cudaError_t code = cudaMemcpyAsync(pointer_to(to), pointer_to(from), bytes, cudaMemcpyDefault, stream);
    return code == cudaSuccess ? Done{} : refuse(code);
  });
}

// --- batches: one copy behind the other in the stream ---
// attributes[i] are those of the copies from first[i] on. Hints of locations are passed over.
bool reads_during_call(const CUmemcpyAttributes* attributes, size_t count) {
  constexpr int kDuringCall = 2;  // CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL
  return std::any_of(attributes, attributes + count,
                     [](const CUmemcpyAttributes& each) { return each.srcAccessOrder == kDuringCall; });
}

CUresult copy_batch(const CUdeviceptr* to, const CUdeviceptr* from, const size_t* sizes, size_t count,
                    const CUmemcpyAttributes* attributes, const size_t* first, size_t attribute_count,
                    cudaStream_t stream) {
  if (!to || !from || !sizes || count == 0) return CUDA_ERROR_INVALID_VALUE;
  if (!attributes || !first || attribute_count == 0 || attribute_count > count || first[0] != 0)
    return CUDA_ERROR_INVALID_VALUE;
  return in_stream(stream, [&] {
    for (size_t i = 0; i < count; ++i) {
      const cudaError_t code =
          cudaMemcpyAsync(pointer_to(to[i]), pointer_to(from[i]), sizes[i], cudaMemcpyDefault, stream);
      if (code != cudaSuccess) return code;
    }
    return reads_during_call(attributes, attribute_count) ? cudaStreamSynchronize(stream) : cudaSuccess;
  });
}

// CUDA 12.8's form, which reports the copy that failed: SIZE_MAX says that it is not known.
CUresult copy_batch_v1(const CUdeviceptr* to, const CUdeviceptr* from, const size_t* sizes, size_t count,
                       const CUmemcpyAttributes* attributes, const size_t* first, size_t attribute_count,
                       size_t* failed, cudaStream_t stream) {
  if (failed) *failed = SIZE_MAX;
  return copy_batch(to, from, sizes, count, attributes, first, attribute_count, stream);
}

// --- boxes ---
// Runs `copy(&p)` on the runtime's words for the box.
template <class Copy>
CUresult copy_box(const CUDA_MEMCPY3D& box, cudaStream_t stream, Copy&& copy) {
  return in_stream(stream, [&]() -> Done {
    const auto p = box_of(box);
    if (!p) return tl::unexpected(p.error());
    const LastErrorKept kept;
    const cudaError_t code = copy(&*p);
    return code == cudaSuccess ? Done{} : refuse(code);
  });
}

CUresult copy_3d(const CUDA_MEMCPY3D* p) {
  return p ? copy_box(*p, nullptr, cudaMemcpy3D) : CUDA_ERROR_INVALID_VALUE;
}

CUresult copy_3d_async(const CUDA_MEMCPY3D* p, cudaStream_t stream) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  return copy_box(*p, stream, [&](const cudaMemcpy3DParms* box) { return cudaMemcpy3DAsync(box, stream); });
}

CUresult copy_2d(const CUDA_MEMCPY2D* p) {
  return p ? copy_box(box_of_rows(*p), nullptr, cudaMemcpy3D) : CUDA_ERROR_INVALID_VALUE;
}

CUresult copy_2d_async(const CUDA_MEMCPY2D* p, cudaStream_t stream) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  return copy_box(box_of_rows(*p), stream,
                  [&](const cudaMemcpy3DParms* box) { return cudaMemcpy3DAsync(box, stream); });
}

// --- one-dimensional arrays, by bytes ---
CUresult into_array(cudaArray_t to, size_t offset, const void* from, size_t bytes) {
  return in_context([&] { return cudaMemcpyToArray(to, offset, 0, from, bytes, cudaMemcpyDefault); });
}

CUresult into_array_async(cudaArray_t to, size_t offset, const void* from, size_t bytes, cudaStream_t stream) {
  return in_stream(stream,
                   [&] { return cudaMemcpyToArrayAsync(to, offset, 0, from, bytes, cudaMemcpyDefault, stream); });
}

CUresult out_of_array(void* to, cudaArray_t from, size_t offset, size_t bytes) {
  return in_context([&] { return cudaMemcpyFromArray(to, from, offset, 0, bytes, cudaMemcpyDefault); });
}

CUresult out_of_array_async(void* to, cudaArray_t from, size_t offset, size_t bytes, cudaStream_t stream) {
  return in_stream(stream,
                   [&] { return cudaMemcpyFromArrayAsync(to, from, offset, 0, bytes, cudaMemcpyDefault, stream); });
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
      HEDDLE_DRIVER_PTSZ(cuMemcpyBatchAsync, 12080, copy_batch_v1),
      HEDDLE_DRIVER_PTSZ(cuMemcpyBatchAsync_v2, 13000, copy_batch),
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
