// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Tells whoever watches of a call of the program: when, on which stream, with which result. A few
// loads and branches if nobody does.
#pragma once

#include "attach.h"
#include "base/time.h"
#include "launch_times.h"
#include "port.h"
#include "serve/events.h"

namespace sealane::preload {

struct NothingToAdd {
  void operator()(serve::Event&) const {}
};

// `add` says what is special about the call, after it returned.
template <typename Call, typename Add = NothingToAdd>
CUresult told(serve::EventKind kind, const char* name, serve::StreamHandle stream, Call&& call,
              Add&& add = {}) {
  notice_attach();
  if (!serve::watched()) return call();
  serve::Event event;
  event.kind = kind;
  event.text = name;
  event.stream = reinterpret_cast<uint64_t>(stream);
  serve::ContextHandle context = nullptr;
  if (port().context_of(stream, context) == serve::kSuccess) {
    event.context = reinterpret_cast<uint64_t>(context);
  }
  event.begin = SteadyClock().now();
  const CUresult result = call();
  event.end = SteadyClock().now();
  event.code = result;
  add(event);
  serve::report(event);
  collect_launch_times();
  return result;
}

// What most calls add: which call it was, and the object it names.
inline auto as(serve::Call call, const void* object = nullptr) {
  return [=](serve::Event& event) {
    event.call = call;
    event.object = reinterpret_cast<uint64_t>(object);
  };
}

// Memory, known once the call has succeeded.
template <typename Size>
auto made_on_device(const CUdeviceptr* address, Size bytes) {
  return [=](serve::Event& event) {
    event.call = serve::Call::allocate_device;
    if (event.code != CUDA_SUCCESS) return;
    event.device_address = *address;
    event.bytes = bytes();
  };
}

inline auto made_on_host(void* const* memory, uint64_t bytes) {
  return [=](serve::Event& event) {
    event.call = serve::Call::allocate_host;
    event.bytes = bytes;
    event.pinned = true;
    if (event.code == CUDA_SUCCESS) event.host = reinterpret_cast<uint64_t>(*memory);
  };
}

inline auto gone_from_device(CUdeviceptr address) {
  return [=](serve::Event& event) {
    event.call = serve::Call::free_device;
    event.device_address = address;
  };
}

inline auto gone_from_host(const void* memory) {
  return [=](serve::Event& event) {
    event.call = serve::Call::free_host;
    event.host = reinterpret_cast<uint64_t>(memory);
  };
}

}  // namespace sealane::preload
