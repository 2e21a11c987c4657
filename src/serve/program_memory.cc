// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/program_memory.h"

#include <algorithm>
#include <atomic>

#include "base/bytes.h"
#include "base/log.h"
#include "os/pace.h"

namespace sealane::serve {
namespace {

constexpr uint64_t kMovePart = 128_KiB;

}  // namespace

void ProgramMemory::forget_context(const void* context) {
  const auto gone = [&](const auto& entry) { return entry.what.context == context; };
  device_.remove_if(gone);
  host_.remove_if(gone);
}

uint8_t* ProgramMemory::snapshot(const void* from, uint64_t bytes) {
  uint8_t* const to = take(bytes);
  if (to == nullptr || fetch(from, to, bytes)) return to;
  give(to);
  return nullptr;
}

bool ProgramMemory::fetch(const void* program, uint8_t* ours, uint64_t bytes) {
  return move(read_memory, program, ours, bytes);
}

void ProgramMemory::deliver(const uint8_t* ours, void* program, uint64_t bytes) {
  if (move(write_memory, ours, program, bytes)) return;
  SEALANE_LOG(warn, "memory of the program was gone when a copy arrived");
}

bool ProgramMemory::move(bool (*how)(const void*, void*, uint64_t), const void* from, void* to,
                         uint64_t bytes) {
  std::atomic<bool> whole{true};
  const uint64_t parts = (bytes + kMovePart - 1) / kMovePart;
  pool_.each(parts, [&](size_t i) {
    const uint64_t began = pace().begin();
    const uint64_t offset = i * kMovePart;
    const uint64_t here = std::min(kMovePart, bytes - offset);
    const bool done =
        how(static_cast<const uint8_t*>(from) + offset, static_cast<uint8_t*>(to) + offset, here);
    if (!done) whole.store(false);
    pace().end(Pace::host_copy, here, began);
  });
  return whole.load();
}

}  // namespace sealane::serve
