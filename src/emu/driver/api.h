// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How an entry point looks: one line that names it, then the work inside guarded(), which turns
// exceptions into error codes (nothing may be thrown into a program) and refuses to work before
// cuInit() or after fork(). Internal calls never go through exported symbols.
#pragma once

#include <new>

#include "cuda_abi/cuda_types.h"
#include "emu/driver/objects.h"

#define EMU_API extern "C" __attribute__((visibility("default"))) CUresult

// An entry point and its per-thread-default-stream twin. In `body`, `mode` says which it is.
#define EMU_TWINS(name, suffix, parameters, body)                    \
  EMU_API name parameters {                                          \
    constexpr auto mode = ::sealane::emu::DefaultStream::legacy;     \
    return body;                                                     \
  }                                                                  \
  EMU_API name##suffix parameters {                                  \
    constexpr auto mode = ::sealane::emu::DefaultStream::per_thread; \
    return body;                                                     \
  }

namespace sealane::emu {

enum class DefaultStream : uint8_t { legacy, per_thread };

template <typename Work>
CUresult without_driver(Work&& work) noexcept {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}

// work(Driver&)
template <typename Work>
CUresult guarded(Work&& work) noexcept {
  return without_driver([&] {
    Driver* d = driver();
    return d == nullptr ? CUDA_ERROR_NOT_INITIALIZED : work(*d);
  });
}

std::shared_ptr<Context> current_context(Driver& d);

// work(Driver&, Context&) with the calling thread's context, if it is there and healthy.
template <typename Work>
CUresult in_context(Work&& work) noexcept {
  return guarded([&](Driver& d) {
    const auto context = current_context(d);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (context->failure() != CUDA_SUCCESS) return context->failure();
    return work(d, *context);
  });
}

// A stream as an entry point got it: a handle, or a name for a default stream.
struct ResolvedStream {
  std::shared_ptr<Context> context;
  std::shared_ptr<Stream> stream;
  std::shared_ptr<StreamObject> object;  // nullptr for default streams
};

CUresult resolve_stream(Driver& d, CUstream handle, DefaultStream mode, ResolvedStream& out);

// work(Driver&, ResolvedStream&) on a healthy context.
template <typename Work>
CUresult on_stream(CUstream handle, DefaultStream mode, Work&& work) noexcept {
  return guarded([&](Driver& d) {
    ResolvedStream stream;
    const CUresult found = resolve_stream(d, handle, mode, stream);
    return found == CUDA_SUCCESS ? work(d, stream) : found;
  });
}

// Submits, or adds a node if the stream is capturing. `wait`: returns when it is done.
CUresult submit(Driver& d, ResolvedStream& stream, Operation operation, bool wait);

// What CC mode adds to a call that hands something to the device and neither copies nor launches
// (gpu.call_cc_us): its caller is kept until then.
void charge_call(const Context& context, RealNs began);

// Waits for what was submitted and answers with the context's state.
CUresult finish(Context& context, const Fence& fence);

// 0, or why a synchronising call is not allowed now: somebody captures.
CUresult allow_synchronising(Driver& d, const ResolvedStream* stream);

// Copies, with the data path underneath (copy.cc).
CUresult run_copy(Driver& d, ResolvedStream& stream, const CopyOperation& copy, bool wait);

// Adds an operation to the capture a stream belongs to. NOT_READY: it belongs to none.
CUresult capture_operation(Driver& d, ResolvedStream& stream, Operation& operation);

// A stream that is about to go leaves the capture it has joined; what it did there stays. False: it
// is the one that the capture began with.
bool leave_capture(Driver& d, StreamObject& stream);

// All streams of a context that is about to go leave theirs. Captures that began with one end.
void leave_captures(Driver& d, const Context& context);

// A node is about to go: nothing that is captured follows it. Under Driver::capture_mutex.
void forget_captured(Driver& d, const GraphNode* node);

// Says once per name that the emulated GPU does not do this.
CUresult unsupported(const char* name);

}  // namespace sealane::emu
