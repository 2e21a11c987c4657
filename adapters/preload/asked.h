// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A copy call of the program in the runtime's words, and how those who watch are told of it.
#pragma once

#include <optional>

#include "hooks.h"

namespace sealane::preload {

struct Asked {
  std::optional<Direction> direction;  // nothing: not between host and device
  uint64_t device = 0;
  void* host = nullptr;
  uint64_t bytes = 0;
  bool whole = true;  // one range
  uint64_t id = 0;
};

// A copy whose direction only its pointers tell.
Asked by_pointers(serve::Runtime& runtime, CUdeviceptr to, CUdeviceptr from, size_t bytes);

void tell_copy(serve::Runtime& runtime, const Asked& asked, serve::StreamHandle stream, bool async,
               serve::Route route, CUresult code, Instant begin, Instant end);

}  // namespace sealane::preload
