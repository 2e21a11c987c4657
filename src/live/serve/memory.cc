// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "live/serve/memory.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

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

bool read_memory(const void* from, void* to, uint64_t bytes) {
  const iovec here{to, bytes};
  const iovec there{const_cast<void*>(from), bytes};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

bool write_memory(const void* from, void* to, uint64_t bytes) {
  const iovec here{const_cast<void*>(from), bytes};
  const iovec there{to, bytes};
  return process_vm_writev(getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

bool is_mapped(const void* memory, uint64_t bytes) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t at = reinterpret_cast<uint64_t>(memory) / page * page;
  const uint64_t end = reinterpret_cast<uint64_t>(memory) + bytes;
  unsigned char unused[1024];
  while (at < end) {
    const uint64_t here = std::min(end - at, sizeof unused * page);
    if (mincore(reinterpret_cast<void*>(at), here, unused) != 0) return false;
    at += here;
  }
  return true;
}

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
