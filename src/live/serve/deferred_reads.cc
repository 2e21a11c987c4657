// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "live/serve/deferred_reads.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/log.h"
#include "live/page_guard.h"
#include "live/serve/pace.h"
#include "live/serve/thread.h"

namespace sealane::serve {
namespace {

constexpr uint64_t kPartBytes = 1_MiB;  // delivered by one worker
constexpr uint32_t kInVainMax = 64;
constexpr size_t kPlacesMax = 4096;

uint8_t* map_private(uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory != MAP_FAILED ? static_cast<uint8_t*>(memory) : nullptr;
}

void hide(uint8_t* memory, uint64_t bytes) {
  madvise(memory, bytes, MADV_DONTDUMP);
  madvise(memory, bytes, MADV_DONTFORK);
}

uint8_t* at(uint64_t address) { return reinterpret_cast<uint8_t*>(address); }

template <typename Body>
void each_part(Crew& crew, uint64_t bytes, const Body& body) {
  crew.each((bytes + kPartBytes - 1) / kPartBytes, [&](size_t i) {
    const uint64_t offset = i * kPartBytes;
    body(offset, std::min(kPartBytes, bytes - offset));
  });
}

}  // namespace

std::atomic<DeferredReads*> DeferredReads::current_{nullptr};

bool KeptMessage::open() const {
  const uint64_t began = pace().begin();
  const uint64_t blocks = (bytes + kGcmBlockBytes - 1) / kGcmBlockBytes;
  const GcmHash hash = key->join(additional, key->open_part(iv, 0, at, at, bytes), blocks);
  const bool right = constant_time_equal(key->tag(iv, hash, additional_bytes, bytes), tag);
  pace().end(Pace::aead_fast, bytes, began);
  return right;
}

Result<DeferredReads*> DeferredReads::start(Crew& crew, ReadOwner& owner, uint64_t bytes_max) {
  if (crew.size() < 2) return usage_error("there is no worker to open anything later");
  auto trap = ReadTrap::open();
  if (!trap) return trap.error();
  std::unique_ptr<DeferredReads> made(new DeferredReads(crew, owner, bytes_max, *std::move(trap)));
  if (!start_thread<&DeferredReads::serve_touches>("sealane-reads", made.get())) {
    return io_error("no thread can be started");
  }
  current_.store(made.get());
  return made.release();
}

// --- who touches a destination

void DeferredReads::serve_touches() {
  while (const auto page = trap_.wait_for_access(-1)) {
    ReadBook::Touched touched;
    {
      const std::lock_guard lock(mutex_);
      touched = book_.touch(*page);
      if (touched.answer == ReadBook::Answer::wait) reads_.at(touched.id)->awaited.store(true);
    }
    if (touched.answer == ReadBook::Answer::open) open(touched.id, Place::trapped);
    if (touched.answer == ReadBook::Answer::gone) trap_.wake(pages({*page, 1}));
  }
  SEALANE_LOG(warn, "reads are not trapped any more: the descriptor is gone");
}

// --- 1. the request

ReadId DeferredReads::begin(const Range& destination, void*& memory) {
  if (destination.bytes < kBytesMin) return kNoRead;
  const Range whole = pages(destination);
  auto made = std::make_unique<Read>();
  made->destination = destination;
  made->inner = pages_within(destination);
  const std::lock_guard lock(mutex_);
  const bool room = destinations_.contains(whole.address) || destinations_.size() < kPlacesMax;
  if (in_vain_ > kInVainMax || !room || !take_buffer(whole.bytes, made->buffer)) return kNoRead;
  destinations_.insert(whole.address);
  ++in_vain_;  // until the driver opens something there
  made->memory = made->buffer.full + (destination.address - whole.address);
  const ReadId id = book_.add(destination, made->inner, reinterpret_cast<uint64_t>(made->memory));
  memory = made->memory;
  reads_.emplace(id, std::move(made));
  under_way_.fetch_add(1);
  return id;
}

void DeferredReads::cancel(ReadId id) {
  Read& gone = read(id);
  wipe({gone.memory, gone.destination.bytes});
  forget(id);
}

// --- 2. the driver opens a message

bool DeferredReads::keep(const Range& out) {
  const std::lock_guard lock(mutex_);
  const auto [id, may_wait] = book_.find_filling(out);
  if (id == kNoRead) return false;
  in_vain_ = 0;
  if (may_wait) reads_.at(id)->kept_bytes += out.bytes;
  return may_wait;
}

void DeferredReads::promise(KeptMessage message) {
  const std::lock_guard lock(mutex_);
  const auto [id, may_wait] =
      book_.find_filling({reinterpret_cast<uint64_t>(message.at), message.bytes});
  if (!may_wait) return;
  Read& whose = *reads_.at(id);
  whose.kept_bytes -= message.bytes;
  whose.messages.push_back(std::move(message));
}

void DeferredReads::recant(const Range& out) {
  const std::lock_guard lock(mutex_);
  const auto [id, may_wait] = book_.find_filling(out);
  if (may_wait) reads_.at(id)->kept_bytes -= out.bytes;
}

// --- 3. the driver is done

void DeferredReads::land(ReadId id, const ReadOwnerData& whose) {
  Read& landed = read(id);
  landed.whose = whose;
  const Range destination = landed.destination;  // once trapped, others may finish it
  bool trapped = false;
  {
    const std::shared_lock trapping(trapping_);
    std::unique_lock lock(mutex_);
    while (!book_.land(id)) {  // an earlier copy to the same memory
      lock.unlock();
      settle(destination);
      lock.lock();
    }
    lock.unlock();
    trapped = landed.kept() && trap(landed);
    lock.lock();
    const bool touched = book_.trap(id);
    if (!trapped) book_.claim(id);
    if (touched) trap_.wake(landed.inner);
  }
  if (!trapped) {
    open(id, Place::open);
  } else if (!open_later(id)) {
    settle(destination);
  }
}

// The edges are there before anybody may look at them.
bool DeferredReads::trap(Read& landed) {
  const Status armed = trap_.arm(landed.inner, landed.buffer.empty);
  if (!armed) {
    SEALANE_LOG(info, "a copy is opened in the call: %s", armed.error().message.c_str());
    return false;
  }
  hide(landed.buffer.empty, landed.buffer.bytes);
  const Range& all = landed.destination;
  const uint64_t head = landed.inner.address - all.address;
  const uint64_t tail = all.end() - landed.inner.end();
  std::memcpy(at(all.address), landed.memory, head);
  std::memcpy(at(landed.inner.end()), landed.memory + (all.bytes - tail), tail);
  return true;
}

// --- 4. opening

bool DeferredReads::open_later(ReadId id) {
  struct Job {
    DeferredReads& reads;
    ReadId id;
  };
  auto job = std::make_unique<Job>(Job{*this, id});
  const auto work = [](void* context) {
    const std::unique_ptr<Job> mine(static_cast<Job*>(context));
    {
      const std::lock_guard lock(mine->reads.mutex_);
      if (!mine->reads.book_.claim(mine->id)) return;
      mine->reads.reads_.at(mine->id)->awaited.store(false);
    }
    mine->reads.open(mine->id, Place::trapped);
  };
  if (!crew_.post(work, job.get())) return false;
  static_cast<void>(job.release());
  return true;
}

// By whoever has claimed it. Never in a loop or job of somebody else's, which might touch the very
// destination: of the crew it only calls for help.
void DeferredReads::open(ReadId id, Place place) {
  Read& mine = read(id);
  const bool verified = verify(mine);
  if (!verified) {
    wipe({mine.memory, mine.destination.bytes});
    owner_.refused(mine.whose, mine.destination, "a message of it was forged on its way");
  }
  Status given;
  if (place == Place::trapped) {
    given = deliver(mine, verified);
  } else {
    write(mine, verified);
  }
  if (!given) owner_.refused(mine.whose, mine.destination, given.error().message.c_str());
  owner_.delivered(mine.whose, verified && given.ok());
  forget(id);
}

bool DeferredReads::verify(Read& mine) {
  std::atomic<bool> right{mine.kept_bytes == 0};  // else somebody never asked for a tag
  const auto open_one = [&](size_t i) {
    if (!mine.messages[i].open()) right.store(false);
  };
  // What nobody waits for takes one worker, and no others from those who do.
  size_t done = 0;
  while (done < mine.messages.size() && !mine.awaited.load()) open_one(done++);
  crew_.each(mine.messages.size() - done, [&](size_t i) { open_one(done + i); });
  return right.load();
}

Status DeferredReads::deliver(Read& mine, bool verified) {
  std::mutex mutex;
  Status all;
  const auto note = [&](Status part) {
    const std::lock_guard lock(mutex);
    if (!part) all = std::move(part);
  };
  const Range& inner = mine.inner;
  if (verified) {
    uint8_t* const from = mine.memory + (inner.address - mine.destination.address);
    each_part(crew_, inner.bytes, [&](uint64_t offset, uint64_t bytes) {
      const uint64_t began = pace().begin();
      note(trap_.deliver({inner.address + offset, bytes}, from + offset));
      if (!trap_.moves()) pace().end(Pace::host_copy, bytes, began);
    });
  } else {
    // The edges stay: they were verified in the call and are the program's since.
    note(trap_.deliver_zeros(inner));
  }
  note(trap_.disarm(inner));
  if (trap_.moves()) std::swap(mine.buffer.full, mine.buffer.empty);
  return all;
}

// The gate is still closed: nobody looks.
void DeferredReads::write(Read& mine, bool verified) {
  each_part(crew_, mine.destination.bytes, [&](uint64_t offset, uint64_t bytes) {
    const uint64_t began = pace().begin();
    uint8_t* const to = at(mine.destination.address + offset);
    if (verified) {
      std::memcpy(to, mine.memory + offset, bytes);
    } else {
      std::memset(to, 0, bytes);
    }
    pace().end(Pace::host_copy, bytes, began);
  });
}

// --- waiting

void DeferredReads::settle(const Range& range) {
  if (idle()) return;
  std::unique_lock lock(mutex_);
  for (const ReadId id : book_.put_off(range)) {
    if (!book_.claim(id)) continue;
    lock.unlock();
    open(id, Place::trapped);
    lock.lock();
  }
  for (const ReadId id : book_.put_off(range)) reads_.at(id)->awaited.store(true);
  changed_.wait(lock, [&] { return book_.put_off(range).empty(); });
}

void DeferredReads::settle() { settle({0, UINT64_MAX}); }

void DeferredReads::freed(const Range& range) {
  settle(range);
  const std::lock_guard lock(mutex_);
  destinations_.erase(destinations_.lower_bound(pages(range).address),
                      destinations_.lower_bound(range.end()));
}

void DeferredReads::hold() {
  trapping_.lock();
  settle();
}

void DeferredReads::release() { trapping_.unlock(); }

// --- memory

DeferredReads::Read& DeferredReads::read(ReadId id) {
  const std::lock_guard lock(mutex_);
  return *reads_.at(id);
}

void DeferredReads::forget(ReadId id) {
  {
    const std::lock_guard lock(mutex_);
    free_.push_back(reads_.at(id)->buffer);
    reads_.erase(id);
    book_.remove(id);
    under_way_.fetch_sub(1);
  }
  changed_.notify_all();
}

bool DeferredReads::take_buffer(uint64_t bytes, Buffer& out) {
  const auto fits = std::find_if(free_.rbegin(), free_.rend(),
                                 [&](const Buffer& buffer) { return buffer.bytes == bytes; });
  if (fits != free_.rend()) {
    out = *fits;
    free_.erase(std::next(fits).base());
    return true;
  }
  // Idle ones of other sizes make room.
  while (buffer_bytes_ + bytes > bytes_max_ && !free_.empty()) {
    unmap(free_.front());
    free_.erase(free_.begin());
  }
  if (buffer_bytes_ + bytes > bytes_max_) return false;
  out = {map_private(bytes), map_private(bytes), bytes};
  buffer_bytes_ += bytes;
  if (out.full != nullptr && out.empty != nullptr) {
    hide(out.full, bytes);
    return true;
  }
  unmap(out);
  return false;
}

void DeferredReads::unmap(const Buffer& buffer) {
  if (buffer.full != nullptr) munmap(buffer.full, buffer.bytes);
  if (buffer.empty != nullptr) munmap(buffer.empty, buffer.bytes);
  buffer_bytes_ -= buffer.bytes;
}

}  // namespace sealane::serve
