// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Contexts of the program, and what they have failed with. The first error stands, as in CUDA:
// every later call on the context returns it.
//
// A failure is known at once: nothing of the context is carried or delivered any more. It is final
// when the driver has failed the context too: until then what stands behind a gate would run if the
// gate opened.
//
// Allocates in expect() alone, for contexts that were expected. Pure.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "core/copy/copy_call.h"

namespace sealane {

class Failures {
 public:
  // It may fail: from now on there is room for that.
  void expect(ContextKey context) {
    if (find(context) == nullptr) contexts_.push_back({context});
  }
  void fail(ContextKey context, ErrorCode code) {
    expect(context);
    Entry& entry = *find(context);
    if (entry.code != 0) return;
    entry.code = code;
    ++failed_;
  }
  void finish(ContextKey context) {
    if (Entry* const entry = find(context)) entry->final = true;
  }
  void forget(ContextKey context) {
    failed_ -= failed(context) ? 1 : 0;
    std::erase_if(contexts_, [&](const Entry& entry) { return entry.context == context; });
  }

  bool any() const { return failed_ > 0; }
  bool failed(ContextKey context) const { return of(context) != 0; }
  bool final(ContextKey context) const {
    const Entry* const entry = find(context);
    return entry != nullptr && entry->final;
  }
  ErrorCode of(ContextKey context) const {
    const Entry* const entry = find(context);
    return entry == nullptr ? 0 : entry->code;
  }

 private:
  struct Entry {
    ContextKey context = 0;
    ErrorCode code = 0;
    bool final = false;
  };

  const Entry* find(ContextKey context) const {
    const auto found = std::find_if(contexts_.begin(), contexts_.end(),
                                    [&](const Entry& entry) { return entry.context == context; });
    return found == contexts_.end() ? nullptr : &*found;
  }
  Entry* find(ContextKey context) { return const_cast<Entry*>(std::as_const(*this).find(context)); }

  std::vector<Entry> contexts_;  // few
  size_t failed_ = 0;
};

}  // namespace sealane
