// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/events.h"

#include "serve/process.h"

namespace sealane::serve {

void EventSinks::add(EventSink& sink) {
  const size_t at = count_.load();
  if (at == kMax) return;
  sinks_[at].store(&sink);
  count_.store(at + 1);
}

void EventSinks::report(const Event& event) const {
  const size_t count = count_.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) sinks_[i].load(std::memory_order_relaxed)->handle(event);
}

void EventSinks::finish() const {
  const size_t count = count_.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) sinks_[i].load(std::memory_order_relaxed)->finish();
}

bool watched() { return process().sinks.any(); }

void report(const Event& event) { process().sinks.report(event); }

}  // namespace sealane::serve
