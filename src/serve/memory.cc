// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/memory.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>

#include "base/bytes.h"

namespace sealane::serve {
namespace {

constexpr uint64_t kPieceMin = 64_KiB;
constexpr uint64_t kHugePage = 2_MiB;
#ifndef MADV_POPULATE_READ  // older headers
constexpr int MADV_POPULATE_READ = 22;
constexpr int MADV_POPULATE_WRITE = 23;
#endif

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

// Begins at a multiple of `aligned`, which the system's pages divide.
void* map_aligned(uint64_t bytes, uint64_t aligned) {
  const uint64_t more = bytes + aligned;
  void* memory = mmap(nullptr, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* const all = static_cast<uint8_t*>(memory);
  const uint64_t before = -reinterpret_cast<uint64_t>(all) % aligned;
  if (before > 0) munmap(all, before);
  munmap(all + before + bytes, aligned - before);
  return all + before;
}

void* map_private(uint64_t bytes, Staging::Locking locking, const SlotBudget* budget) {
  void* memory = map_aligned(bytes, std::min(bytes, kHugePage));
  if (memory == nullptr) return nullptr;
  // Before the first touch, which is the locking.
  if (budget != nullptr) budget->place(memory, bytes);
  if (budget != nullptr && bytes >= kHugePage) madvise(memory, bytes, MADV_HUGEPAGE);
  madvise(memory, bytes, MADV_DONTDUMP);
  madvise(memory, bytes, MADV_DONTFORK);
  // Plaintext of the program is in memory that may be swapped already: locking it is a bonus.
  const bool locked = mlock(memory, bytes) == 0;
  if (locked || locking == Staging::Locking::tried || !system_swaps()) return memory;
  munmap(memory, bytes);
  return nullptr;
}

// As if each page were touched; what cannot be touched so is an error.
bool populate(const void* pages, uint64_t bytes, int how) {
  int code = 0;
  do {
    code = madvise(const_cast<void*>(pages), bytes, how);
  } while (code != 0 && (errno == EINTR || errno == EAGAIN));
  return code == 0;
}

// A byte of each page.
bool can_be_read(uint64_t begin, uint64_t end, uint64_t page) {
  uint8_t unused[256];
  iovec there[sizeof unused];
  while (begin < end) {
    size_t count = 0;
    for (; count < sizeof unused && begin < end; begin += page) {
      there[count++] = {reinterpret_cast<void*>(begin), 1};
    }
    const iovec here{unused, count};
    const ssize_t got = process_vm_readv(getpid(), &here, 1, there, count, 0);
    if (got != static_cast<ssize_t>(count)) return false;
  }
  return true;
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

bool is_usable(const void* memory, uint64_t bytes, Access access) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t begin = reinterpret_cast<uint64_t>(memory) / page * page;
  const uint64_t end = reinterpret_cast<uint64_t>(memory) + bytes;
  if (end < bytes) return false;  // the end is before it
  // Is there such a call? This function is there to be read.
  static const bool populates = [page] {
    const auto own = reinterpret_cast<uint64_t>(&is_usable) / page * page;
    return populate(reinterpret_cast<const void*>(own), page, MADV_POPULATE_READ);
  }();
  const int wanted = access == Access::read ? MADV_POPULATE_READ : MADV_POPULATE_WRITE;
  if (populates) return populate(reinterpret_cast<void*>(begin), end - begin, wanted);
  return can_be_read(begin, end, page);
}

void* Staging::take(uint64_t bytes) {
  if (bytes > bytes_max_) return nullptr;  // and maybe than any power of two
  const uint64_t wanted = std::bit_ceil(std::max(bytes, kPieceMin));
  const std::lock_guard lock(mutex_);
  do {
    for (Piece& piece : pieces_) {
      if (piece.taken || piece.bytes != wanted || closed_) continue;
      piece.taken = true;
      piece.used = bytes;
      ++piece.chunk->taken;
      return piece.memory;
    }
  } while (grow(wanted));
  return nullptr;
}

// Room for pieces of this size. What is idle makes room for it.
bool Staging::grow(uint64_t piece) {
  const uint64_t bytes = chunk_bytes(piece);
  if (closed_) return false;
  while (!admit(bytes)) {
    if (!unmap_idle()) return false;
  }
  void* const memory = map_private(bytes, locking_, budget_);
  if (memory == nullptr) {
    if (budget_ != nullptr) budget_->give(bytes);
    return false;
  }
  mapped_ += bytes;
  chunks_.push_back({memory, bytes, 0});
  for (uint64_t at = 0; at < bytes; at += piece) {
    pieces_.push_back({static_cast<uint8_t*>(memory) + at, piece, 0, false, &chunks_.back()});
  }
  return true;
}

uint64_t Staging::chunk_bytes(uint64_t piece) const {
  const bool huge = budget_ != nullptr && bytes_max_ >= 8 * kHugePage;
  return huge ? std::max(piece, kHugePage) : piece;
}

bool Staging::admit(uint64_t bytes) {
  return mapped_ + bytes <= bytes_max_ && (budget_ == nullptr || budget_->take(bytes));
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
  --piece->chunk->taken;
  if (closed_) unmap_idle();
}

void Staging::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  while (unmap_idle()) {
  }
}

bool Staging::unmap_idle() {
  const auto idle = std::find_if(chunks_.begin(), chunks_.end(),
                                 [](const Chunk& chunk) { return chunk.taken == 0; });
  if (idle == chunks_.end()) return false;
  unmap(idle);
  return true;
}

void Staging::unmap(std::list<Chunk>::iterator chunk) {
  std::erase_if(pieces_, [&](const Piece& piece) { return piece.chunk == &*chunk; });
  munmap(chunk->memory, chunk->bytes);
  mapped_ -= chunk->bytes;
  if (budget_ != nullptr) budget_->give(chunk->bytes);
  chunks_.erase(chunk);
}

}  // namespace sealane::serve
