// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Programs that copy in the ways serving and training programs do, made from a seed: what
// predictors are judged by. Bulk copies travel on one stream and kernels run on another, which
// waits for them by events, as serving engines overlap the two. Buffers lie in memory in random
// order (but for `sequential`), so that nobody can foresee them by their addresses.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "workload/operation.h"

namespace sealane::workload {

enum class Pattern : uint8_t {
  repetition,        // the same weights in the same order, step after step
  forward_backward,  // forwards, then backwards, as in fine-tuning
  interleaved,       // two loops of different length take turns
  fifo,              // blocks swapped out come back first in, first out
  lifo,              // last in, first out
  control,           // repetition, with three random control copies per layer in between
  sequential,        // one long range from begin to end, as a model is loaded
  random,            // any buffer, any part of it
  rewriting,         // repetition, but the program writes each buffer before it copies it
};

std::span<const Pattern> patterns();
std::string_view to_string(Pattern pattern);

struct PatternOptions {
  uint64_t seed = 1;
  uint32_t steps = 10;    // rounds through the buffers
  uint32_t buffers = 16;  // layers, or blocks swapped at a time
  uint64_t buffer_bytes = 4_MiB;
  MemoryKind memory = MemoryKind::pinned;
  Duration kernel{200'000};  // after each bulk copy
  Duration think{2'000};     // host time before each call
  // The host waits for each kernel before it asks for the next copy, as eager programs do. Else it
  // runs ahead of the device by a whole step.
  bool lockstep = false;
};

// A program in the sense of program_checker.h. steps, buffers and buffer_bytes are at least 1;
// buffer_bytes is a multiple of 4096.
Program make_pattern(Pattern pattern, const PatternOptions& options);

}  // namespace sealane::workload
