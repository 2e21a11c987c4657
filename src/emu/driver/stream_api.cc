// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Streams, events, host functions, stream memory operations.

#include <algorithm>

#include "emu/driver/api.h"

using namespace sealane::emu;

namespace {

constexpr int kPriorityGreatest = -5;

CUresult create_stream(CUstream* out, unsigned flags, int priority) {
  return in_context([&](Driver& d, Context& context) {
    if (out == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    auto object = std::make_shared<StreamObject>();
    object->context = context.shared_from_this();
    object->stream = context.create_stream(flags, std::clamp(priority, kPriorityGreatest, 0));
    *out = d.streams.add(std::move(object));
    return CUDA_SUCCESS;
  });
}

// Fills *out from a stream.
template <typename Value, typename Work>
CUresult ask_stream(CUstream stream, DefaultStream mode, Value* out, Work&& work) {
  return on_stream(stream, mode, [&](Driver&, ResolvedStream& s) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = work(s);
    return CUDA_SUCCESS;
  });
}

CUresult synchronise(CUstream stream, DefaultStream mode) {
  return on_stream(stream, mode, [&](Driver& d, ResolvedStream& s) {
    const CUresult allowed = allow_synchronising(d, &s);
    if (allowed != CUDA_SUCCESS) return allowed;
    ++counters().synchronisations;
    // The legacy stream stands for every blocking stream: an empty command waits for them all.
    const bool legacy = s.stream == s.context->legacy();
    const Fence fence = legacy ? s.context->submit(s.stream, {}) : s.stream->tail();
    d.host.refresh();  // a kernel may wait for what the host wrote
    const CUresult result = finish(*s.context, fence);
    d.host.refresh();
    return result;
  });
}

CUresult query(CUstream stream, DefaultStream mode) {
  return on_stream(stream, mode, [&](Driver& d, ResolvedStream& s) {
    const CUresult allowed = allow_synchronising(d, &s);
    if (allowed != CUDA_SUCCESS) return allowed;
    return s.stream->idle() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult await_event(CUstream stream, DefaultStream mode, CUevent handle, unsigned flags) {
  return on_stream(stream, mode, [&](Driver& d, ResolvedStream& s) {
    const auto event = d.events.find(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
    return submit(d, s, AwaitOperation{event}, false);
  });
}

CUresult record_event(CUevent handle, CUstream stream, DefaultStream mode, unsigned flags) {
  return on_stream(stream, mode, [&](Driver& d, ResolvedStream& s) {
    const auto event = d.events.find(handle);
    if (!event || event->context != s.context) return CUDA_ERROR_INVALID_HANDLE;
    if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
    return submit(d, s, RecordOperation{.event = event, .called = true}, false);
  });
}

CUresult host_function(CUstream stream, DefaultStream mode, HostOperation operation) {
  return on_stream(stream, mode, [&](Driver& d, ResolvedStream& s) {
    if (operation.function == nullptr && operation.callback == nullptr) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return submit(d, s, operation, false);
  });
}

CUresult memory_operation(CUstream stream, DefaultStream mode, MemoryOperation operation) {
  return on_stream(stream, mode, [&](Driver& d, ResolvedStream& s) {
    return submit(d, s, MemoryOperations{{operation}}, false);
  });
}

CUresult memory_operations(CUstream stream, DefaultStream mode, unsigned count,
                           const CUstreamBatchMemOpParams* list, unsigned flags) {
  return on_stream(stream, mode, [&](Driver& d, ResolvedStream& s) {
    constexpr unsigned kCountMax = 256;
    if (list == nullptr || flags != 0 || count > kCountMax) return CUDA_ERROR_INVALID_VALUE;
    MemoryOperations operations;
    for (unsigned i = 0; i < count; ++i) {
      const auto& p = list[i].waitValue;
      switch (list[i].operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
          operations.all.push_back({true, false, p.flags, p.address, p.value});
          break;
        case CU_STREAM_MEM_OP_WAIT_VALUE_64:
          operations.all.push_back({true, true, p.flags, p.address, p.value64});
          break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
          operations.all.push_back({false, false, p.flags, p.address, p.value});
          break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
          operations.all.push_back({false, true, p.flags, p.address, p.value64});
          break;
        case CU_STREAM_MEM_OP_BARRIER:
        case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
          break;  // everything before is visible already
        default:
          return CUDA_ERROR_INVALID_VALUE;
      }
    }
    return submit(d, s, std::move(operations), false);
  });
}

// work(EventObject&) of a live event whose context is healthy.
template <typename Work>
CUresult with_event(CUevent handle, Work&& work) {
  return guarded([&](Driver& d) {
    const auto event = d.events.find(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    {
      const std::lock_guard lock(d.capture_mutex);
      if (event->capture) return CUDA_ERROR_CAPTURED_EVENT;
    }
    return work(*event);
  });
}

CUresult elapsed(float* milliseconds, CUevent start, CUevent end) {
  return guarded([&](Driver& d) {
    const auto first = d.events.find(start);
    const auto last = d.events.find(end);
    if (!first || !last) return CUDA_ERROR_INVALID_HANDLE;
    if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (((first->flags | last->flags) & CU_EVENT_DISABLE_TIMING) != 0) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    const auto from = first->recording();
    const auto to = last->recording();
    if (!from || !to) return CUDA_ERROR_INVALID_HANDLE;
    if (!from->fence.passed() || !to->fence.passed()) return CUDA_ERROR_NOT_READY;
    const double real = static_cast<double>(to->at.load()) - static_cast<double>(from->at.load());
    *milliseconds = static_cast<float>(real / config()->dilation / 1e6);
    return CUDA_SUCCESS;
  });
}

}  // namespace

EMU_API cuStreamCreate(CUstream* stream, unsigned flags) { return create_stream(stream, flags, 0); }

EMU_API cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return create_stream(stream, flags, priority);
}

EMU_API cuStreamDestroy_v2(CUstream handle) {
  return guarded([&](Driver& d) {
    const auto object = d.streams.find(handle);
    if (!object) return CUDA_ERROR_INVALID_HANDLE;
    if (!leave_capture(d, *object)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    d.streams.remove(handle);
    // What it still has to do goes on.
    object->context->forget_stream(object->stream);
    return object->context->failure();
  });
}

EMU_TWINS(cuStreamGetPriority, _ptsz, (CUstream stream, int* priority),
          ask_stream(stream, mode, priority,
                     [](ResolvedStream& s) { return s.stream->priority(); }))
EMU_TWINS(cuStreamGetFlags, _ptsz, (CUstream stream, unsigned* flags),
          ask_stream(stream, mode, flags, [](ResolvedStream& s) { return s.stream->flags(); }))
EMU_TWINS(cuStreamGetId, _ptsz, (CUstream stream, unsigned long long* id),
          ask_stream(stream, mode, id,
                     [](ResolvedStream& s) { return s.context->id() << 32 | s.stream->id(); }))
EMU_TWINS(cuStreamGetCtx, _ptsz, (CUstream stream, CUcontext* context),
          ask_stream(stream, mode, context, [](ResolvedStream& s) {
            return reinterpret_cast<CUcontext>(s.context.get());
          }))
EMU_TWINS(cuStreamGetDevice, _ptsz, (CUstream stream, CUdevice* device),
          ask_stream(stream, mode, device,
                     [](ResolvedStream& s) { return s.context->gpu().ordinal; }))
EMU_TWINS(cuStreamQuery, _ptsz, (CUstream stream), query(stream, mode))
EMU_TWINS(cuStreamSynchronize, _ptsz, (CUstream stream), synchronise(stream, mode))
EMU_TWINS(cuStreamWaitEvent, _ptsz, (CUstream stream, CUevent event, unsigned flags),
          await_event(stream, mode, event, flags))
EMU_TWINS(cuLaunchHostFunc, _ptsz, (CUstream stream, CUhostFn function, void* data),
          host_function(stream, mode, {function, data, nullptr, nullptr}))
EMU_TWINS(cuStreamAddCallback, _ptsz,
          (CUstream stream, CUstreamCallback callback, void* data, unsigned),
          host_function(stream, mode, {nullptr, data, callback, stream}))

#define MEMORY_OPERATIONS(version)                                                             \
  EMU_TWINS(cuStreamWaitValue32##version, _ptsz,                                               \
            (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags),          \
            memory_operation(stream, mode, {true, false, flags, address, value}))              \
  EMU_TWINS(cuStreamWaitValue64##version, _ptsz,                                               \
            (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags),          \
            memory_operation(stream, mode, {true, true, flags, address, value}))               \
  EMU_TWINS(cuStreamWriteValue32##version, _ptsz,                                              \
            (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags),          \
            memory_operation(stream, mode, {false, false, flags, address, value}))             \
  EMU_TWINS(cuStreamWriteValue64##version, _ptsz,                                              \
            (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags),          \
            memory_operation(stream, mode, {false, true, flags, address, value}))              \
  EMU_TWINS(cuStreamBatchMemOp##version, _ptsz,                                                \
            (CUstream stream, unsigned count, CUstreamBatchMemOpParams* list, unsigned flags), \
            memory_operations(stream, mode, count, list, flags))
MEMORY_OPERATIONS()
MEMORY_OPERATIONS(_v2)
#undef MEMORY_OPERATIONS

EMU_API cuEventCreate(CUevent* out, unsigned flags) {
  return in_context([&](Driver& d, Context& context) {
    constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_EVENT_INTERPROCESS) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    if ((flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
    const RealNs began = thread_ns();
    auto event = std::make_shared<EventObject>();
    event->context = context.shared_from_this();
    event->flags = flags;
    *out = d.events.add(std::move(event));
    charge_call(context, began);
    return CUDA_SUCCESS;
  });
}

EMU_API cuEventDestroy_v2(CUevent handle) {
  return guarded([&](Driver& d) {
    return d.events.remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}

EMU_TWINS(cuEventRecord, _ptsz, (CUevent event, CUstream stream),
          record_event(event, stream, mode, 0))
EMU_TWINS(cuEventRecordWithFlags, _ptsz, (CUevent event, CUstream stream, unsigned flags),
          record_event(event, stream, mode, flags))

EMU_API cuEventQuery(CUevent handle) {
  return with_event(handle, [](EventObject& event) {
    const auto recording = event.recording();
    if (recording && !recording->fence.passed()) return CUDA_ERROR_NOT_READY;
    return event.context->failure();
  });
}

EMU_API cuEventSynchronize(CUevent handle) {
  return with_event(handle, [](EventObject& event) {
    ++counters().synchronisations;
    Driver* d = driver();
    if (d != nullptr) d->host.refresh();  // a kernel may wait for what the host wrote
    if (const auto recording = event.recording()) recording->fence.wait();
    if (d != nullptr) d->host.refresh();
    return event.context->failure();
  });
}

EMU_API cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return elapsed(milliseconds, start, end);
}

EMU_API cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return elapsed(milliseconds, start, end);
}
