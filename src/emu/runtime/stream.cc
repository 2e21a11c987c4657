// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Streams, events, capture and graphs: thin over the driver's.

#include "emu/runtime/runtime.h"

using namespace sealane::emu::runtime;

namespace {

constexpr auto kLegacy = Streams::legacy;

cudaError_t create_stream(cudaStream_t* stream, unsigned flags, int priority) {
  return with_context(kLegacy, [&](const Calls& calls) {
    return calls.cuStreamCreateWithPriority(stream, flags, priority);
  });
}

cudaError_t create_event(cudaEvent_t* event, unsigned flags) {
  return with_context(kLegacy,
                      [&](const Calls& calls) { return calls.cuEventCreate(event, flags); });
}

cudaError_t instantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return with_context(kLegacy, [&](const Calls& calls) {
    return calls.cuGraphInstantiateWithFlags(exec, graph, flags);
  });
}

}  // namespace

// CALL(mode, driver call, arguments...): the driver's answer is ours.
#define CALL(streams, name, ...) \
  with_context(streams, [&](const Calls& calls) { return calls.name(__VA_ARGS__); })

EMU_RUNTIME cudaStreamCreate(cudaStream_t* stream) { return create_stream(stream, 0, 0); }
EMU_RUNTIME cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return create_stream(stream, flags, 0);
}
EMU_RUNTIME cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return create_stream(stream, flags, priority);
}
EMU_RUNTIME cudaStreamDestroy(cudaStream_t stream) {
  return CALL(kLegacy, cuStreamDestroy, stream);
}
EMU_RUNTIME_TWINS(cudaStreamGetPriority, _ptsz, (cudaStream_t stream, int* priority),
                  CALL(mode, cuStreamGetPriority, stream, priority))
EMU_RUNTIME_TWINS(cudaStreamGetFlags, _ptsz, (cudaStream_t stream, unsigned* flags),
                  CALL(mode, cuStreamGetFlags, stream, flags))
EMU_RUNTIME_TWINS(cudaStreamGetId, _ptsz, (cudaStream_t stream, unsigned long long* id),
                  CALL(mode, cuStreamGetId, stream, id))
EMU_RUNTIME_TWINS(cudaStreamGetDevice, _ptsz, (cudaStream_t stream, int* device),
                  CALL(mode, cuStreamGetDevice, stream, device))
EMU_RUNTIME_TWINS(cudaStreamQuery, _ptsz, (cudaStream_t stream), CALL(mode, cuStreamQuery, stream))
EMU_RUNTIME_TWINS(cudaStreamSynchronize, _ptsz, (cudaStream_t stream),
                  CALL(mode, cuStreamSynchronize, stream))
EMU_RUNTIME_TWINS(cudaStreamWaitEvent, _ptsz,
                  (cudaStream_t stream, cudaEvent_t event, unsigned flags),
                  CALL(mode, cuStreamWaitEvent, stream, event, flags))
EMU_RUNTIME_TWINS(cudaStreamAddCallback, _ptsz,
                  (cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned flags),
                  CALL(mode, cuStreamAddCallback, stream,
                       reinterpret_cast<CUstreamCallback>(callback), data, flags))
EMU_RUNTIME_TWINS(cudaLaunchHostFunc, _ptsz,
                  (cudaStream_t stream, cudaHostFn_t function, void* data),
                  CALL(mode, cuLaunchHostFunc, stream, function, data))

// The values of attributes are the driver's under another name.
EMU_RUNTIME_TWINS(cudaStreamGetAttribute, _ptsz,
                  (cudaStream_t stream, int attribute, CUlaunchAttributeValue* value),
                  CALL(mode, cuStreamGetAttribute, stream, attribute, value))
EMU_RUNTIME_TWINS(cudaStreamSetAttribute, _ptsz,
                  (cudaStream_t stream, int attribute, const CUlaunchAttributeValue* value),
                  CALL(mode, cuStreamSetAttribute, stream, attribute, value))
EMU_RUNTIME_TWINS(cudaStreamCopyAttributes, _ptsz, (cudaStream_t to, cudaStream_t from),
                  CALL(mode, cuStreamCopyAttributes, to, from))

EMU_RUNTIME cudaEventCreate(cudaEvent_t* event) { return create_event(event, 0); }
EMU_RUNTIME cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return create_event(event, flags);
}
EMU_RUNTIME cudaEventDestroy(cudaEvent_t event) { return CALL(kLegacy, cuEventDestroy, event); }
EMU_RUNTIME_TWINS(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream),
                  CALL(mode, cuEventRecord, event, stream))
EMU_RUNTIME_TWINS(cudaEventRecordWithFlags, _ptsz,
                  (cudaEvent_t event, cudaStream_t stream, unsigned flags),
                  CALL(mode, cuEventRecordWithFlags, event, stream, flags))
EMU_RUNTIME cudaEventQuery(cudaEvent_t event) { return CALL(kLegacy, cuEventQuery, event); }
EMU_RUNTIME cudaEventSynchronize(cudaEvent_t event) {
  return CALL(kLegacy, cuEventSynchronize, event);
}
EMU_RUNTIME cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return CALL(kLegacy, cuEventElapsedTime, milliseconds, start, end);
}
// CUDA 12.8 renamed the symbol when it changed which events it takes.
EMU_RUNTIME cudaEventElapsedTime_v2(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return CALL(kLegacy, cuEventElapsedTime, milliseconds, start, end);
}

EMU_RUNTIME_TWINS(cudaStreamBeginCapture, _ptsz, (cudaStream_t stream, cudaStreamCaptureMode how),
                  CALL(mode, cuStreamBeginCapture, stream, static_cast<CUstreamCaptureMode>(how)))
EMU_RUNTIME_TWINS(cudaStreamEndCapture, _ptsz, (cudaStream_t stream, cudaGraph_t* graph),
                  CALL(mode, cuStreamEndCapture, stream, graph))
EMU_RUNTIME_TWINS(cudaStreamIsCapturing, _ptsz,
                  (cudaStream_t stream, cudaStreamCaptureStatus* status),
                  CALL(mode, cuStreamIsCapturing, stream,
                       reinterpret_cast<CUstreamCaptureStatus*>(status)))
EMU_RUNTIME cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* how) {
  return CALL(kLegacy, cuThreadExchangeStreamCaptureMode,
              reinterpret_cast<CUstreamCaptureMode*>(how));
}
EMU_RUNTIME cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  return CALL(kLegacy, cuGraphCreate, graph, flags);
}
EMU_RUNTIME cudaGraphDestroy(cudaGraph_t graph) { return CALL(kLegacy, cuGraphDestroy, graph); }
EMU_RUNTIME cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags) {
  return instantiate(exec, graph, flags);
}
EMU_RUNTIME cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  return instantiate(exec, graph, flags);
}
EMU_RUNTIME cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return CALL(kLegacy, cuGraphGetNodes, graph, nodes, count);
}
EMU_RUNTIME_TWINS(cudaGraphUpload, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream),
                  CALL(mode, cuGraphUpload, exec, stream))
EMU_RUNTIME_TWINS(cudaGraphLaunch, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream),
                  CALL(mode, cuGraphLaunch, exec, stream))
EMU_RUNTIME cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return CALL(kLegacy, cuGraphExecDestroy, exec);
}
#undef CALL
