// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "seal/secret_memory.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/log.h"

namespace sealane {
namespace {

constexpr size_t kChunkBytes = 64 << 10;
constexpr uint64_t kMark = 0x5ea1a9e5ea1a9e01;

// What is where is kept outside of the pages themselves, so that it survives what they do not.
class Arena {
 public:
  Arena() {
    pthread_atfork([] { arena().mutex_.lock(); }, [] { arena().mutex_.unlock(); },
                   [] { arena().after_fork_in_child(); });
  }

  // Never destroyed: threads may still seal while the process exits.
  static Arena& arena() {
    static Arena& only = *new Arena;
    return only;
  }

  uint8_t* take(size_t block) {
    const std::lock_guard lock(mutex_);
    relock_in_child();
    std::vector<uint8_t*>& idle = idle_[block];
    if (idle.empty()) cut(block, idle);
    uint8_t* const memory = idle.back();
    idle.pop_back();
    state_.taken_bytes += block;
    return memory;
  }

  void give(uint8_t* memory, size_t block) {
    wipe({memory, block});
    const std::lock_guard lock(mutex_);
    idle_[block].push_back(memory);
    state_.taken_bytes -= block;
  }

  SecretMemory::State state() {
    const std::lock_guard lock(mutex_);
    return state_;
  }

 private:
  void cut(size_t block, std::vector<uint8_t*>& idle) {
    if (left_ < block) map_chunk();
    uint8_t* const memory = next_;
    next_ += block;
    left_ -= block;
    idle.push_back(memory);
  }

  void map_chunk() {
    // What is left of the last chunk is too short for this block and not for others.
    if (left_ > 0) idle_[left_].push_back(next_);
    void* const memory =
        mmap(nullptr, kChunkBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    SEALANE_CHECK(memory != MAP_FAILED, "out of memory");
    if (madvise(memory, kChunkBytes, MADV_WIPEONFORK) != 0) kernel_wipes_ = false;
    madvise(memory, kChunkBytes, MADV_DONTDUMP);
    next_ = static_cast<uint8_t*>(memory);
    left_ = kChunkBytes;
    chunks_.push_back(next_);
    state_.mapped_bytes += kChunkBytes;
    lock(memory);
    if (chunks_.size() > 1) return;
    canary_ = reinterpret_cast<uint64_t*>(next_);
    *canary_ = kMark;
    next_ += SecretMemory::kAlignment;
    left_ -= SecretMemory::kAlignment;
  }

  void lock(void* memory) {
    if (mlock(memory, kChunkBytes) == 0) return;
    if (std::exchange(state_.locked, false)) {
      SEALANE_LOG(warn, "keys cannot be locked in memory (%s): raise the limit with ulimit -l",
                  std::strerror(errno));
    }
  }

  // Kernels before 4.14 and some sandboxes do not wipe: then at least fork() is answered here.
  void after_fork_in_child() {
    if (!kernel_wipes_) {
      for (uint8_t* const chunk : chunks_) wipe({chunk, kChunkBytes});
    }
    mutex_.unlock();
  }

  // A child has the pages, empty, but not their lock.
  void relock_in_child() {
    if (canary_ == nullptr || *canary_ == kMark) return;
    for (uint8_t* const chunk : chunks_) lock(chunk);
    *canary_ = kMark;
  }

  std::mutex mutex_;
  std::map<size_t, std::vector<uint8_t*>> idle_;  // by size of block; all zero
  std::vector<uint8_t*> chunks_;
  uint8_t* next_ = nullptr;  // what has not been cut yet
  size_t left_ = 0;
  uint64_t* canary_ = nullptr;
  bool kernel_wipes_ = true;
  SecretMemory::State state_;
};

}  // namespace

std::shared_ptr<uint8_t> SecretMemory::take(size_t bytes) {
  SEALANE_CHECK(bytes > 0 && bytes <= kBytesMax, "a secret of that size has no place");
  const size_t whole = mark_at(bytes) + sizeof kMark;
  const size_t block = (whole + kAlignment - 1) / kAlignment * kAlignment;
  uint8_t* const memory = Arena::arena().take(block);
  std::memcpy(memory + mark_at(bytes), &kMark, sizeof kMark);
  return {memory, [block](uint8_t* gone) { Arena::arena().give(gone, block); }};
}

SecretMemory::State SecretMemory::state() { return Arena::arena().state(); }

}  // namespace sealane
