// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Launches, fills, events, synchronisation, capture: what goes into streams besides copies, and
// what waits for them.

#include "graphs.h"
#include "hooks.h"

using namespace sealane::preload;
namespace serve = sealane::serve;

#define ORDERED(stream, arguments) \
  ordered(                         \
      named(stream, mode), [&] { return next arguments; }, called)
#define UNSETTLING(stream, arguments) \
  unsettling(                         \
      named(stream, mode), [&] { return next arguments; }, called)
#define LAUNCH(stream, arguments) \
  launch(                         \
      named(stream, mode), [&] { return next arguments; }, called)

namespace {

template <typename Call>
CUresult launch(serve::StreamHandle stream, Call&& call, const char* name) {
  uint64_t number = 0;
  return ordered(
      stream,
      [&] {
        LaunchTimer timer(stream);
        const CUresult result = call();
        number = timer.stop(result);
        return result;
      },
      name,
      [&](serve::Event& event) {
        event.call = serve::Call::launch;
        event.id = number;
      });
}

// What may write memory of the host keeps copies from being answered with what was sealed before.
template <typename Harmless, typename Call>
CUresult unsettling_unless(const Harmless& harmless, serve::StreamHandle stream, Call&& call,
                           const char* name) {
  serve::Runtime* const runtime = serve::Runtime::get();
  const bool matters = runtime != nullptr && runtime->seals_ahead();
  if (matters && !harmless(*runtime)) return unsettling(stream, call, name);
  return ordered(stream, call, name);
}

template <typename Call>
CUresult launch_graph(CUgraphExec graph, serve::StreamHandle stream, Call&& call,
                      const char* name) {
  const auto harmless = [&](serve::Runtime&) { return leaves_host_alone(graph); };
  return unsettling_unless(harmless, stream, call, name);
}

}  // namespace

// --- launches
SEALANE_TWINS(cuLaunchKernel, _ptsz,
              (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
               unsigned bz, unsigned shared, CUstream stream, void** arguments, void** extra),
              LAUNCH(stream, (function, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra)))
SEALANE_TWINS(cuLaunchKernelEx, _ptsz,
              (const CUlaunchConfig* config, CUfunction function, void** arguments, void** extra),
              LAUNCH(config != nullptr ? config->hStream : nullptr,
                     (config, function, arguments, extra)))
SEALANE_TWINS(cuLaunchCooperativeKernel, _ptsz,
              (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
               unsigned bz, unsigned shared, CUstream stream, void** arguments),
              LAUNCH(stream, (function, gx, gy, gz, bx, by, bz, shared, stream, arguments)))
SEALANE_TWINS(cuLaunchHostFunc, _ptsz, (CUstream stream, CUhostFn function, void* data),
              UNSETTLING(stream, (stream, function, data)))
SEALANE_TWINS(cuStreamAddCallback, _ptsz,
              (CUstream stream, CUstreamCallback callback, void* data, unsigned flags),
              UNSETTLING(stream, (stream, callback, data, flags)))
SEALANE_TWINS(cuGraphLaunch, _ptsz, (CUgraphExec graph, CUstream stream),
              launch_graph(
                  graph, named(stream, mode), [&] { return next(graph, stream); }, called))
SEALANE_TWINS(cuGraphUpload, _ptsz, (CUgraphExec graph, CUstream stream),
              ORDERED(stream, (graph, stream)))

// --- fills
namespace {

// Of device memory, as far as we know; else it may be memory of the host.
template <typename Call>
CUresult fill(serve::StreamHandle stream, CUdeviceptr to, Call&& call, const char* name) {
  const auto harmless = [&](serve::Runtime& runtime) {
    return runtime.device_memory().find(to).has_value();
  };
  return unsettling_unless(harmless, stream, call, name);
}

}  // namespace

#define FILL(stream, arguments) \
  fill(                         \
      named(stream, mode), to, [&] { return next arguments; }, called)
#define FILLS(kind, type)                                                               \
  SEALANE_TWINS(cuMemset##kind##_v2, _ptds, (CUdeviceptr to, type value, size_t count), \
                FILL(nullptr, (to, value, count)))                                      \
  SEALANE_TWINS(cuMemset##kind##Async, _ptsz,                                           \
                (CUdeviceptr to, type value, size_t count, CUstream stream),            \
                FILL(stream, (to, value, count, stream)))
#define FILLS_2D(kind, type)                                                                    \
  SEALANE_TWINS(cuMemset##kind##_v2, _ptds,                                                     \
                (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height),        \
                FILL(nullptr, (to, pitch, value, width, height)))                               \
  SEALANE_TWINS(                                                                                \
      cuMemset##kind##Async, _ptsz,                                                             \
      (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height, CUstream stream), \
      FILL(stream, (to, pitch, value, width, height, stream)))
FILLS(D8, unsigned char)
FILLS(D16, unsigned short)
FILLS(D32, unsigned)
FILLS_2D(D2D8, unsigned char)
FILLS_2D(D2D16, unsigned short)
FILLS_2D(D2D32, unsigned)

// --- stream memory operations, pools, the rest
#define MEMORY_OPERATIONS(version)                                                                 \
  SEALANE_TWINS(cuStreamWaitValue32##version, _ptsz,                                               \
                (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags),          \
                UNSETTLING(stream, (stream, address, value, flags)))                               \
  SEALANE_TWINS(cuStreamWaitValue64##version, _ptsz,                                               \
                (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags),          \
                UNSETTLING(stream, (stream, address, value, flags)))                               \
  SEALANE_TWINS(cuStreamWriteValue32##version, _ptsz,                                              \
                (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags),          \
                ORDERED(stream, (stream, address, value, flags)))                                  \
  SEALANE_TWINS(cuStreamWriteValue64##version, _ptsz,                                              \
                (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags),          \
                ORDERED(stream, (stream, address, value, flags)))                                  \
  SEALANE_TWINS(cuStreamBatchMemOp##version, _ptsz,                                                \
                (CUstream stream, unsigned count, CUstreamBatchMemOpParams* list, unsigned flags), \
                UNSETTLING(stream, (stream, count, list, flags)))
MEMORY_OPERATIONS()
MEMORY_OPERATIONS(_v2)

SEALANE_TWINS(cuMemAllocAsync, _ptsz, (CUdeviceptr * address, size_t bytes, CUstream stream),
              ordered(
                  named(stream, mode), [&] { return next(address, bytes, stream); }, called,
                  made_on_device(address, [=] { return bytes; })))
SEALANE_TWINS(cuMemAllocFromPoolAsync, _ptsz,
              (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream),
              ordered(
                  named(stream, mode), [&] { return next(address, bytes, pool, stream); }, called,
                  made_on_device(address, [=] { return bytes; })))
SEALANE_TWINS(cuMemFreeAsync, _ptsz, (CUdeviceptr address, CUstream stream),
              ordered(
                  named(stream, mode), [&] { return next(address, stream); }, called,
                  gone_from_device(address)))
SEALANE_TWINS(cuStreamAttachMemAsync, _ptsz,
              (CUstream stream, CUdeviceptr address, size_t bytes, unsigned flags),
              ORDERED(stream, (stream, address, bytes, flags)))
SEALANE_TWINS(cuSignalExternalSemaphoresAsync, _ptsz,
              (const void* const* semaphores, const void* parameters, unsigned count,
               CUstream stream),
              ORDERED(stream, (semaphores, parameters, count, stream)))
SEALANE_TWINS(cuWaitExternalSemaphoresAsync, _ptsz,
              (const void* const* semaphores, const void* parameters, unsigned count,
               CUstream stream),
              UNSETTLING(stream, (semaphores, parameters, count, stream)))
SEALANE_TWINS(cuStreamWaitEvent, _ptsz, (CUstream stream, CUevent event, unsigned flags),
              ordered(
                  named(stream, mode), [&] { return next(stream, event, flags); }, called,
                  as(serve::Call::wait_event, event)))

// --- events and synchronisation: gates are in the stream, so the real calls mean what they must
SEALANE_TWINS(cuEventRecord, _ptsz, (CUevent event, CUstream stream),
              plain([&] { return next(event, stream); }, called,
                    as(serve::Call::record_event, event), named(stream, mode)))
SEALANE_TWINS(cuEventRecordWithFlags, _ptsz, (CUevent event, CUstream stream, unsigned flags),
              plain([&] { return next(event, stream, flags); }, called,
                    as(serve::Call::record_event, event), named(stream, mode)))
SEALANE_TWINS(cuStreamSynchronize, _ptsz, (CUstream stream),
              waiting([&] { return next(stream); }, called, as(serve::Call::sync_stream),
                      named(stream, mode)))

namespace {

// A question is no wait, though an error may come up in its answer too.
auto asks(serve::Call call, CUevent event = nullptr) {
  return [=](serve::Event& told_event) {
    told_event.kind = serve::EventKind::call;
    as(call, event)(told_event);
  };
}

auto waits_for(CUcontext context) {
  return [=](serve::Event& event) {
    event.call = serve::Call::sync_context;
    event.context = reinterpret_cast<uint64_t>(context);
  };
}

}  // namespace

SEALANE_TWINS(cuStreamQuery, _ptsz, (CUstream stream),
              waiting([&] { return next(stream); }, called, asks(serve::Call::query_stream),
                      named(stream, mode)))

#define WAITING(symbol, parameters, arguments, add)               \
  SEALANE_HOOKED symbol parameters {                              \
    const auto next = SEALANE_REAL(symbol);                       \
    if (next == nullptr) return CUDA_ERROR_NOT_INITIALIZED;       \
    return waiting([&] { return next arguments; }, #symbol, add); \
  }
WAITING(cuEventSynchronize, (CUevent event), (event), as(serve::Call::sync_event, event))
WAITING(cuEventQuery, (CUevent event), (event), asks(serve::Call::query_event, event))
WAITING(cuCtxSynchronize, (), (), as(serve::Call::sync_context))
WAITING(cuCtxSynchronize_v2, (CUcontext context), (context), waits_for(context))

SEALANE_HOOKED cuStreamDestroy_v2(CUstream stream) {
  const auto next = SEALANE_REAL(cuStreamDestroy_v2);
  if (next == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const auto call = [&] {
    const CUresult result = next(stream);
    serve::Runtime* runtime = serve::Runtime::get();
    if (runtime != nullptr && result == CUDA_SUCCESS) runtime->forget_stream(handle(stream));
    return result;
  };
  return plain(call, "cuStreamDestroy", as(serve::Call::destroy_stream), handle(stream));
}

// --- capture: nothing is carried while one is under way
namespace {

// Around calls that may begin or end the capture of a stream: whether there is one now is what the
// driver says of the stream, whatever the call returned.
template <typename Call>
CUresult capturing(CUstream stream, DefaultStream mode, Call&& call) {
  serve::Runtime* runtime = serve::Runtime::get();
  if (runtime != nullptr) runtime->set_capturing(named(stream, mode), true);
  const CUresult result = call();
  if (runtime != nullptr) {
    runtime->set_capturing(named(stream, mode), is_capturing(named(stream, mode)));
  }
  return result;
}

}  // namespace

SEALANE_TWINS(cuStreamBeginCapture, _ptsz, (CUstream stream),
              capturing(stream, mode, [&] { return next(stream); }))
SEALANE_TWINS(cuStreamBeginCapture_v2, _ptsz, (CUstream stream, CUstreamCaptureMode how),
              capturing(stream, mode, [&] { return next(stream, how); }))
SEALANE_TWINS(cuStreamBeginCaptureToGraph, _ptsz,
              (CUstream stream, CUgraph graph, const CUgraphNode* nodes, const void* edges,
               size_t count, CUstreamCaptureMode how),
              capturing(stream, mode,
                        [&] { return next(stream, graph, nodes, edges, count, how); }))
SEALANE_TWINS(cuStreamEndCapture, _ptsz, (CUstream stream, CUgraph* graph),
              capturing(stream, mode, [&] { return next(stream, graph); }))
