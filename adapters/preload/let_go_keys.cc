// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "let_go_keys.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "os/thread.h"
#include "serve/process.h"
#include "start.h"

namespace sealane::preload {
namespace {

constexpr auto kPause = serve::KnownKeys::kGrace + std::chrono::milliseconds(100);

std::atomic<uint64_t> let_go{0};
std::atomic<bool> is_waiting{false};

// Until none was let go for as long as a key stays.
void wait(void*) {
  do {
    uint64_t before = 0;
    do {
      before = let_go.load();
      std::this_thread::sleep_for(kPause);
      serve::process().keys.retire(SteadyClock().now());
    } while (let_go.load() != before);
    is_waiting.store(false);
    if (let_go.load() == before) return;
  } while (!is_waiting.exchange(true));
}

}  // namespace

void key_let_go() {
  if (disabled()) return;  // the child of a fork has none
  let_go.fetch_add(1);
  if (is_waiting.load() || is_waiting.exchange(true)) return;
  if (!start_thread("sealane-keys", &wait, nullptr)) is_waiting.store(false);
}

}  // namespace sealane::preload
