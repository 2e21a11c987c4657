// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What there is once in a process that Sealane serves, and what there is once in each of its
// threads. There from before the first call and never taken down: threads of ours and of the
// driver's, and exit handlers, use it to the end. A child of a fork has what its parent had then;
// who forks says what of it ends (adapters/preload/start.cc).
//
// Each part has its own rule of who may call it; nothing is decided here.
#pragma once

#include <atomic>

#include "serve/events.h"
#include "serve/known_keys.h"
#include "serve/live_speculators.h"
#include "serve/pinned_proxy.h"

namespace sealane::serve {

class Runtime;

struct Process {
  std::atomic<Runtime*> runtime{nullptr};
  EventSinks sinks;
  KnownKeys keys;
  LiveSpeculators speculators;
  PinnedProxies proxies;
  std::atomic<int> refused_openings{0};  // under way (messages.h)
};

union ImmortalProcess {
  constexpr ImmortalProcess() : value() {}
  ~ImmortalProcess() {}
  Process value;
};
extern ImmortalProcess immortal_process;
inline Process& process() { return immortal_process.value; }

struct ThreadState {
  uint64_t copy = 0;                   // that it has handed to the driver, 0 if none
  LiveSpeculator* carrying = nullptr;  // whose turn that is
  bool refuses = false;                // what the driver opens here
};
ThreadState& this_thread();

}  // namespace sealane::serve
