// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/exit_hold.h"

#include <openssl/crypto.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "base/check.h"
#include "base/time.h"

namespace sealane {
namespace {

constexpr Duration kWaitedMax = std::chrono::seconds(10);
constexpr Duration kWaitStep = std::chrono::microseconds(200);

// In this order by whoever holds, in the other by whoever waits: one of the two sees the other.
std::atomic<int> holds{0};
std::atomic<bool> exiting{false};
std::atomic<bool> waited{false};  // OpenSSL may be gone
thread_local int own_holds = 0;

void wait_until(Instant end) {
  while (holds > own_holds && SteadyClock().now() < end) std::this_thread::sleep_for(kWaitStep);
}

void wait_for_holds() {
  exiting = true;
  const Instant end = SteadyClock().now() + kWaitedMax;
  wait_until(end);
  waited = true;
  wait_until(end);  // for threads that came to their end in between
}

// The end of a thread of the program that has held. What OpenSSL keeps for it would be freed a
// little later, with nobody waiting for that.
class ThreadEnd {
 public:
  ThreadEnd() {}
  ~ThreadEnd() {
    ++holds;
    if (!waited) OPENSSL_thread_stop();
    --holds;
  }
  void expect() {}
};
thread_local ThreadEnd thread_end;

void wait_at_exit() {
  static const bool done = [] {
    // Asked for nothing it would do nothing, and register its handler later than we do.
    return OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CRYPTO_STRINGS, nullptr) == 1 &&
           std::atexit(wait_for_holds) == 0 &&
           pthread_atfork(nullptr, nullptr, [] { holds = own_holds; }) == 0;
  }();
  SEALANE_CHECK(done, "out of memory");
}

}  // namespace

ExitHold::ExitHold(Thread thread) : ours_(thread == Thread::ours) {
  wait_at_exit();
  thread_end.expect();
  ++holds;
  ++own_holds;
  held_ = !exiting;
}

ExitHold::~ExitHold() {
  if (held_ && own_holds == 1 && (ours_ || exiting)) OPENSSL_thread_stop();
  --own_holds;
  --holds;
}

bool process_exits() { return exiting.load(std::memory_order_relaxed); }

Error exiting_error() {
  return io_error("the process exits: nothing is sent or received any more");
}

}  // namespace sealane
