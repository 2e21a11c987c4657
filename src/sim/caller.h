// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A thread of the application, and how far it is with its calls.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/program_call.h"

namespace sealane::sim {

struct Caller {
  uint32_t id = 0;
  std::vector<uint32_t> operations;  // of the program, in order
  size_t next = 0;
  bool asleep = false;
  bool woken = false;              // while its call was still being made
  bool thought = false;            // the time before the next call has passed
  uint32_t context = 0;            // of the stream it last had to do with
  Instant called{};                // when its call was made
  Duration cost{0};                // of the call it is in, beyond waiting
  std::vector<CallId> covers;      // what the synchronising call it is in covers
  std::vector<uint32_t> flags;     // that hold a stream until it raises them
  uint32_t batched = 0;            // copies that are one call
  std::deque<ProgramCopy> passed;  //   and were passed: the driver does them one by one
};

// What became of a call.
enum class Progress : uint8_t { done, asleep, again };

}  // namespace sealane::sim
