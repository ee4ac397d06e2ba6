#pragma once

#include "client/graph/graph_types.h"

// The exported functions of graphs that the tests call.
extern "C" {
namespace heddle::client {
using Node = cudaGraphNode_t;
using ConstNodes = const cudaGraphNode_t*;
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode);
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t, cudaGraph_t, ConstNodes, const cudaGraphEdgeData*, size_t,
                                          cudaStreamCaptureMode);
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t*);
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus*);
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*, cudaGraph_t*,
                                     ConstNodes*, const cudaGraphEdgeData**, size_t*);
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t*, unsigned);
cudaError_t cudaMemsetAsync(void*, int, size_t, cudaStream_t);
cudaError_t cudaGraphCreate(cudaGraph_t*, unsigned);
cudaError_t cudaGraphDestroy(cudaGraph_t);
cudaError_t cudaGraphClone(cudaGraph_t*, cudaGraph_t);
cudaError_t cudaGraphNodeFindInClone(Node*, Node, cudaGraph_t);
cudaError_t cudaGraphGetNodes(cudaGraph_t, Node*, size_t*);
cudaError_t cudaGraphGetRootNodes(cudaGraph_t, Node*, size_t*);
cudaError_t cudaGraphGetEdges(cudaGraph_t, Node*, Node*, cudaGraphEdgeData*, size_t*);
cudaError_t cudaGraphAddDependencies(cudaGraph_t, ConstNodes, ConstNodes, const cudaGraphEdgeData*, size_t);
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t, ConstNodes, ConstNodes, const cudaGraphEdgeData*, size_t);
cudaError_t cudaGraphNodeGetDependencies(Node, Node*, cudaGraphEdgeData*, size_t*);
cudaError_t cudaGraphNodeGetDependentNodes(Node, Node*, cudaGraphEdgeData*, size_t*);
cudaError_t cudaGraphNodeGetType(Node, cudaGraphNodeType*);
cudaError_t cudaGraphDestroyNode(Node);
cudaError_t cudaGraphAddKernelNode(Node*, cudaGraph_t, ConstNodes, size_t, const cudaKernelNodeParams*);
cudaError_t cudaGraphKernelNodeGetParams(Node, cudaKernelNodeParams*);
cudaError_t cudaGraphAddMemcpyNode1D(Node*, cudaGraph_t, ConstNodes, size_t, void*, const void*, size_t,
                                     cudaMemcpyKind);
cudaError_t cudaGraphAddMemsetNode(Node*, cudaGraph_t, ConstNodes, size_t, const cudaMemsetParams*);
cudaError_t cudaGraphAddHostNode(Node*, cudaGraph_t, ConstNodes, size_t, const cudaHostNodeParams*);
cudaError_t cudaGraphAddEmptyNode(Node*, cudaGraph_t, ConstNodes, size_t);
cudaError_t cudaGraphAddChildGraphNode(Node*, cudaGraph_t, ConstNodes, size_t, cudaGraph_t);
cudaError_t cudaGraphAddEventRecordNode(Node*, cudaGraph_t, ConstNodes, size_t, cudaEvent_t);
cudaError_t cudaGraphAddEventWaitNode(Node*, cudaGraph_t, ConstNodes, size_t, cudaEvent_t);
cudaError_t cudaGraphAddNode(Node*, cudaGraph_t, ConstNodes, const cudaGraphEdgeData*, size_t, cudaGraphNodeParams*);
cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle*, cudaGraph_t, unsigned, unsigned);
cudaError_t cudaGraphChildGraphNodeGetGraph(Node, cudaGraph_t*);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t*, cudaGraph_t, unsigned long long);
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t);
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t, Node, const cudaKernelNodeParams*);
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t, Node, void*, const void*, size_t, cudaMemcpyKind);
cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t, Node, cudaGraph_t);
cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t, Node, unsigned);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t, cudaGraph_t, cudaGraphExecUpdateResultInfo*);
cudaError_t cudaGraphAddMemAllocNode(Node*, cudaGraph_t, ConstNodes, size_t, cudaMemAllocNodeParams*);
cudaError_t cudaGraphAddMemFreeNode(Node*, cudaGraph_t, ConstNodes, size_t, void*);
cudaError_t cudaGraphMemAllocNodeGetParams(Node, cudaMemAllocNodeParams*);
cudaError_t cudaGraphMemFreeNodeGetParams(Node, void*);
cudaError_t cudaDeviceGraphMemTrim(int);
cudaError_t cudaDeviceGetGraphMemAttribute(int, cudaGraphMemAttributeType, void*);
cudaError_t cudaDeviceSetGraphMemAttribute(int, cudaGraphMemAttributeType, void*);
cudaError_t cudaMallocAsync(void**, size_t, cudaStream_t);
cudaError_t cudaFreeAsync(void*, cudaStream_t);
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t, const char*, unsigned);
cudaError_t cudaUserObjectCreate(cudaUserObject_t*, void*, cudaHostFn_t, unsigned, unsigned);
cudaError_t cudaUserObjectRelease(cudaUserObject_t, unsigned);
cudaError_t cudaGraphRetainUserObject(cudaGraph_t, cudaUserObject_t, unsigned, unsigned);
}  // namespace heddle::client
}
