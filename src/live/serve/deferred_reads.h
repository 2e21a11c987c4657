// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies to the host that are over before their bytes have been opened. The synchronising call
// returns when the messages have left the bus; workers verify and open them afterwards, and
// whoever touches the destination before that waits for it (live/read_trap.h).
//
//   1. begin()    program's thread  memory of ours takes the destination's place
//   2. keep()     driver's thread   a message's ciphertext is put there instead of its plaintext,
//      promise()                    and the driver is told that its tag is right
//   3. land()     lane's thread     edges are filled, whole pages trapped; then the gate opens
//   4. open       crew, or the      all messages verified: the pages change places with the
//                 trap's thread     destination's. One is not: those pages are zeros, and the
//                                   owner is told before anybody can see them
//
// Nothing of a copy is delivered before all of it is verified. The thread that serves touches opens
// what no worker has begun, and needs nothing that a thread could hold while it touches a
// destination; so a touch always ends. Where a step fails before the gate is open (no memory, pages
// that are guarded) the copy is opened then and there. A signal handler that touches a destination
// while its thread is inside the runtime is what this cannot serve.
//
// Memory: at most `bytes_max`, private, left out of core dumps and forked children. Between uses it
// holds what lay in a destination before, until the next copy overwrites it. Unverified plaintext
// is wiped.
//
// Threads: everything from any thread. fork(): hold() before it, release() after it in the parent.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "core/copy.h"
#include "live/read_trap.h"
#include "live/serve/ahead.h"
#include "live/serve/crew.h"
#include "live/serve/gpu_driver.h"
#include "live/serve/read_book.h"
#include "seal/split_gcm.h"

namespace sealane::serve {

// A message whose tag has not been compared yet. Its ciphertext is in memory of ours.
struct KeptMessage {
  std::shared_ptr<const SplitGcm> key;
  Iv iv{};
  GcmHash additional{};  // the hash of the additional data
  uint64_t additional_bytes = 0;
  uint8_t* at = nullptr;
  uint64_t bytes = 0;
  Tag tag{};

  bool open() const;  // in place. False: the tag is wrong, and what was written must be wiped
};

// For whom a copy is, as its owner wants to be reminded of it.
struct ReadOwnerData {
  ContextHandle context = nullptr;
  Ahead* observer = nullptr;
  FlightId flight = kNone;
};

class ReadOwner {
 public:
  // Before anybody can see the zeros.
  virtual void refused(const ReadOwnerData& whose, const Range& destination, const char* why) = 0;
  // The destination is the program's again.
  virtual void delivered(const ReadOwnerData& whose, bool verified) = 0;

 protected:
  ~ReadOwner() = default;
};

class DeferredReads {
 public:
  // Shorter copies cost more in system calls than in opening.
  static constexpr uint64_t kBytesMin = 128 << 10;

  // One per process, never deleted: its thread serves to the end. An error: reads cannot be trapped
  // here, or there is nobody to open anything later.
  static Result<DeferredReads*> start(Crew& crew, ReadOwner& owner, uint64_t bytes_max);
  static DeferredReads* get() { return current_.load(std::memory_order_acquire); }
  static void abandon() { current_.store(nullptr); }  // in the child of a fork

  // Private memory of ours at `destination`, given to the program. `memory` is where the driver is
  // to put the bytes. kNoRead: not this one.
  ReadId begin(const Range& destination, void*& memory);
  void cancel(ReadId id);  // the driver failed, or was never asked

  // The driver opens a message to `out`. True: it may be put off, `out` is memory of ours, and a
  // promise() will follow.
  bool keep(const Range& out);
  void promise(KeptMessage message);
  void recant(const Range& out);  // it is opened in the call after all

  void land(ReadId id, const ReadOwnerData& whose);

  // Returns when these bytes are the program's.
  void settle(const Range& range);
  void settle();
  void freed(const Range& range);  // the program is about to unmap it
  bool idle() const { return under_way_.load(std::memory_order_acquire) == 0; }

  void hold();  // nothing is put off, and nothing will be until
  void release();

 private:
  // Two places in memory, one of which has pages: those of a destination that was trapped come to
  // the other, and the first one's go to the destination.
  struct Buffer {
    uint8_t* full = nullptr;
    uint8_t* empty = nullptr;
    uint64_t bytes = 0;
  };
  struct Read {
    Range destination;
    Range inner;  // its whole pages
    Buffer buffer;
    uint8_t* memory = nullptr;  // in `full`, at the destination's place in its page
    std::vector<KeptMessage> messages;
    uint64_t kept_bytes = 0;  // of messages without a promise
    ReadOwnerData whose;
    std::atomic<bool> awaited{true};  // somebody waits for its bytes
    bool kept() const { return !messages.empty() || kept_bytes != 0; }
  };
  enum class Place : uint8_t { trapped, open };

  DeferredReads(Crew& crew, ReadOwner& owner, uint64_t bytes_max, ReadTrap trap)
      : crew_(crew), owner_(owner), bytes_max_(bytes_max), trap_(std::move(trap)) {}
  void serve_touches();

  bool trap(Read& read);
  bool open_later(ReadId id);
  void open(ReadId id, Place place);
  bool verify(Read& read);
  Status deliver(Read& read, bool verified);
  void write(Read& read, bool verified);
  Read& read(ReadId id);
  void forget(ReadId id);

  bool take_buffer(uint64_t bytes, Buffer& out);
  void unmap(const Buffer& buffer);

  static std::atomic<DeferredReads*> current_;

  Crew& crew_;
  ReadOwner& owner_;
  const uint64_t bytes_max_;
  const ReadTrap trap_;

  std::shared_mutex trapping_;  // shared: somebody is about to trap. Before mutex_
  std::mutex mutex_;
  std::condition_variable changed_;
  ReadBook book_;
  std::unordered_map<ReadId, std::unique_ptr<Read>> reads_;
  std::vector<Buffer> free_;
  uint64_t buffer_bytes_ = 0;  // of all buffers
  std::atomic<size_t> under_way_{0};
  uint32_t in_vain_ = 0;  // copies since the driver last opened a message to memory of ours
  std::set<uint64_t> destinations_;  // each may be a mapping of its own: a bounded number
};

}  // namespace sealane::serve
