// The twins that programs compiled with -default-stream per-thread call: the same functions, with null streams meaning
// the calling thread's own default stream.

#include "client/graph/graph_types.h"
#include "client/memory/pool_types.h"
#include "client/stream_ref.h"

#define HEDDLE_TWIN(twin, function, parameters, arguments) \
  HEDDLE_EXPORT cudaError_t function parameters;           \
  HEDDLE_EXPORT cudaError_t twin parameters {              \
    const PerThreadDefault scope;                          \
    return function arguments;                             \
  }

namespace heddle::client {

using Kind = cudaMemcpyKind;
using Stream = cudaStream_t;
using Array = cudaArray_t;

HEDDLE_TWIN(__cudaLaunchKernel_ptsz, __cudaLaunchKernel,
            (cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared, Stream stream),
            (kernel, grid, block, arguments, shared, stream))
HEDDLE_TWIN(cudaLaunchKernel_ptsz, cudaLaunchKernel,
            (const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, Stream stream),
            (function, grid, block, arguments, shared, stream))
HEDDLE_TWIN(cudaLaunchCooperativeKernel_ptsz, cudaLaunchCooperativeKernel,
            (const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, Stream stream),
            (function, grid, block, arguments, shared, stream))
HEDDLE_TWIN(cudaLaunchKernelExC_ptsz, cudaLaunchKernelExC,
            (const cudaLaunchConfig_t* config, const void* function, void** arguments), (config, function, arguments))
HEDDLE_TWIN(cudaLaunchHostFunc_ptsz, cudaLaunchHostFunc, (Stream stream, cudaHostFn_t function, void* data),
            (stream, function, data))

HEDDLE_TWIN(cudaMemcpy_ptds, cudaMemcpy, (void* to, const void* from, size_t bytes, Kind kind), (to, from, bytes, kind))
HEDDLE_TWIN(cudaMemcpyAsync_ptsz, cudaMemcpyAsync, (void* to, const void* from, size_t bytes, Kind kind, Stream stream),
            (to, from, bytes, kind, stream))
HEDDLE_TWIN(cudaMemcpy2D_ptds, cudaMemcpy2D,
            (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, Kind kind),
            (to, to_pitch, from, from_pitch, width, height, kind))
HEDDLE_TWIN(cudaMemcpy2DToArray_ptds, cudaMemcpy2DToArray,
            (Array to, size_t x, size_t y, const void* from, size_t pitch, size_t width, size_t height, Kind kind),
            (to, x, y, from, pitch, width, height, kind))
HEDDLE_TWIN(cudaMemcpy2DToArrayAsync_ptsz, cudaMemcpy2DToArrayAsync,
            (Array to, size_t x, size_t y, const void* from, size_t pitch, size_t width, size_t height, Kind kind,
             Stream stream),
            (to, x, y, from, pitch, width, height, kind, stream))
HEDDLE_TWIN(cudaMemcpy2DFromArray_ptds, cudaMemcpy2DFromArray,
            (void* to, size_t pitch, Array from, size_t x, size_t y, size_t width, size_t height, Kind kind),
            (to, pitch, from, x, y, width, height, kind))
HEDDLE_TWIN(cudaMemcpy2DFromArrayAsync_ptsz, cudaMemcpy2DFromArrayAsync,
            (void* to, size_t pitch, Array from, size_t x, size_t y, size_t width, size_t height, Kind kind,
             Stream stream),
            (to, pitch, from, x, y, width, height, kind, stream))
HEDDLE_TWIN(cudaMemcpy2DArrayToArray_ptds, cudaMemcpy2DArrayToArray,
            (Array to, size_t to_x, size_t to_y, Array from, size_t from_x, size_t from_y, size_t width, size_t height,
             Kind kind),
            (to, to_x, to_y, from, from_x, from_y, width, height, kind))
HEDDLE_TWIN(cudaMemcpyToArray_ptds, cudaMemcpyToArray,
            (Array to, size_t x, size_t y, const void* from, size_t count, Kind kind), (to, x, y, from, count, kind))
HEDDLE_TWIN(cudaMemcpyToArrayAsync_ptsz, cudaMemcpyToArrayAsync,
            (Array to, size_t x, size_t y, const void* from, size_t count, Kind kind, Stream stream),
            (to, x, y, from, count, kind, stream))
HEDDLE_TWIN(cudaMemcpyFromArray_ptds, cudaMemcpyFromArray,
            (void* to, Array from, size_t x, size_t y, size_t count, Kind kind), (to, from, x, y, count, kind))
HEDDLE_TWIN(cudaMemcpyFromArrayAsync_ptsz, cudaMemcpyFromArrayAsync,
            (void* to, Array from, size_t x, size_t y, size_t count, Kind kind, Stream stream),
            (to, from, x, y, count, kind, stream))
HEDDLE_TWIN(cudaMemcpyArrayToArray_ptds, cudaMemcpyArrayToArray,
            (Array to, size_t to_x, size_t to_y, Array from, size_t from_x, size_t from_y, size_t count, Kind kind),
            (to, to_x, to_y, from, from_x, from_y, count, kind))
HEDDLE_TWIN(cudaMemcpy2DAsync_ptsz, cudaMemcpy2DAsync,
            (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, Kind kind,
             Stream stream),
            (to, to_pitch, from, from_pitch, width, height, kind, stream))
HEDDLE_TWIN(cudaMemcpy3D_ptds, cudaMemcpy3D, (const cudaMemcpy3DParms* p), (p))
HEDDLE_TWIN(cudaMemcpy3DAsync_ptsz, cudaMemcpy3DAsync, (const cudaMemcpy3DParms* p, Stream stream), (p, stream))
HEDDLE_TWIN(cudaMemcpy3DPeer_ptds, cudaMemcpy3DPeer, (const cudaMemcpy3DPeerParms* p), (p))
HEDDLE_TWIN(cudaMemcpy3DPeerAsync_ptsz, cudaMemcpy3DPeerAsync, (const cudaMemcpy3DPeerParms* p, Stream stream),
            (p, stream))
HEDDLE_TWIN(cudaMemcpyToSymbol_ptds, cudaMemcpyToSymbol,
            (const void* symbol, const void* from, size_t bytes, size_t offset, Kind kind),
            (symbol, from, bytes, offset, kind))
HEDDLE_TWIN(cudaMemcpyToSymbolAsync_ptsz, cudaMemcpyToSymbolAsync,
            (const void* symbol, const void* from, size_t bytes, size_t offset, Kind kind, Stream stream),
            (symbol, from, bytes, offset, kind, stream))
HEDDLE_TWIN(cudaMemcpyFromSymbol_ptds, cudaMemcpyFromSymbol,
            (void* to, const void* symbol, size_t bytes, size_t offset, Kind kind), (to, symbol, bytes, offset, kind))
HEDDLE_TWIN(cudaMemcpyFromSymbolAsync_ptsz, cudaMemcpyFromSymbolAsync,
            (void* to, const void* symbol, size_t bytes, size_t offset, Kind kind, Stream stream),
            (to, symbol, bytes, offset, kind, stream))

HEDDLE_TWIN(cudaMemset_ptds, cudaMemset, (void* pointer, int value, size_t bytes), (pointer, value, bytes))
HEDDLE_TWIN(cudaMemsetAsync_ptsz, cudaMemsetAsync, (void* pointer, int value, size_t bytes, Stream stream),
            (pointer, value, bytes, stream))
HEDDLE_TWIN(cudaMemset2D_ptds, cudaMemset2D, (void* pointer, size_t pitch, int value, size_t width, size_t height),
            (pointer, pitch, value, width, height))
HEDDLE_TWIN(cudaMemset2DAsync_ptsz, cudaMemset2DAsync,
            (void* pointer, size_t pitch, int value, size_t width, size_t height, Stream stream),
            (pointer, pitch, value, width, height, stream))
HEDDLE_TWIN(cudaMemset3D_ptds, cudaMemset3D, (cudaPitchedPtr pointer, int value, cudaExtent extent),
            (pointer, value, extent))
HEDDLE_TWIN(cudaMemset3DAsync_ptsz, cudaMemset3DAsync,
            (cudaPitchedPtr pointer, int value, cudaExtent extent, Stream stream), (pointer, value, extent, stream))

HEDDLE_TWIN(cudaMallocAsync_ptsz, cudaMallocAsync, (void** pointer, size_t bytes, Stream stream),
            (pointer, bytes, stream))
HEDDLE_TWIN(cudaMallocFromPoolAsync_ptsz, cudaMallocFromPoolAsync,
            (void** pointer, size_t bytes, cudaMemPool_t pool, Stream stream), (pointer, bytes, pool, stream))
HEDDLE_TWIN(cudaFreeAsync_ptsz, cudaFreeAsync, (void* pointer, Stream stream), (pointer, stream))

HEDDLE_TWIN(cudaStreamQuery_ptsz, cudaStreamQuery, (Stream stream), (stream))
HEDDLE_TWIN(cudaStreamSynchronize_ptsz, cudaStreamSynchronize, (Stream stream), (stream))
HEDDLE_TWIN(cudaStreamWaitEvent_ptsz, cudaStreamWaitEvent, (Stream stream, cudaEvent_t event, unsigned flags),
            (stream, event, flags))
HEDDLE_TWIN(cudaStreamGetFlags_ptsz, cudaStreamGetFlags, (Stream stream, unsigned* flags), (stream, flags))
HEDDLE_TWIN(cudaStreamGetPriority_ptsz, cudaStreamGetPriority, (Stream stream, int* priority), (stream, priority))
HEDDLE_TWIN(cudaStreamGetId_ptsz, cudaStreamGetId, (Stream stream, unsigned long long* id), (stream, id))
HEDDLE_TWIN(cudaStreamGetDevice_ptsz, cudaStreamGetDevice, (Stream stream, int* device), (stream, device))
HEDDLE_TWIN(cudaStreamIsCapturing_ptsz, cudaStreamIsCapturing, (Stream stream, cudaStreamCaptureStatus* status),
            (stream, status))
HEDDLE_TWIN(cudaStreamAttachMemAsync_ptsz, cudaStreamAttachMemAsync,
            (Stream stream, void* pointer, size_t bytes, unsigned flags), (stream, pointer, bytes, flags))
HEDDLE_TWIN(cudaStreamAddCallback_ptsz, cudaStreamAddCallback,
            (Stream stream, cudaStreamCallback_t callback, void* data, unsigned flags), (stream, callback, data, flags))
HEDDLE_TWIN(cudaEventRecord_ptsz, cudaEventRecord, (cudaEvent_t event, Stream stream), (event, stream))
HEDDLE_TWIN(cudaEventRecordWithFlags_ptsz, cudaEventRecordWithFlags, (cudaEvent_t event, Stream stream, unsigned flags),
            (event, stream, flags))

HEDDLE_TWIN(cudaStreamBeginCapture_ptsz, cudaStreamBeginCapture, (Stream stream, cudaStreamCaptureMode mode),
            (stream, mode))
HEDDLE_TWIN(cudaStreamBeginCaptureToGraph_ptsz, cudaStreamBeginCaptureToGraph,
            (Stream stream, cudaGraph_t graph, const cudaGraphNode_t* nodes, const cudaGraphEdgeData* edges,
             size_t count, cudaStreamCaptureMode mode),
            (stream, graph, nodes, edges, count, mode))
HEDDLE_TWIN(cudaStreamEndCapture_ptsz, cudaStreamEndCapture, (Stream stream, cudaGraph_t* graph), (stream, graph))
HEDDLE_TWIN(cudaGraphLaunch_ptsz, cudaGraphLaunch, (cudaGraphExec_t exec, Stream stream), (exec, stream))
HEDDLE_TWIN(cudaGraphUpload_ptsz, cudaGraphUpload, (cudaGraphExec_t exec, Stream stream), (exec, stream))
HEDDLE_TWIN(cudaGraphInstantiateWithParams_ptsz, cudaGraphInstantiateWithParams,
            (cudaGraphExec_t * made, cudaGraph_t graph, cudaGraphInstantiateParams* p), (made, graph, p))

}  // namespace heddle::client
