// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Might somebody write into this process's memory past its page tables? A page that was pinned
// before it was guarded (os/page_guard.h) can be filled by hardware without anybody noticing:
// direct I/O that is still under way, asynchronous rings, RDMA, packets of an AF_XDP socket, a
// device handed to the process (VFIO), a SCSI disk (SG_IO), a camera (V4L2). Whoever guards pages
// asks here, before and after, and compares digests instead.
//
// What counts: every open file that is not of a kind known to leave memory alone (files, pipes,
// ordinary sockets, terminals, events and the like, NVIDIA's devices); a file with O_DIRECT; a ring
// of io_submit or io_uring; memory pinned for good (VmPin). What cannot be known, counts too. Once
// seen it stays: what was begun may not be over. Not seen: who pinned memory and has closed every
// file by which he did it.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <mutex>

#include "base/time.h"

namespace sealane {

class UnseenWriters {
 public:
  static constexpr auto kInterval = std::chrono::milliseconds(20);

  bool possible();                    // as of some kInterval ago, or later
  bool possible_since(Instant when);  // as of then, or later
  bool seen() const { return seen_.load(std::memory_order_relaxed); }  // by whoever has asked

 private:
  bool look(Instant now);

  std::mutex mutex_;
  std::atomic<bool> seen_{false};
  bool looked_ = false;
  Instant when_{};
};

}  // namespace sealane
