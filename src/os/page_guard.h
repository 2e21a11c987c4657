// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Page guards: has this memory been written since? The kernel keeps the answer (userfaultfd in
// asynchronous write-protect mode, Linux 6.7): a write to a guarded page costs the writer one
// fault inside the kernel, nobody is called, and a later scan tells. Writes by system calls count.
//
// What it proves: written() == false means that every page of the range has been mapped and
//              unwritten since arm(). Unmapping, remapping or discarding memory counts as writing.
// What it cannot see, and whoever uses it must exclude: writes by hardware or io_uring into pages
//              pinned before arm() (os/unseen_writers.h).
// Refused:     memory of which there can be another view (shared mappings, files): a write through
//              the other view would not be seen.
// Edges:       whole pages are guarded, so a write beside the range on the same page counts.
//              arm() forgets earlier writes to all pages it covers: before arming a range, check
//              the armed ranges whose pages() overlap with its own.
// Failure:     io errors if the kernel refuses; usage errors if the memory is of the wrong kind.
// Concurrency: any thread may call anything. A child process opens its own.
#pragma once

#include <string_view>

#include "base/range.h"
#include "base/result.h"
#include "os/descriptor.h"
#include "os/mappings.h"

namespace sealane {

// The whole pages that hold `range`.
Range pages(const Range& range);

// May a kernel be asked the quick way which pages were written? Before Linux 6.15 that misreads the
// entry of a page that is swapped out, or moved at that moment, and may call a written page clean.
bool scans_quickly(std::string_view kernel_release);  // as `uname -r` has it

class PageGuards {
 public:
  // One per process. Needs no privilege.
  static Result<PageGuards> open();
  static Result<PageGuards> open(std::string_view kernel_release);  // trusted as far as that one

  // From now on writes are noticed. Read the source after this, not before.
  Status arm(const Range& range) const;

  // Changes nothing: asking again gives the same answer or a later one.
  Result<bool> written(const Range& range) const;

  // Stops noticing; later writes cost nothing extra. Afterwards the pages count as written.
  Status disarm(const Range& range) const;

 private:
  PageGuards(Descriptor faults, Descriptor pagemap, Mappings mappings, bool quick);

  Status check_guardable(const Range& whole_pages) const;
  bool is_proved_clean(const Range& whole_pages) const;

  Descriptor faults_;   // userfaultfd
  Descriptor pagemap_;  // /proc/self/pagemap
  Mappings mappings_;
  bool quick_;
};

}  // namespace sealane
