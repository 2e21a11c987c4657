// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "start.h"

#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>

#include "attach.h"
#include "base/check.h"
#include "base/log.h"
#include "binding.h"
#include "evp.h"
#include "launch_times.h"
#include "os/gpu_probe.h"
#include "os/pace.h"
#include "port.h"
#include "serve/live_speculator.h"
#include "serve/options.h"
#include "serve/process.h"
#include "serve/runtime.h"
#include "table.h"
#include "watch/last_signals.h"
#include "watch/presence.h"
#include "watch/watch.h"

namespace sealane::preload {
namespace {

std::atomic<bool> forked{false};
std::atomic<int> starting{0};  // calls of cuInit that have not failed

// The emulated driver paces our workers; a real one has none of this.
void take_pace() {
  Pace found;
  find_in_driver(found.clock, "sealane_emu_clock_ns");
  find_in_driver(found.pace, "sealane_emu_pace");
  find_in_driver(found.answered, "sealane_emu_pace_answered");
  find_in_driver(found.dilation, "sealane_emu_dilation");
  find_in_driver(found.go_on, "sealane_emu_go_on");
  if (found.clock != nullptr && found.pace != nullptr) set_pace(found);
}

const char* variable(const char* name) { return std::getenv(name); }

void throw_broken(const char* file, int line, const char* what) {
  std::fprintf(stderr, "sealane: broken invariant at %s:%d %s: stepping aside there\n", file, line,
               what);
  throw serve::BrokenInvariant();
}

// Nothing of ours is left in anybody's way.
void leave_everything() {
  stand_aside();
  stop_binding();
}

void start() {
  const CcState cc = ask_cc_state();
  const bool on = cc == CcState::on || cc == CcState::dev_tools || cc == CcState::simulated;
  const bool watching = serve::is_watching_asked(variable);
  if (!on && !watching) {
    const serve::Presence off{.confidential = false};
    serve::say_presence(variable, serve::options(), off);
    open_to_attach(variable, serve::describe(serve::options(), off));
    return leave_everything();
  }
  if (!on) serve::only_watch();
  take_pace();
  set_check_handler(&throw_broken);
  // Threads do not survive a fork, and the driver does not work in the child either.
  pthread_atfork(nullptr, nullptr, [] {
    forked.store(true);
    if (serve::Runtime* runtime = serve::Runtime::get()) runtime->pool().abandon();
    serve::Runtime::abandon();
    serve::process().sinks.remove_all();
    close_to_attach();
    stop_answering();
  });
  serve::Runtime::start(port());
  const serve::WatchContext context{
      .workers = serve::Runtime::get()->pool().size(),
      .metrics_every = std::chrono::seconds(serve::options().metrics_seconds),
      .dilation = pace().dilation,
      .speculation = serve::Runtime::get()->speculation()};
  const serve::Watchers watchers =
      watching ? serve::start_watching(variable, context) : serve::Watchers{};
  start_answering(serve::Runtime::get()->pool());
  const serve::Presence here{.confidential = on,
                             .watching = watching,
                             .speculates = context.speculation.policy != nullptr,
                             .workers = context.workers};
  serve::say_presence(variable, serve::options(), here);
  open_to_attach(variable, serve::describe(serve::options(), here), watchers,
                 serve::stats_for_later(variable, context, watchers.observer));
}

void start_or_not() {
  try {
    start();
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "sealane: does nothing, it could not start: %s\n", problem.what());
    if (serve::Runtime::get() == nullptr) leave_everything();
  }
}

// The last of ours that runs in a process: later events are counted but no more told.
__attribute__((destructor)) void tell_what_was_seen() { serve::tell_everything(); }

}  // namespace

bool disabled() { return serve::options().disabled || forked.load(std::memory_order_relaxed); }

void driver_starts() {
  find_all_real();
  find_port();
  find_launch_times();
  starting.fetch_add(1);
  if (!stands_aside()) start_binding();
}

void driver_did_not_start() {
  if (starting.fetch_sub(1) > 1 || stands_aside()) return;
  stop_binding();
  if (starting.load() > 0) start_binding();  // somebody has begun meanwhile
}

void driver_is_up() {
  static std::once_flag once;
  if (!disabled()) std::call_once(once, start_or_not);
}

}  // namespace sealane::preload
