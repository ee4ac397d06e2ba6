// Streams, events, and what streams capture.

#include "client/api/graph_edges.h"
#include "client/driver/contexts.h"
#include "client/driver/functions.h"
#include "client/driver/runtime_functions.h"

namespace heddle::client {
namespace {

uint64_t number(const void* handle) {
  return reinterpret_cast<uint64_t>(handle);
}

// --- streams and their contexts ---
CUresult create_with_priority(cudaStream_t* stream, unsigned flags, int priority) {
  const CUresult made = Same<&cudaStreamCreateWithPriority>::call(stream, flags, priority);
  return made == CUDA_SUCCESS ? in_context([&]() -> Done {
    own(Owned::kStream, number(*stream));
    return {};
  })
                              : made;
}

CUresult create(cudaStream_t* stream, unsigned flags) {
  return create_with_priority(stream, flags, 0);
}

template <auto Function>
struct OfStream;
template <class... Arguments, cudaError_t (*Function)(cudaStream_t, Arguments...)>
struct OfStream<Function> {
  static CUresult call(cudaStream_t stream, Arguments... arguments) {
    return in_stream(stream, [&] { return Function(stream, arguments...); });
  }
};

CUresult context_of(cudaStream_t stream, CUcontext* context) {
  return in_stream(stream, [&]() -> Done {
    if (!context) return refuse(cudaErrorInvalidValue);
    if (number(stream) <= number(cudaStreamPerThread)) {
      *context = thread_place().context;
      return {};
    }
    auto found = resolve_stream(stream);
    if (!found) return tl::unexpected(std::move(found).error());
    Context* const owner = owner_of(Owned::kStream, number(stream));
    *context = owner ? owner : &primary_context(static_cast<int>(found->device->home().index()));
    return {};
  });
}

// No stream is of a green context.
CUresult contexts_of(cudaStream_t stream, CUcontext* context, void** green) {
  if (green) *green = nullptr;
  return context_of(stream, context);
}

// --- events ---
CUresult create_event(cudaEvent_t* event, unsigned flags) {
  return in_context([&] {
    const cudaError_t made = cudaEventCreateWithFlags(event, flags);
    if (made == cudaSuccess) own(Owned::kEvent, number(*event));
    return made;
  });
}

// The stream says which context is meant.
CUresult record(cudaEvent_t event, cudaStream_t stream) {
  return in_stream(stream, [&] { return cudaEventRecord(event, stream); });
}

CUresult record_with_flags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return in_stream(stream, [&] { return cudaEventRecordWithFlags(event, stream, flags); });
}

// --- capture ---
CUresult begin_global_capture(cudaStream_t stream) {
  return OfStream<&cudaStreamBeginCapture>::call(stream, cudaStreamCaptureModeGlobal);
}

CUresult capture_info(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id) {
  return in_stream(stream, [&] { return tell_capture(stream, {status, id, nullptr, nullptr, nullptr, nullptr}); });
}

CUresult capture_info_v2(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                         cudaGraph_t* graph, const cudaGraphNode_t** nodes, size_t* count) {
  return in_stream(stream, [&] { return tell_capture(stream, {status, id, graph, nodes, nullptr, count}); });
}

CUresult capture_info_v3(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                         cudaGraph_t* graph, const cudaGraphNode_t** nodes, const cudaGraphEdgeData** edges,
                         size_t* count) {
  return in_stream(stream, [&] { return tell_capture(stream, {status, id, graph, nodes, edges, count}); });
}

CUresult update_dependencies(cudaStream_t stream, const cudaGraphNode_t* nodes, size_t count, unsigned flags) {
  return in_stream(stream, [&] { return update_capture(stream, nodes, nullptr, count, flags); });
}

CUresult update_dependencies_v2(cudaStream_t stream, const cudaGraphNode_t* nodes, const cudaGraphEdgeData* edges,
                                size_t count, unsigned flags) {
  return in_stream(stream, [&] { return update_capture(stream, nodes, edges, count, flags); });
}

}  // namespace

std::span<const DriverFunction> driver_stream_functions() {
  static const DriverFunction rows[] = {
      HEDDLE_DRIVER(cuStreamCreate, 2000, create),
      HEDDLE_DRIVER(cuStreamCreateWithPriority, 5050, create_with_priority),
      HEDDLE_DRIVER(cuStreamDestroy, 2000, OfStream<&cudaStreamDestroy>::call),
      HEDDLE_DRIVER(cuStreamDestroy_v2, 4000, OfStream<&cudaStreamDestroy>::call),
      HEDDLE_DRIVER_PTSZ(cuStreamGetCtx, 9020, context_of),
      HEDDLE_DRIVER_PTSZ(cuStreamGetCtx_v2, 12050, contexts_of),
      HEDDLE_DRIVER_PTSZ(cuStreamQuery, 2000, OfStream<&cudaStreamQuery>::call),
      HEDDLE_DRIVER_PTSZ(cuStreamSynchronize, 2000, OfStream<&cudaStreamSynchronize>::call),
      HEDDLE_DRIVER_PTSZ(cuStreamWaitEvent, 3020, OfStream<&cudaStreamWaitEvent>::call),
      HEDDLE_DRIVER_PTSZ(cuStreamGetFlags, 5050, OfStream<&cudaStreamGetFlags>::call),
      HEDDLE_DRIVER_PTSZ(cuStreamGetPriority, 5050, OfStream<&cudaStreamGetPriority>::call),
      HEDDLE_DRIVER_PTSZ(cuStreamGetId, 12000, OfStream<&cudaStreamGetId>::call),
      HEDDLE_DRIVER_PTSZ(cuStreamGetDevice, 12080, OfStream<&cudaStreamGetDevice>::call),
      HEDDLE_DRIVER_PTSZ(cuStreamIsCapturing, 10000, OfStream<&cudaStreamIsCapturing>::call),
      HEDDLE_DRIVER_PTSZ(cuStreamAttachMemAsync, 6000, OfStream<&cudaStreamAttachMemAsync>::call),
      HEDDLE_DRIVER_PTSZ(cuStreamAddCallback, 5000, OfStream<&cudaStreamAddCallback>::call),
      HEDDLE_DRIVER_PTSZ(cuLaunchHostFunc, 10000, OfStream<&cudaLaunchHostFunc>::call),
      HEDDLE_DRIVER_PTSZ(cuStreamSetAttribute, 11000, OfStream<&cudaStreamSetAttribute>::call),
      HEDDLE_DRIVER_PTSZ(cuStreamGetAttribute, 11000, OfStream<&cudaStreamGetAttribute>::call),
      HEDDLE_DRIVER_PTSZ(cuStreamCopyAttributes, 11000, OfStream<&cudaStreamCopyAttributes>::call),
      HEDDLE_DRIVER_PTSZ(cuStreamBeginCapture, 10000, begin_global_capture),
      HEDDLE_DRIVER_PTSZ(cuStreamBeginCapture_v2, 10010, OfStream<&cudaStreamBeginCapture>::call),
      HEDDLE_DRIVER_PTSZ(cuStreamBeginCaptureToGraph, 12030, OfStream<&cudaStreamBeginCaptureToGraph>::call),
      HEDDLE_DRIVER_PTSZ(cuStreamEndCapture, 10000, OfStream<&cudaStreamEndCapture>::call),
      HEDDLE_DRIVER_PTSZ(cuStreamGetCaptureInfo, 10010, capture_info),
      HEDDLE_DRIVER_PTSZ(cuStreamGetCaptureInfo_v2, 11030, capture_info_v2),
      HEDDLE_DRIVER_PTSZ(cuStreamGetCaptureInfo_v3, 12030, capture_info_v3),
      HEDDLE_DRIVER_PTSZ(cuStreamUpdateCaptureDependencies, 11030, update_dependencies),
      HEDDLE_DRIVER_PTSZ(cuStreamUpdateCaptureDependencies_v2, 12030, update_dependencies_v2),
      HEDDLE_DRIVER(cuThreadExchangeStreamCaptureMode, 10010, SameAnywhere<&cudaThreadExchangeStreamCaptureMode>::call),
      HEDDLE_DRIVER(cuEventCreate, 2000, create_event),
      HEDDLE_DRIVER(cuEventDestroy, 2000, SameAnywhere<&cudaEventDestroy>::call),
      HEDDLE_DRIVER(cuEventDestroy_v2, 4000, SameAnywhere<&cudaEventDestroy>::call),
      HEDDLE_DRIVER_PTSZ(cuEventRecord, 2000, record),
      HEDDLE_DRIVER_PTSZ(cuEventRecordWithFlags, 11010, record_with_flags),
      HEDDLE_DRIVER(cuEventQuery, 2000, SameAnywhere<&cudaEventQuery>::call),
      HEDDLE_DRIVER(cuEventSynchronize, 2000, SameAnywhere<&cudaEventSynchronize>::call),
      HEDDLE_DRIVER(cuEventElapsedTime, 2000, SameAnywhere<&cudaEventElapsedTime>::call),
      HEDDLE_DRIVER(cuEventElapsedTime_v2, 12080, SameAnywhere<&cudaEventElapsedTime>::call),
  };
  return rows;
}

}  // namespace heddle::client
