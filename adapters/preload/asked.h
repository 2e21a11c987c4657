// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A copy call of the program in the runtime's words, and how those who watch are told of it.
#pragma once

#include <optional>
#include <span>

#include "hooks.h"
#include "serve/process.h"

namespace sealane::preload {

struct Asked {
  std::optional<Direction> direction;  // nothing: not between host and device
  uint64_t device = 0;
  void* host = nullptr;  // without a direction: where bytes go that may come from a device
  uint64_t bytes = 0;
  bool whole = true;  // one range
  uint64_t id = 0;
};

// A copy whose direction only its pointers tell.
Asked by_pointers(serve::Runtime& runtime, CUdeviceptr to, CUdeviceptr from, size_t bytes);

// A driver may leave what it opened before it knew that it was forged. The call that named the
// destination is not over, so that is still the program's for it.
void wipe_forged(std::span<const Asked> copies);

// Are there any among these that wipe_forged() would wipe? Their context may have failed before, by
// whatever: then they are not to be made, and their destinations hold what the program had there.
CUresult forged_before(const serve::Runtime& runtime, serve::StreamHandle stream,
                       std::span<const Asked> copies);

// What the runtime did not carry is the driver's, unless its context has failed meanwhile.
// `others`: of the same call, of no known direction.
template <typename Pass>
CUresult pass_unless_carried(serve::Runtime& runtime, serve::Route route,
                             serve::StreamHandle stream, std::span<const Asked> copies,
                             std::span<const Asked> others, Pass&& pass) {
  if (route == serve::Route::carried) return CUDA_SUCCESS;
  if (const CUresult left = left_error(runtime, stream); left != CUDA_SUCCESS) return left;
  for (const auto& some : {copies, others}) {
    const CUresult before = forged_before(runtime, stream, some);
    if (before != CUDA_SUCCESS) return before;
  }
  const serve::Runtime::Entering entering(runtime, stream);
  serve::this_thread().copy = copies.empty() ? 0 : copies.front().id;
  const CUresult result = pass();
  serve::this_thread().copy = 0;
  if (result == CUDA_ERROR_ECC_UNCORRECTABLE) {
    wipe_forged(copies);
    wipe_forged(others);
  }
  const CUresult left = left_error(runtime, stream);
  return left != CUDA_SUCCESS ? left : result;
}

void tell_copy(serve::Runtime& runtime, const Asked& asked, serve::StreamHandle stream, bool async,
               serve::Route route, CUresult code, Instant begin, Instant end);

}  // namespace sealane::preload
