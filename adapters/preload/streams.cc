// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Launches, fills, events, synchronisation, capture: what goes into streams besides copies, and
// what waits for them.

#include <memory>
#include <optional>

#include "graphs.h"
#include "hooks.h"

using namespace sealane::preload;
namespace serve = sealane::serve;

#define ORDERED(stream, arguments) \
  ordered(                         \
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

// A host function or callback of the program's on its way through a stream. The driver may not know
// when it comes to it that a copy before it was forged (all hardware queues waited for that copy):
// the runtime does.
struct HostCall {
  serve::ContextHandle context;
  CUhostFn function;
  CUstreamCallback callback;
  void* data;

  // A callback runs in any case, and is told of the error.
  static void run(void* self) {
    const std::unique_ptr<HostCall> call(static_cast<HostCall*>(self));
    serve::Runtime* const runtime = serve::Runtime::get();
    if (runtime == nullptr || runtime->may_run(call->context)) call->function(call->data);
  }
  static void call_back(CUstream stream, CUresult result, void* self) {
    const std::unique_ptr<HostCall> call(static_cast<HostCall*>(self));
    serve::Runtime* const runtime = serve::Runtime::get();
    serve::Code left = serve::kSuccess;
    if (runtime != nullptr && runtime->any_failed()) left = runtime->failure_of(call->context);
    if (left != serve::kSuccess) result = static_cast<CUresult>(left);
    call->callback(stream, result, call->data);
  }
};

// Memory that goes when the stream comes to it. What is in the stream by then has its gates before
// that. Copies of other streams nobody else keeps it for, unless the stream waits for them; what is
// asked for later must find it gone.
template <typename Free>
CUresult free_later(CUdeviceptr address, serve::StreamHandle stream, Free&& free) {
  serve::Runtime* const runtime = serve::Runtime::get();
  if (runtime == nullptr) return free();
  return runtime->free_device_memory(
      address, [&](const sealane::Range& range) { runtime->drain_others(range, stream); }, free);
}

// A function that is captured is a node of a graph. (A callback cannot be.)
template <typename Plain, typename Guarded>
CUresult call_host(serve::StreamHandle stream, HostCall wanted, Plain&& plain, Guarded&& guarded) {
  const bool whole = wanted.function != nullptr || wanted.callback != nullptr;
  if (!whole || serve::Runtime::get() == nullptr || is_capturing(stream) ||
      port().context_of(stream, wanted.context) != serve::kSuccess) {
    return plain();
  }
  auto call = std::make_unique<HostCall>(wanted);
  const CUresult result = guarded(call.get());
  // Behind a failure the driver may drop it, or not: a few bytes are kept rather than given twice.
  if (result == CUDA_SUCCESS) static_cast<void>(call.release());
  return result;
}

// What a host function becomes if the stream is captured; else it is as it is.
CUDA_HOST_NODE_PARAMS captured_node(serve::StreamHandle stream, const CUDA_HOST_NODE_PARAMS& node) {
  const bool guarded =
      node.fn != nullptr && serve::Runtime::get() != nullptr && is_capturing(stream);
  return guarded ? guard_node(node, Concern(stream).whose()) : node;
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
              ordered(
                  named(stream, mode),
                  [&] {
                    return call_host(
                        named(stream, mode), {nullptr, function, nullptr, data},
                        [&] {
                          const auto node = captured_node(named(stream, mode), {function, data});
                          return next(stream, node.fn, node.userData);
                        },
                        [&](HostCall* call) { return next(stream, &HostCall::run, call); });
                  },
                  called))
SEALANE_TWINS(cuStreamAddCallback, _ptsz,
              (CUstream stream, CUstreamCallback callback, void* data, unsigned flags),
              ordered(
                  named(stream, mode),
                  [&] {
                    return call_host(
                        named(stream, mode), {nullptr, nullptr, callback, data},
                        [&] { return next(stream, callback, data, flags); },
                        [&](HostCall* call) {
                          return next(stream, &HostCall::call_back, call, flags);
                        });
                  },
                  called))
SEALANE_TWINS(cuGraphLaunch, _ptsz, (CUgraphExec graph, CUstream stream),
              ORDERED(stream, (graph, stream)))
SEALANE_TWINS(cuGraphUpload, _ptsz, (CUgraphExec graph, CUstream stream),
              ORDERED(stream, (graph, stream)))

// Older ones; and one on streams of several devices: whatever stream it is, what follows waits.
SEALANE_SINGLE(cuLaunch, (CUfunction function), LAUNCH(nullptr, (function)))
SEALANE_SINGLE(cuLaunchGrid, (CUfunction function, int width, int height),
               LAUNCH(nullptr, (function, width, height)))
SEALANE_SINGLE(cuLaunchGridAsync, (CUfunction function, int width, int height, CUstream stream),
               LAUNCH(stream, (function, width, height, stream)))
SEALANE_SINGLE(cuLaunchCooperativeKernelMultiDevice, (void* list, unsigned count, unsigned flags),
               ORDERED(nullptr, (list, count, flags)))

// --- fills
#define FILLS(kind, type)                                                               \
  SEALANE_TWINS(cuMemset##kind##_v2, _ptds, (CUdeviceptr to, type value, size_t count), \
                ORDERED(nullptr, (to, value, count)))                                   \
  SEALANE_TWINS(cuMemset##kind##Async, _ptsz,                                           \
                (CUdeviceptr to, type value, size_t count, CUstream stream),            \
                ORDERED(stream, (to, value, count, stream)))
#define FILLS_2D(kind, type)                                                                    \
  SEALANE_TWINS(cuMemset##kind##_v2, _ptds,                                                     \
                (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height),        \
                ORDERED(nullptr, (to, pitch, value, width, height)))                            \
  SEALANE_TWINS(                                                                                \
      cuMemset##kind##Async, _ptsz,                                                             \
      (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height, CUstream stream), \
      ORDERED(stream, (to, pitch, value, width, height, stream)))
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
                ORDERED(stream, (stream, address, value, flags)))                                  \
  SEALANE_TWINS(cuStreamWaitValue64##version, _ptsz,                                               \
                (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags),          \
                ORDERED(stream, (stream, address, value, flags)))                                  \
  SEALANE_TWINS(cuStreamWriteValue32##version, _ptsz,                                              \
                (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags),          \
                ORDERED(stream, (stream, address, value, flags)))                                  \
  SEALANE_TWINS(cuStreamWriteValue64##version, _ptsz,                                              \
                (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags),          \
                ORDERED(stream, (stream, address, value, flags)))                                  \
  SEALANE_TWINS(cuStreamBatchMemOp##version, _ptsz,                                                \
                (CUstream stream, unsigned count, CUstreamBatchMemOpParams* list, unsigned flags), \
                ORDERED(stream, (stream, count, list, flags)))
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
// Of plain memory too.
SEALANE_TWINS(cuMemFreeAsync, _ptsz, (CUdeviceptr address, CUstream stream),
              ordered(
                  named(stream, mode),
                  [&] {
                    return free_later(address, named(stream, mode),
                                      [&] { return next(address, stream); });
                  },
                  called, gone_from_device(address)))
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
              ORDERED(stream, (semaphores, parameters, count, stream)))
SEALANE_TWINS(cuMemPrefetchAsync, _ptsz,
              (CUdeviceptr address, size_t bytes, CUdevice to, CUstream stream),
              ORDERED(stream, (address, bytes, to, stream)))
SEALANE_TWINS(cuMemPrefetchAsync_v2, _ptsz,
              (CUdeviceptr address, size_t bytes, CUmemLocation to, unsigned flags,
               CUstream stream),
              ORDERED(stream, (address, bytes, to, flags, stream)))
#define PREFETCH_BATCH(symbol)                                                                    \
  SEALANE_TWINS(symbol, _ptsz,                                                                    \
                (CUdeviceptr * list, size_t * bytes, size_t count, CUmemLocation * places,        \
                 size_t * starts, size_t place_count, unsigned long long flags, CUstream stream), \
                ORDERED(stream, (list, bytes, count, places, starts, place_count, flags, stream)))
PREFETCH_BATCH(cuMemPrefetchBatchAsync)
PREFETCH_BATCH(cuMemDiscardAndPrefetchBatchAsync)
SEALANE_TWINS(cuMemDiscardBatchAsync, _ptsz,
              (CUdeviceptr * list, size_t* bytes, size_t count, unsigned long long flags,
               CUstream stream),
              ORDERED(stream, (list, bytes, count, flags, stream)))
SEALANE_TWINS(cuMemBatchDecompressAsync, _ptsz,
              (void* list, size_t count, unsigned flags, size_t* failed, CUstream stream),
              ORDERED(stream, (list, count, flags, failed, stream)))
SEALANE_TWINS(cuMemMapArrayAsync, _ptsz, (void* list, unsigned count, CUstream stream),
              ORDERED(stream, (list, count, stream)))
SEALANE_TWINS(cuGraphicsMapResources, _ptsz, (unsigned count, void** list, CUstream stream),
              ORDERED(stream, (count, list, stream)))
SEALANE_TWINS(cuGraphicsUnmapResources, _ptsz, (unsigned count, void** list, CUstream stream),
              ORDERED(stream, (count, list, stream)))
// All streams of a context wait. Behind work of the legacy stream every copy is marked anew.
SEALANE_SINGLE(cuCtxWaitEvent, (CUcontext context, CUevent event),
               ordered(
                   Concern::context(context), named(nullptr, mode),
                   [&] { return next(context, event); }, called))
SEALANE_SINGLE(cuGreenCtxWaitEvent, (void* context, CUevent event),
               ORDERED(nullptr, (context, event)))
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

// It goes, though its context has failed, and the call says so.
CUresult destroy_stream(CUstream stream, CUresult (*next)(CUstream)) {
  serve::Runtime* runtime = serve::Runtime::get();
  if (runtime == nullptr) return next(stream);
  const CUresult left = left_error(*runtime, handle(stream));
  CUresult result = CUDA_SUCCESS;
  bool gone = false;
  runtime->destroy_stream(handle(stream), [&] {
    result = next(stream);
    return gone = result == CUDA_SUCCESS || fails_context(result);
  });
  if (!gone) return result;
  forget_object(stream);
  return left != CUDA_SUCCESS ? left : result;
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

#define WAITING(symbol, parameters, arguments, add, concern) \
  SEALANE_SINGLE(symbol, parameters, waiting([&] { return next arguments; }, called, add, concern))
WAITING(cuEventSynchronize, (CUevent event), (event), as(serve::Call::sync_event, event),
        Concern::event(event))
WAITING(cuEventQuery, (CUevent event), (event), asks(serve::Call::query_event, event),
        Concern::event(event))
WAITING(cuCtxSynchronize, (), (), as(serve::Call::sync_context), Concern())
WAITING(cuCtxSynchronize_v2, (CUcontext context), (context), waits_for(context),
        Concern::context(context))

#define DESTROY(symbol)                                                                       \
  SEALANE_SINGLE(symbol, (CUstream stream),                                                   \
                 in_any_case([&] { return destroy_stream(stream, next); }, "cuStreamDestroy", \
                             as(serve::Call::destroy_stream), handle(stream)))
DESTROY(cuStreamDestroy)
DESTROY(cuStreamDestroy_v2)

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
