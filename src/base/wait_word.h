// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A number that threads wait for. A waiter goes to sleep at once: std::atomic's wait() yields a few
// times before it does, and where many threads want the CPU each time lets all of them go first.
//
// Threads: all of it, from any. set() and the like look at the word once more after the number has
// changed: it outlives them, not only the waiting.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <climits>
#include <cstdint>

namespace sealane {

template <typename Number>
class WaitWord {
 public:
  explicit WaitWord(Number number) : number_(number) {}

  Number get() const { return number_.load(); }
  void wait_while(Number seen) const {
    while (number_.load() == seen) {
      waiting_.fetch_add(1);
      syscall(SYS_futex, &number_, FUTEX_WAIT_PRIVATE, static_cast<uint32_t>(seen), nullptr);
      waiting_.fetch_sub(1);
    }
  }

  // Each wakes all who wait.
  void set(Number number) {
    number_.store(number);
    wake();
  }
  void add(Number number) {
    number_.fetch_add(number);
    wake();
  }
  // False: it was not `seen` but what `seen` is now.
  bool set_if(Number& seen, Number number) {
    if (!number_.compare_exchange_strong(seen, number)) return false;
    wake();
    return true;
  }

 private:
  // The kernel compares the lower half of a wide number.
  static_assert(sizeof(Number) == 4 ||
                (sizeof(Number) == 8 && std::endian::native == std::endian::little));

  // Whoever begins to wait is counted before the kernel looks at the number: one of the two sees
  // the other.
  void wake() {
    if (waiting_.load() == 0) return;
    syscall(SYS_futex, &number_, FUTEX_WAKE_PRIVATE, INT_MAX);
  }

  std::atomic<Number> number_;
  mutable std::atomic<uint32_t> waiting_{0};
};

}  // namespace sealane
