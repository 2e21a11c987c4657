// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Might somebody write into this process's memory past its page tables? A page that was pinned
// before it was guarded (live/page_guard.h) can be filled by hardware without anybody noticing:
// direct I/O that is still under way, asynchronous rings, RDMA. Whoever guards pages asks here
// first, and compares digests instead.
//
// What counts: an open file with O_DIRECT, a ring of io_submit or io_uring, memory pinned for good
// (VmPin). What cannot be known, counts too. Once seen it stays: what was begun may not be over.
// The answer may be kInterval old, so I/O that begins within that time of a program's very first
// such file or ring may be missed.
//
// Thread-safe.
#pragma once

#include <mutex>

#include "base/time.h"

namespace sealane {

class UnseenWriters {
 public:
  static constexpr auto kInterval = std::chrono::milliseconds(20);

  bool possible();

 private:
  std::mutex mutex_;
  bool seen_ = false;
  bool looked_ = false;
  Instant when_{};
};

}  // namespace sealane
