// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/events.h"

namespace sealane::serve {
namespace {

constexpr size_t kSinksMax = 8;
std::atomic<EventSink*> sinks[kSinksMax];
std::atomic<size_t> sink_count{0};

}  // namespace

void add_sink(EventSink& sink) {
  const size_t at = sink_count.load();
  if (at == kSinksMax) return;
  sinks[at].store(&sink);
  sink_count.store(at + 1);
}

void remove_sinks() { sink_count.store(0); }

bool watched() { return sink_count.load(std::memory_order_relaxed) != 0; }

void report(const Event& event) {
  const size_t count = sink_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) sinks[i].load(std::memory_order_relaxed)->handle(event);
}

void finish_sinks() {
  const size_t count = sink_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) sinks[i].load(std::memory_order_relaxed)->finish();
}

}  // namespace sealane::serve
