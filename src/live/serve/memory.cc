// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "live/serve/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>

#include "base/bytes.h"

namespace sealane::serve {
namespace {

constexpr uint64_t kPieceMin = 64_KiB;

void* map_private(uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, bytes, MADV_DONTDUMP);
  madvise(memory, bytes, MADV_DONTFORK);
  // Plaintext of the program, which is in swappable memory already: locking is a bonus.
  mlock(memory, bytes);
  return memory;
}

}  // namespace

void* Staging::take(uint64_t bytes) {
  const uint64_t wanted = std::bit_ceil(std::max(bytes, kPieceMin));
  const std::lock_guard lock(mutex_);
  for (Piece& piece : pieces_) {
    if (piece.taken || piece.bytes != wanted) continue;
    piece.taken = true;
    piece.used = bytes;
    return piece.memory;
  }
  // Idle pieces of other sizes make room.
  while (mapped_ + wanted > bytes_max_) {
    const auto idle =
        std::find_if(pieces_.begin(), pieces_.end(), [](auto& p) { return !p.taken; });
    if (idle == pieces_.end()) return nullptr;
    munmap(idle->memory, idle->bytes);
    mapped_ -= idle->bytes;
    pieces_.erase(idle);
  }
  void* memory = map_private(wanted);
  if (memory == nullptr) return nullptr;
  mapped_ += wanted;
  pieces_.push_back({memory, wanted, bytes, true});
  return memory;
}

void Staging::give(void* memory) {
  uint64_t used = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const Piece& piece : pieces_) {
      if (piece.memory == memory) used = piece.used;
    }
  }
  wipe({static_cast<uint8_t*>(memory), used});
  const std::lock_guard lock(mutex_);
  for (Piece& piece : pieces_) {
    if (piece.memory == memory) piece.taken = false;
  }
}

}  // namespace sealane::serve
