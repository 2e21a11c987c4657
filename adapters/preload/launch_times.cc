// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "launch_times.h"

#include <atomic>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "hooks.h"

namespace sealane::preload {
namespace {

using EventPair = std::pair<CUevent, CUevent>;

struct Pending {
  EventPair events;
  CUcontext context;
  uint64_t number;
};

struct Calls {
  CUresult (*create)(CUevent*, unsigned) = nullptr;
  CUresult (*elapsed)(float*, CUevent, CUevent) = nullptr;
  Calls() {
    find_in_driver(create, "cuEventCreate");
    find_in_driver(elapsed, "cuEventElapsedTime");
  }
};

const Calls& calls() { return found_table<Calls>(); }

struct State {
  std::mutex mutex;
  std::deque<Pending> pending;
  std::map<CUcontext, std::vector<EventPair>> free;
  uint64_t launches = 0;
};

// Never destroyed: exit handlers of the program still launch.
State& state() {
  static State& made = *new State;
  return made;
}

bool wanted() {
  static const bool recording = std::getenv("SEALANE_RECORD") != nullptr;
  return recording;
}

EventPair take_pair(CUcontext context) {
  State& s = state();
  {
    const std::lock_guard lock(s.mutex);
    auto& free = s.free[context];
    if (!free.empty()) {
      const EventPair pair = free.back();
      free.pop_back();
      return pair;
    }
  }
  EventPair made{};
  if (calls().create == nullptr || calls().elapsed == nullptr) return {};
  if (calls().create(&made.first, 0) != CUDA_SUCCESS) return {};
  if (calls().create(&made.second, 0) != CUDA_SUCCESS) return {};
  return made;
}

void tell(uint64_t number, float milliseconds) {
  serve::Event event;
  event.kind = serve::EventKind::call;
  event.call = serve::Call::launch_time;
  event.id = number;
  // A driver's clock may say that a kernel ended before it began.
  event.bytes = milliseconds > 0 ? static_cast<uint64_t>(milliseconds * 1e6F) : 0;
  serve::report(event);
}

// While something is captured, asking for an event could break the capture.
bool may_ask() {
  const serve::Runtime* runtime = serve::Runtime::get();
  return wanted() && runtime != nullptr && !runtime->any_capturing();
}

}  // namespace

void find_launch_times() {
  if (wanted()) calls();
}

LaunchTimer::LaunchTimer(serve::StreamHandle stream) : stream_(stream) {
  if (!may_ask()) return;
  std::tie(before_, behind_) = take_pair(current_context());
  const auto at = reinterpret_cast<CUstream>(stream_);
  if (before_ != nullptr && SEALANE_REAL(cuEventRecord)(before_, at) != CUDA_SUCCESS) {
    before_ = nullptr;
  }
}

uint64_t LaunchTimer::stop(CUresult result) {
  if (before_ == nullptr || result != CUDA_SUCCESS) return 0;
  const auto at = reinterpret_cast<CUstream>(stream_);
  if (SEALANE_REAL(cuEventRecord)(behind_, at) != CUDA_SUCCESS) return 0;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.pending.push_back({{before_, behind_}, current_context(), ++s.launches});
  return s.launches;
}

void collect_launch_times() {
  if (!may_ask()) return;
  State& s = state();
  for (;;) {
    Pending oldest{};
    float milliseconds = 0;
    CUresult code = CUDA_SUCCESS;
    {
      const std::lock_guard lock(s.mutex);
      if (s.pending.empty()) return;
      oldest = s.pending.front();
      code = SEALANE_REAL(cuEventQuery)(oldest.events.second);
      if (code == CUDA_ERROR_NOT_READY) return;
      if (code == CUDA_SUCCESS) {
        code = calls().elapsed(&milliseconds, oldest.events.first, oldest.events.second);
      }
      s.pending.pop_front();
      if (code == CUDA_SUCCESS) s.free[oldest.context].push_back(oldest.events);
    }
    if (code == CUDA_SUCCESS) tell(oldest.number, milliseconds);
  }
}

void forget_launch_times() {
  if (!wanted()) return;
  collect_launch_times();
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.pending.clear();
  s.free.clear();
}

}  // namespace sealane::preload
