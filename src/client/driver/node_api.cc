// The nodes of graphs: what they do, in the driver's words. The contexts that nodes name are ignored: addresses and
// kernels say which device is meant, as in the runtime.

#include <cstring>

#include "client/api/graph_edges.h"
#include "client/driver/copy_parameters.h"
#include "client/driver/functions.h"
#include "client/driver/runtime_functions.h"

namespace heddle::client {
namespace {

using ConstNodes = const cudaGraphNode_t*;

Done done(cudaError_t code) {
  return code == cudaSuccess ? Done{} : refuse(code);
}

// --- kernels: `func`, or `kern` where that is null ---
cudaKernelNodeParams kernel_of(const CUDA_KERNEL_NODE_PARAMS& p) {
  void* const kernel = p.func ? static_cast<void*>(p.func) : static_cast<void*>(p.kern);
  return {kernel, p.grid, p.block, p.sharedMemBytes, p.kernelParams, p.extra};
}

CUresult add_kernel(cudaGraphNode_t* made, cudaGraph_t graph, ConstNodes before, size_t count,
                    const CUDA_KERNEL_NODE_PARAMS* p) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  const cudaKernelNodeParams same = kernel_of(*p);
  return Same<&cudaGraphAddKernelNode>::call(made, graph, before, count, &same);
}

CUresult get_kernel(cudaGraphNode_t node, CUDA_KERNEL_NODE_PARAMS* p) {
  return in_driver([&] {
    cudaKernelNodeParams found{};
    if (!p) return cudaErrorInvalidValue;
    const cudaError_t code = cudaGraphKernelNodeGetParams(node, &found);
    if (code == cudaSuccess)
      *p = {static_cast<CUfunction>(found.func),
            found.gridDim,
            found.blockDim,
            found.sharedMemBytes,
            found.kernelParams,
            found.extra,
            nullptr,
            thread_place().context};
    return code;
  });
}

CUresult set_kernel(cudaGraphNode_t node, const CUDA_KERNEL_NODE_PARAMS* p) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  const cudaKernelNodeParams same = kernel_of(*p);
  return Same<&cudaGraphKernelNodeSetParams>::call(node, &same);
}

CUresult set_exec_kernel(cudaGraphExec_t exec, cudaGraphNode_t node, const CUDA_KERNEL_NODE_PARAMS* p) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  const cudaKernelNodeParams same = kernel_of(*p);
  return Same<&cudaGraphExecKernelNodeSetParams>::call(exec, node, &same);
}

// --- copies ---
// Runs `use(&p)` on the runtime's words for the box.
template <class Use>
CUresult with_box(const CUDA_MEMCPY3D* box, Use&& use) {
  return in_context([&]() -> Done {
    if (!box) return refuse(cudaErrorInvalidValue);
    const auto p = box_of(*box);
    if (!p) return tl::unexpected(p.error());
    const LastErrorKept kept;
    return done(use(&*p));
  });
}

CUresult add_copy(cudaGraphNode_t* made, cudaGraph_t graph, ConstNodes before, size_t count, const CUDA_MEMCPY3D* box,
                  CUcontext) {
  return with_box(box,
                  [&](const cudaMemcpy3DParms* p) { return cudaGraphAddMemcpyNode(made, graph, before, count, p); });
}

CUresult get_copy(cudaGraphNode_t node, CUDA_MEMCPY3D* to) {
  return in_driver([&]() -> Done {
    cudaMemcpy3DParms found{};
    if (!to) return refuse(cudaErrorInvalidValue);
    const LastErrorKept kept;
    HEDDLE_ANSWER(done(cudaGraphMemcpyNodeGetParams(node, &found)));
    const auto box = box_of(found);
    if (!box) return tl::unexpected(box.error());
    *to = *box;
    return {};
  });
}

CUresult set_copy(cudaGraphNode_t node, const CUDA_MEMCPY3D* box) {
  return with_box(box, [&](const cudaMemcpy3DParms* p) { return cudaGraphMemcpyNodeSetParams(node, p); });
}

CUresult set_exec_copy(cudaGraphExec_t exec, cudaGraphNode_t node, const CUDA_MEMCPY3D* box, CUcontext) {
  return with_box(box, [&](const cudaMemcpy3DParms* p) { return cudaGraphExecMemcpyNodeSetParams(exec, node, p); });
}

// --- any node: kernels and copies have words of their own, the others the runtime's ---
Answer<cudaGraphNodeParams> node_of(const CUgraphNodeParams* p) {
  if (!p) return refuse(cudaErrorInvalidValue);
  cudaGraphNodeParams same;
  std::memcpy(&same, p, sizeof same);
  if (p->type == cudaGraphNodeTypeKernel) same.kernel = kernel_of(p->kernel);
  if (p->type == cudaGraphNodeTypeMemcpy) {
    const auto box = box_of(p->memcpy.copyParams);
    if (!box) return tl::unexpected(box.error());
    same.memcpy = {0, {}, *box};
  }
  return same;
}

// What making the node told.
void tell_made(const cudaGraphNodeParams& made, CUgraphNodeParams& to) {
  if (made.type == cudaGraphNodeTypeMemAlloc) to.alloc.dptr = made.alloc.dptr;
  if (made.type == cudaGraphNodeTypeConditional) to.conditional.phGraph_out = made.conditional.phGraph_out;
}

CUresult add_any_with_edges(cudaGraphNode_t* made, cudaGraph_t graph, ConstNodes before, const cudaGraphEdgeData* edges,
                            size_t count, CUgraphNodeParams* p) {
  return in_context([&]() -> Done {
    auto same = node_of(p);
    if (!same) return tl::unexpected(std::move(same).error());
    HEDDLE_ANSWER(add_node(made, graph, before, edges, count, &*same));
    tell_made(*same, *p);
    return {};
  });
}

CUresult add_any(cudaGraphNode_t* made, cudaGraph_t graph, ConstNodes before, size_t count, CUgraphNodeParams* p) {
  return add_any_with_edges(made, graph, before, nullptr, count, p);
}

CUresult set_any(cudaGraphNode_t node, const CUgraphNodeParams* p) {
  return in_context([&]() -> Done {
    const auto same = node_of(p);
    if (!same) return tl::unexpected(same.error());
    const LastErrorKept kept;
    return done(cudaGraphNodeSetParams(node, &*same));
  });
}

CUresult set_exec_any(cudaGraphExec_t exec, cudaGraphNode_t node, const CUgraphNodeParams* p) {
  return in_context([&]() -> Done {
    const auto same = node_of(p);
    if (!same) return tl::unexpected(same.error());
    const LastErrorKept kept;
    return done(cudaGraphExecNodeSetParams(exec, node, &*same));
  });
}

}  // namespace

std::span<const DriverFunction> driver_node_functions() {
  static const DriverFunction rows[] = {
      HEDDLE_DRIVER(cuGraphAddNode, 12020, add_any),
      HEDDLE_DRIVER(cuGraphAddNode_v2, 12030, add_any_with_edges),
      HEDDLE_DRIVER(cuGraphNodeSetParams, 12020, set_any),
      HEDDLE_DRIVER(cuGraphExecNodeSetParams, 12020, set_exec_any),
      HEDDLE_DRIVER(cuGraphNodeGetType, 10000, SameAnywhere<&cudaGraphNodeGetType>::call),
      HEDDLE_DRIVER(cuGraphDestroyNode, 10000, SameAnywhere<&cudaGraphDestroyNode>::call),
      HEDDLE_DRIVER(cuGraphNodeSetEnabled, 11060, SameAnywhere<&cudaGraphNodeSetEnabled>::call),
      HEDDLE_DRIVER(cuGraphNodeGetEnabled, 11060, SameAnywhere<&cudaGraphNodeGetEnabled>::call),
      HEDDLE_DRIVER(cuGraphAddKernelNode, 10000, Same<&cudaGraphAddKernelNode>::call),
      HEDDLE_DRIVER(cuGraphAddKernelNode_v2, 12000, add_kernel),
      HEDDLE_DRIVER(cuGraphKernelNodeGetParams, 10000, SameAnywhere<&cudaGraphKernelNodeGetParams>::call),
      HEDDLE_DRIVER(cuGraphKernelNodeGetParams_v2, 12000, get_kernel),
      HEDDLE_DRIVER(cuGraphKernelNodeSetParams, 10000, Same<&cudaGraphKernelNodeSetParams>::call),
      HEDDLE_DRIVER(cuGraphKernelNodeSetParams_v2, 12000, set_kernel),
      HEDDLE_DRIVER(cuGraphExecKernelNodeSetParams, 10010, Same<&cudaGraphExecKernelNodeSetParams>::call),
      HEDDLE_DRIVER(cuGraphExecKernelNodeSetParams_v2, 12000, set_exec_kernel),
      HEDDLE_DRIVER(cuGraphKernelNodeSetAttribute, 11000, SameAnywhere<&cudaGraphKernelNodeSetAttribute>::call),
      HEDDLE_DRIVER(cuGraphKernelNodeGetAttribute, 11000, SameAnywhere<&cudaGraphKernelNodeGetAttribute>::call),
      HEDDLE_DRIVER(cuGraphKernelNodeCopyAttributes, 11000, SameAnywhere<&cudaGraphKernelNodeCopyAttributes>::call),
      HEDDLE_DRIVER(cuGraphAddMemcpyNode, 10000, add_copy),
      HEDDLE_DRIVER(cuGraphMemcpyNodeGetParams, 10000, get_copy),
      HEDDLE_DRIVER(cuGraphMemcpyNodeSetParams, 10000, set_copy),
      HEDDLE_DRIVER(cuGraphExecMemcpyNodeSetParams, 10020, set_exec_copy),
      HEDDLE_DRIVER(cuGraphAddMemsetNode, 10000, Same<&cudaGraphAddMemsetNode>::call),
      HEDDLE_DRIVER(cuGraphMemsetNodeGetParams, 10000, SameAnywhere<&cudaGraphMemsetNodeGetParams>::call),
      HEDDLE_DRIVER(cuGraphMemsetNodeSetParams, 10000, Same<&cudaGraphMemsetNodeSetParams>::call),
      HEDDLE_DRIVER(cuGraphExecMemsetNodeSetParams, 10020, Same<&cudaGraphExecMemsetNodeSetParams>::call),
      HEDDLE_DRIVER(cuGraphAddHostNode, 10000, SameAnywhere<&cudaGraphAddHostNode>::call),
      HEDDLE_DRIVER(cuGraphHostNodeGetParams, 10000, SameAnywhere<&cudaGraphHostNodeGetParams>::call),
      HEDDLE_DRIVER(cuGraphHostNodeSetParams, 10000, SameAnywhere<&cudaGraphHostNodeSetParams>::call),
      HEDDLE_DRIVER(cuGraphExecHostNodeSetParams, 10020, SameAnywhere<&cudaGraphExecHostNodeSetParams>::call),
      HEDDLE_DRIVER(cuGraphAddEventRecordNode, 11010, SameAnywhere<&cudaGraphAddEventRecordNode>::call),
      HEDDLE_DRIVER(cuGraphEventRecordNodeGetEvent, 11010, SameAnywhere<&cudaGraphEventRecordNodeGetEvent>::call),
      HEDDLE_DRIVER(cuGraphEventRecordNodeSetEvent, 11010, SameAnywhere<&cudaGraphEventRecordNodeSetEvent>::call),
      HEDDLE_DRIVER(cuGraphExecEventRecordNodeSetEvent, 11010,
                    SameAnywhere<&cudaGraphExecEventRecordNodeSetEvent>::call),
      HEDDLE_DRIVER(cuGraphAddEventWaitNode, 11010, SameAnywhere<&cudaGraphAddEventWaitNode>::call),
      HEDDLE_DRIVER(cuGraphEventWaitNodeGetEvent, 11010, SameAnywhere<&cudaGraphEventWaitNodeGetEvent>::call),
      HEDDLE_DRIVER(cuGraphEventWaitNodeSetEvent, 11010, SameAnywhere<&cudaGraphEventWaitNodeSetEvent>::call),
      HEDDLE_DRIVER(cuGraphExecEventWaitNodeSetEvent, 11010, SameAnywhere<&cudaGraphExecEventWaitNodeSetEvent>::call),
      HEDDLE_DRIVER(cuGraphAddChildGraphNode, 10000, SameAnywhere<&cudaGraphAddChildGraphNode>::call),
      HEDDLE_DRIVER(cuGraphChildGraphNodeGetGraph, 10000, SameAnywhere<&cudaGraphChildGraphNodeGetGraph>::call),
      HEDDLE_DRIVER(cuGraphExecChildGraphNodeSetParams, 11010,
                    SameAnywhere<&cudaGraphExecChildGraphNodeSetParams>::call),
      HEDDLE_DRIVER(cuGraphAddEmptyNode, 10000, SameAnywhere<&cudaGraphAddEmptyNode>::call),
      HEDDLE_DRIVER(cuGraphAddMemAllocNode, 11040, Same<&cudaGraphAddMemAllocNode>::call),
      HEDDLE_DRIVER(cuGraphMemAllocNodeGetParams, 11040, SameAnywhere<&cudaGraphMemAllocNodeGetParams>::call),
      HEDDLE_DRIVER(cuGraphAddMemFreeNode, 11040, Same<&cudaGraphAddMemFreeNode>::call),
      HEDDLE_DRIVER(cuGraphMemFreeNodeGetParams, 11040, SameAnywhere<&cudaGraphMemFreeNodeGetParams>::call),
  };
  return rows;
}

}  // namespace heddle::client
