// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/program_memory.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/bytes.h"
#include "base/log.h"
#include "os/pace.h"

namespace sealane::serve {
namespace {

constexpr uint64_t kMovePart = 128_KiB;

}  // namespace

ProgramMemory::OfContext ProgramMemory::take_out(const void* context) {
  const auto gone = [&](const auto& entry) { return entry.what.context == context; };
  return {device_.remove_if(gone), host_.remove_if(gone)};
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

bool ProgramMemory::deliver(const uint8_t* ours, void* program, uint64_t bytes) {
  if (move(write_memory, ours, program, bytes)) return true;
  SEALANE_LOG(warn, "memory of the program was gone when a copy arrived");
  return false;
}

void ProgramMemory::move_out(uint8_t* ours, uint8_t* to, uint64_t bytes) {
  each_part(bytes, [&](uint64_t offset, uint64_t here) {
    std::memcpy(to + offset, ours + offset, here);
    wipe({ours + offset, static_cast<size_t>(here)});
  });
}

bool ProgramMemory::move(bool (*how)(const void*, void*, uint64_t), const void* from, void* to,
                         uint64_t bytes) {
  std::atomic<bool> whole{true};
  each_part(bytes, [&](uint64_t offset, uint64_t here) {
    const bool done =
        how(static_cast<const uint8_t*>(from) + offset, static_cast<uint8_t*>(to) + offset, here);
    if (!done) whole.store(false);
  });
  return whole.load();
}

template <typename Move>
void ProgramMemory::each_part(uint64_t bytes, const Move& how) {
  const uint64_t parts = (bytes + kMovePart - 1) / kMovePart;
  pool_.each(parts, [&](size_t i) {
    const uint64_t began = pace().begin();
    const uint64_t offset = i * kMovePart;
    const uint64_t here = std::min(kMovePart, bytes - offset);
    how(offset, here);
    pace().end(Pace::host_copy, here, began);
  });
}

}  // namespace sealane::serve
