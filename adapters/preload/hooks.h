// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How a hook looks: the driver's own signature, then one of the shapes below around a call of the
// real function. With no runtime (not yet started, stepped aside, the child of a fork) a hook is
// two loads and a call; where there never will be one it is not even called (table.h). Declares the
// hooks that others of this folder need the real function of.
#pragma once

#include <cxxabi.h>

#include "base/time.h"
#include "objects.h"
#include "port.h"
#include "serve/runtime.h"
#include "table.h"
#include "tell.h"

// Every hook is a function-try-block that ends so: nothing is thrown through the driver's frames,
// or the program's, which may be C's. A thread that is cancelled goes on being cancelled.
#define SEALANE_UNTHROWN(symbol)                          \
  catch (abi::__forced_unwind&) {                         \
    throw;                                                \
  }                                                       \
  catch (...) {                                           \
    return ::sealane::preload::result_of_thrown(#symbol); \
  }

// A hook: what it answers, around the driver's own function `next`; `called` names the call.
#define SEALANE_ANSWER(symbol, name, parameters, default_stream, ...)                         \
  SEALANE_HOOKED(symbol) parameters try {                                                     \
    [[maybe_unused]] constexpr auto mode = ::sealane::preload::DefaultStream::default_stream; \
    [[maybe_unused]] constexpr const char* called = #name;                                    \
    const auto next = SEALANE_REAL(symbol);                                                   \
    return next == nullptr ? CUDA_ERROR_NOT_INITIALIZED : __VA_ARGS__;                        \
  }                                                                                           \
  SEALANE_UNTHROWN(symbol)
#define SEALANE_SINGLE(name, parameters, ...) \
  SEALANE_ANSWER(name, name, parameters, legacy, __VA_ARGS__)
// With its per-thread-default-stream twin; `mode` says which it is.
#define SEALANE_TWINS(name, suffix, parameters, ...)          \
  SEALANE_ANSWER(name, name, parameters, legacy, __VA_ARGS__) \
  SEALANE_ANSWER(name##suffix, name, parameters, per_thread, __VA_ARGS__)

extern "C" {
CUresult hooked_cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device);
CUresult hooked_cuCtxDestroy_v2(CUcontext context);
CUresult hooked_cuCtxSynchronize();
CUresult hooked_cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device);
CUresult hooked_cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult hooked_cuMemAlloc_v2(CUdeviceptr* address, size_t bytes);
CUresult hooked_cuMemHostAlloc(void** memory, size_t bytes, unsigned flags);
CUresult hooked_cuMemFreeHost(void* memory);
CUresult hooked_cuPointerGetAttribute(void* data, CUpointer_attribute attribute,
                                      CUdeviceptr address);
CUresult hooked_cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                     CUstream stream);
CUresult hooked_cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes,
                                     CUstream stream);
CUresult hooked_cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult hooked_cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream);
CUresult hooked_cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream);
CUresult hooked_cuStreamQuery(CUstream stream);
CUresult hooked_cuStreamSynchronize(CUstream stream);
CUresult hooked_cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                       unsigned flags);
CUresult hooked_cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data);
CUresult hooked_cuEventRecord(CUevent event, CUstream stream);
CUresult hooked_cuEventQuery(CUevent event);
CUresult hooked_cuEventDestroy_v2(CUevent event);
CUresult hooked_cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* params);
}

namespace sealane::preload {

// What a hook answers that something of ours was thrown in: out of memory, or an error nobody
// knows. Within a catch; says one line, once.
CUresult result_of_thrown(const char* hook) noexcept;

enum class DefaultStream : uint8_t { legacy, per_thread };

// Default streams get their names, so that the plain functions mean the same stream.
inline serve::StreamHandle named(CUstream stream, DefaultStream mode) {
  if (stream != nullptr) return handle(stream);
  return reinterpret_cast<serve::StreamHandle>(
      mode == DefaultStream::legacy ? serve::kLegacyStream : serve::kPerThreadStream);
}

// The error that a copy of ours left on the context that a call concerns, and on no other.
inline CUresult left_error(serve::Runtime& runtime, const Concern& concern = {}) {
  if (!runtime.any_failed()) return CUDA_SUCCESS;
  return static_cast<CUresult>(runtime.failure_of(concern.whose()));
}

// A call that goes into a stream.
template <typename Call, typename Add = NothingToAdd>
CUresult ordered(const Concern& concern, serve::StreamHandle stream, Call&& call, const char* name,
                 Add&& add = {}) {
  serve::Runtime* runtime = serve::Runtime::get();
  if (runtime == nullptr) return call();
  if (const CUresult left = left_error(*runtime, concern); left != CUDA_SUCCESS) return left;
  const serve::Runtime::Entering entering(*runtime, stream);
  return told(serve::EventKind::call, name, stream, call, add);
}

// The same where the stream says whose it is, as nearly always.
template <typename Call, typename Add = NothingToAdd>
CUresult ordered(serve::StreamHandle stream, Call&& call, const char* name, Add&& add = {}) {
  return ordered(stream, stream, call, name, add);
}

// A call that neither goes into a stream nor waits.
template <typename Call>
CUresult plain(Call&& call, const Concern& concern = {}) {
  serve::Runtime* runtime = serve::Runtime::get();
  if (runtime == nullptr) return call();
  const CUresult left = left_error(*runtime, concern);
  return left == CUDA_SUCCESS ? call() : left;
}

// The same for one that is told of.
template <typename Call, typename Add>
CUresult plain(Call&& call, const char* name, Add&& add, const Concern& concern = {}) {
  if (serve::Runtime::get() == nullptr) return call();
  return plain([&] { return told(serve::EventKind::call, name, concern.stream(), call, add); },
               concern);
}

// Codes that a context has for good.
constexpr bool fails_context(CUresult code) {
  return code == CUDA_ERROR_ECC_UNCORRECTABLE || (code >= 700 && code < 720);
}

// A call that a driver makes whatever became of the context, an end or a question: its answer is
// the program's. Only what it calls a failure of ours may be another code.
template <typename Call>
CUresult in_any_case(Call&& call, const Concern& concern = {}) {
  const CUresult result = call();
  serve::Runtime* runtime = serve::Runtime::get();
  if (runtime == nullptr || !fails_context(result)) return result;
  const CUresult left = left_error(*runtime, concern);
  return left != CUDA_SUCCESS ? left : result;
}

// The same for one that is told of.
template <typename Call, typename Add>
CUresult in_any_case(Call&& call, const char* name, Add&& add, const Concern& concern) {
  if (serve::Runtime::get() == nullptr) return call();
  return in_any_case(
      [&] { return told(serve::EventKind::call, name, concern.stream(), call, add); }, concern);
}

// A call that waits: an error of ours may have come up meanwhile, whatever the driver calls it.
template <typename Call, typename Add = NothingToAdd>
CUresult waiting(Call&& call, const char* name, Add&& add = {}, const Concern& concern = {}) {
  serve::Runtime* runtime = serve::Runtime::get();
  if (runtime == nullptr) return call();
  if (const CUresult left = left_error(*runtime, concern); left != CUDA_SUCCESS) return left;
  const CUresult result = told(serve::EventKind::wait, name, concern.stream(), call, add);
  const CUresult left = left_error(*runtime, concern);
  return left != CUDA_SUCCESS ? left : result;
}

}  // namespace sealane::preload
