// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Read traps: memory whose bytes come later. Whoever touches a trapped page, for reading or
// writing, in the program or in a system call on its behalf, sleeps in the kernel until its bytes
// are delivered (userfaultfd, missing pages). So a page shows what is delivered or nothing.
//
// Bytes change hands without being copied where the kernel can (UFFDIO_MOVE, Linux 6.8): arm()
// moves the pages that lie there away, deliver() moves those with the bytes in. Elsewhere the old
// pages are dropped and deliver() copies.
//
// Whose memory: private anonymous memory of the caller's own, which nobody else unmaps or remaps
//              meanwhile; armed ranges do not overlap. A range that has page guards (page_guard.h)
//              is refused: the kernel knows one watcher of a mapping.
// Mappings:    where pages move, an armed range stays a mapping of its own. A process has 65530.
// What it cannot stop: hardware, or io_uring, that reads from pages pinned before arm(): it keeps
//              the old ones.
// fork():      the child would find zeros: whoever forks must have delivered everything first.
// Failure:     io errors if the kernel refuses. Needs a privileged process (CAP_SYS_PTRACE, or the
//              right to open /dev/userfaultfd): system calls of unprivileged ones would fail.
// Concurrency: any thread may call anything, but one at a time for one range.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "core/copy.h"
#include "live/descriptor.h"

namespace sealane {

// The whole pages within `range`; empty if there are none.
Range pages_within(const Range& range);

class ReadTrap {
 public:
  static Result<ReadTrap> open();

  // Do pages move? Else bytes are copied, and `keep` of arm() stays as it is.
  bool moves() const { return moves_; }

  // From now on whoever touches these pages waits. The pages that lie there go to `keep`, memory of
  // the same size; what was there is gone. Memory the program has locked is refused.
  Status arm(const Range& pages, void* keep) const;

  // The bytes are there: whoever waits goes on. Takes the pages at `from`, which read as zero
  // afterwards, or copies them. Part of an armed range, or all of it.
  Status deliver(const Range& pages, void* from) const;
  Status deliver_zeros(const Range& pages) const;

  // Everything is delivered: an ordinary mapping again.
  Status disarm(const Range& pages) const;

  // Sleeps until somebody touches a trapped page: the address of the page. The same page may be
  // told of several times, and after it was delivered. Nothing: it took too long (-1: as long as it
  // takes), or the trap is broken.
  std::optional<uint64_t> wait_for_access(int timeout_ms) const;

  // Whoever waits for these pages touches them again.
  void wake(const Range& pages) const;

 private:
  ReadTrap(Descriptor faults, bool moves) : faults_(std::move(faults)), moves_(moves) {}

  Descriptor faults_;  // userfaultfd
  bool moves_;
};

}  // namespace sealane
