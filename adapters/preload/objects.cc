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

auto made_event(CUevent* made) {
  return [=](serve::Event& event) {
    event.call = serve::Call::create_event;
    if (event.code == CUDA_SUCCESS) event.object = reinterpret_cast<uint64_t>(*made);
  };
}

}  // namespace

SEALANE_SINGLE(cuStreamCreate, (CUstream * stream, unsigned flags),
               plain([&] { return next(stream, flags); }, called, made_stream(stream, flags)))
SEALANE_SINGLE(cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority),
               plain([&] { return next(stream, flags, priority); }, called,
                     made_stream(stream, flags)))
SEALANE_SINGLE(cuEventCreate, (CUevent * event, unsigned flags),
               plain([&] { return next(event, flags); }, called, made_event(event)))
SEALANE_SINGLE(cuEventDestroy_v2, (CUevent event),
               plain([&] { return next(event); }, "cuEventDestroy",
                     as(serve::Call::destroy_event, event)))

// What cudaProfilerStart and its twin end in. The driver's answer is the program's, whatever state
// we are in.
#define PROFILE(symbol, which)                                                                   \
  SEALANE_SINGLE(symbol, (),                                                                     \
                 serve::Runtime::get() == nullptr ? next()                                       \
                                                  : told(                                        \
                                                        serve::EventKind::call, called, nullptr, \
                                                        [&] { return next(); }, as(which)))
PROFILE(cuProfilerStart, serve::Call::start_profile)
PROFILE(cuProfilerStop, serve::Call::stop_profile)
