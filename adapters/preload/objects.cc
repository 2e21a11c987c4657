// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Streams and events being made and unmade: whose they are. And the part of a run that the program
// calls measured, of interest only to those who watch.

#include "objects.h"

#include <mutex>
#include <new>
#include <shared_mutex>
#include <unordered_map>

#include "hooks.h"

using namespace sealane::preload;
namespace serve = sealane::serve;

namespace {

struct Objects {
  std::shared_mutex mutex;
  std::unordered_map<const void*, serve::ContextHandle> whose;
};

Objects& objects() {
  static Objects& all = *new Objects;
  return all;
}

serve::ContextHandle find_noted(const void* object) {
  const std::shared_lock lock(objects().mutex);
  const auto found = objects().whose.find(object);
  return found != objects().whose.end() ? found->second : nullptr;
}

}  // namespace

namespace sealane::preload {

void note_object(const void* object) noexcept try {
  if (serve::Runtime::get() == nullptr) return;
  const std::unique_lock lock(objects().mutex);
  objects().whose[object] = handle(current_context());
} catch (const std::bad_alloc&) {
}

void forget_object(const void* object) {
  const std::unique_lock lock(objects().mutex);
  objects().whose.erase(object);
}

void forget_objects_of(serve::ContextHandle context) {
  const std::unique_lock lock(objects().mutex);
  std::erase_if(objects().whose, [&](const auto& entry) { return entry.second == context; });
}

serve::ContextHandle Concern::whose() const {
  if (context_ != nullptr) return handle(context_);
  const void* const object = event_ != nullptr ? static_cast<const void*>(event_) : stream_;
  if (serve::ContextHandle noted = find_noted(object)) return noted;
  serve::ContextHandle found = nullptr;
  if (port().context_of(stream_, found) == serve::kSuccess) return found;
  return handle(current_context());
}

}  // namespace sealane::preload

namespace {

// What a call has made, if it has.
template <typename Object, typename Make>
CUresult noted(Object* made, Make&& make) {
  const CUresult result = make();
  if (result == CUDA_SUCCESS) note_object(*made);
  return result;
}

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

CUresult destroy_event(CUevent event, CUresult (*next)(CUevent)) {
  const CUresult result = next(event);
  if (result == CUDA_SUCCESS && serve::Runtime::get() != nullptr) forget_object(event);
  return result;
}

}  // namespace

SEALANE_SINGLE(cuStreamCreate, (CUstream * stream, unsigned flags),
               plain([&] { return noted(stream, [&] { return next(stream, flags); }); }, called,
                     made_stream(stream, flags)))
SEALANE_SINGLE(cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority),
               plain([&] { return noted(stream, [&] { return next(stream, flags, priority); }); },
                     called, made_stream(stream, flags)))
SEALANE_SINGLE(cuEventCreate, (CUevent * event, unsigned flags),
               plain([&] { return noted(event, [&] { return next(event, flags); }); }, called,
                     made_event(event)))
SEALANE_SINGLE(cuEventDestroy_v2, (CUevent event),
               in_any_case([&] { return destroy_event(event, next); }, "cuEventDestroy",
                           as(serve::Call::destroy_event, event), Concern::event(event)))

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
