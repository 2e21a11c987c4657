// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The guards of what was sealed ahead: has this range been written since it was read? Page guards
// for memory that this process alone can have given away (the runtime allocated it), where the
// kernel allows them and nobody can write past the page tables; elsewhere the caller compares
// digests.
//
// A guard is added when a plan is made and armed by the first worker that is about to read, so a
// plan that is given up before costs nothing. Two guards may share a page at their edges: arming
// one would forget what the other must notice, so the other is looked at first.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/copy.h"
#include "os/page_guard.h"
#include "os/unseen_writers.h"

namespace sealane::serve {

class GuardBook {
 public:
  struct Entry {
    enum class State : uint8_t { waiting, pages, digest };
    explicit Entry(const Range& guarded) : range(guarded) {}
    const Range range;
    std::once_flag once;
    std::atomic<State> state{State::waiting};
    std::atomic<bool> told{false};    // the core knows how it is guarded
    std::atomic<bool> broken{false};  // seen written before somebody else armed a shared page
  };
  using Pointer = std::shared_ptr<Entry>;

  // `pages` false: digests for everything.
  explicit GuardBook(bool pages);

  Pointer add(const Range& range);
  // Forgets it. True: its pages are still protected; disarm() when there is time for it.
  bool remove(const Range& range);
  void disarm(const Range& range);
  // Before the first byte is read. Afterwards `state` tells how it is guarded: by pages only if
  // `by_pages` may do.
  void arm(Entry& entry, bool by_pages);
  // Page guards only: has `part` of it been written since?
  bool written(Entry& entry, const Range& part);
  // What of `host` has been written since its guards were armed, message by message: of a range
  // that was written in one place the others' slots are still right. True: of some only digests
  // tell.
  bool find_written(const Range& host, uint64_t message_bytes, std::vector<Range>& out);
  // The guards that have a page in a range.
  std::vector<Pointer> find(const Range& range);

  bool guards_pages() const { return guards_.has_value(); }

 private:
  std::vector<Pointer> find_pages(const Range& range);

  std::optional<PageGuards> guards_;
  UnseenWriters unseen_;
  std::mutex arming_;  // held while the kernel changes protections, which takes a while
  std::mutex mutex_;   // taken after `arming_`
  std::vector<Pointer> entries_;
};

}  // namespace sealane::serve
