// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Streams and events being made and unmade, and the part of a run that the program calls measured:
// of interest only to those who watch.

#include "hooks.h"

using namespace sealane::preload;
namespace serve = sealane::serve;

namespace {

// A stream that its call has made.
auto made_stream(CUstream* stream, unsigned flags) {
  return [=](serve::Event& event) {
    event.call = serve::Call::create_stream;
    event.asynchronous = (flags & CU_STREAM_NON_BLOCKING) != 0;
    if (event.code == CUDA_SUCCESS) event.stream = reinterpret_cast<uint64_t>(*stream);
  };
}

}  // namespace

SEALANE_HOOKED cuStreamCreate(CUstream* stream, unsigned flags) try {
  const auto next = SEALANE_REAL(cuStreamCreate);
  if (next == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return plain([&] { return next(stream, flags); }, "cuStreamCreate", made_stream(stream, flags));
}
SEALANE_UNTHROWN

SEALANE_HOOKED cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) try {
  const auto next = SEALANE_REAL(cuStreamCreateWithPriority);
  if (next == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return plain([&] { return next(stream, flags, priority); }, "cuStreamCreateWithPriority",
               made_stream(stream, flags));
}
SEALANE_UNTHROWN

SEALANE_HOOKED cuEventCreate(CUevent* event, unsigned flags) try {
  const auto next = SEALANE_REAL(cuEventCreate);
  if (next == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return plain([&] { return next(event, flags); }, "cuEventCreate",
               [&](serve::Event& told_event) {
                 told_event.call = serve::Call::create_event;
                 if (told_event.code == CUDA_SUCCESS)
                   told_event.object = reinterpret_cast<uint64_t>(*event);
               });
}
SEALANE_UNTHROWN

SEALANE_HOOKED cuEventDestroy_v2(CUevent event) try {
  const auto next = SEALANE_REAL(cuEventDestroy_v2);
  if (next == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return plain([&] { return next(event); }, "cuEventDestroy",
               as(serve::Call::destroy_event, event));
}
SEALANE_UNTHROWN

// What cudaProfilerStart and its twin end in. The driver's answer is the program's, whatever state
// we are in.
#define PROFILE(symbol, which)                                                        \
  SEALANE_HOOKED symbol() try {                                                       \
    const auto next = SEALANE_REAL(symbol);                                           \
    if (next == nullptr) return CUDA_ERROR_NOT_INITIALIZED;                           \
    if (serve::Runtime::get() == nullptr) return next();                              \
    return told(                                                                      \
        serve::EventKind::call, #symbol, nullptr, [&] { return next(); }, as(which)); \
  }                                                                                   \
  SEALANE_UNTHROWN
PROFILE(cuProfilerStart, serve::Call::start_profile)
PROFILE(cuProfilerStop, serve::Call::stop_profile)
