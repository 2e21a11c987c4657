// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "live/serve/memory.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>

#include "base/bytes.h"

namespace sealane::serve {
namespace {

constexpr uint64_t kPieceMin = 64_KiB;

bool system_swaps() {
  static const bool swaps = [] {
    std::FILE* file = std::fopen("/proc/swaps", "re");
    if (file == nullptr) return true;  // who cannot tell must assume it
    char line[256];
    int lines = 0;
    while (std::fgets(line, sizeof line, file) != nullptr) ++lines;
    std::fclose(file);
    return lines > 1;  // the first one is a heading
  }();
  return swaps;
}

void* map_private(uint64_t bytes, Staging::Locking locking) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, bytes, MADV_DONTDUMP);
  madvise(memory, bytes, MADV_DONTFORK);
  // Plaintext of the program is in memory that may be swapped already: locking it is a bonus.
  const bool locked = mlock(memory, bytes) == 0;
  if (locked || locking == Staging::Locking::tried || !system_swaps()) return memory;
  munmap(memory, bytes);
  return nullptr;
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
  if (closed_) return nullptr;
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
    unmap(idle);
  }
  void* memory = map_private(wanted, locking_);
  if (memory == nullptr) return nullptr;
  mapped_ += wanted;
  pieces_.push_back({memory, wanted, bytes, true});
  return memory;
}

void Staging::give(void* memory, Content content) {
  uint64_t used = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const Piece& piece : pieces_) {
      if (piece.memory == memory) used = piece.used;
    }
  }
  if (content == wiped) wipe({static_cast<uint8_t*>(memory), used});
  const std::lock_guard lock(mutex_);
  const auto piece = std::find_if(pieces_.begin(), pieces_.end(),
                                  [&](const Piece& one) { return one.memory == memory; });
  if (piece == pieces_.end()) return;
  piece->taken = false;
  if (closed_) unmap(piece);
}

void Staging::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (size_t i = pieces_.size(); i-- > 0;) {
    if (!pieces_[i].taken) unmap(pieces_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void Staging::unmap(std::vector<Piece>::iterator piece) {
  munmap(piece->memory, piece->bytes);
  mapped_ -= piece->bytes;
  pieces_.erase(piece);
}

}  // namespace sealane::serve
