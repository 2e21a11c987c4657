// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What is put into a stream of the program: events, that mark what was there before a copy, and
// gates, that keep the stream waiting for copies that are carried for it. A gate is a wait for a
// word of device memory that the copy thread sets behind the data from its own context; where
// stream memory operations are missing it is a host function that waits for the copy thread. All
// are ordinary work of the stream: synchronising calls, events, queries, host functions and waits
// across streams mean what they always mean, and nothing is deferred or replayed in the host, so
// every call of the program returns its own error code.
//
// Which is put and opened when is the machine's to say (core/copy/copies.h). Each fails with the
// driver's code.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/wait_word.h"
#include "serve/gpu_driver.h"

namespace sealane::serve {

// Events of the program's contexts, lent as long as somebody looks at them and used again. A
// context takes its events with it, and the driver may give the next context and the next event the
// same handles: what comes back late is of the context that was, and is lent to nobody.
// Thread-safe; a lease may end anywhere, also where no memory is left.
class EventPool {
  struct Shelf;

 public:
  // Gives its event back with the last who looks at it.
  class Lease {
   public:
    Lease(EventPool& pool, std::shared_ptr<Shelf> shelf) : pool_(pool), shelf_(std::move(shelf)) {}
    ~Lease() { pool_.give(*shelf_, event); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    EventHandle event = nullptr;

   private:
    EventPool& pool_;
    const std::shared_ptr<Shelf> shelf_;
  };
  using LeasePointer = std::shared_ptr<const Lease>;

  explicit EventPool(GpuDriver& driver) : driver_(driver) {}

  LeasePointer take(ContextHandle context);  // nullptr: the driver has none
  // The driver is about to destroy it: nothing of it is lent from now on, though another thread may
  // have a context with this handle before we hear how it went. Then one of these.
  void leave(ContextHandle context);
  void stay(ContextHandle context);    // it is there still
  void forget(ContextHandle context);  // it is gone, and they with it

 private:
  // What is free of one context, not of its handle.
  struct Shelf {
    bool gone = false;
    std::vector<EventHandle> free;
  };
  using Shelves = std::unordered_map<ContextHandle, std::shared_ptr<Shelf>>;

  void give(Shelf& shelf, EventHandle event);

  GpuDriver& driver_;
  std::mutex mutex_;
  Shelves shelves_;
  Shelves leaving_;
};

class CopyThread;

// A word of device memory that only ever grows; belongs to one stream at a time.
struct GateWord {
  uint64_t address = 0;
  uint32_t value = 0;               // the last one a gate waits for
  ContextHandle context = nullptr;  // whose memory it is
};

// The words of one copy thread, in memory of its context. A context that was replaced is there as
// long as a stream has a word of it, and is given back then: there are few. Thread-safe.
class GateWords {
 public:
  GateWords(GpuDriver& driver, const CopyContext& context) : driver_(driver), context_(context) {}

  bool take(GateWord& out);  // false: no device memory
  // Its value goes on from where it was: an old gate may still have to look at it.
  void give(const GateWord& word);
  void replace_context(const CopyContext& context);
  void close();  // no stream waits for a word any more: the context, and those before it, may go

 private:
  struct Replaced {
    CopyContext context;
    size_t lent = 0;  // words
  };

  GpuDriver& driver_;
  std::mutex mutex_;
  CopyContext context_;
  std::vector<GateWord> free_;
  size_t lent_ = 0;
  std::vector<Replaced> replaced_;
};

// The gates of one stream that one copy thread opens. The machine counts them from 1; the word,
// which others had before, goes on from where it was. One call at a time puts gates; open() on the
// copy thread. The word goes back with the stream: nobody sets it then.
class StreamGates {
 public:
  StreamGates() = default;
  ~StreamGates();
  StreamGates(const StreamGates&) = delete;
  StreamGates& operator=(const StreamGates&) = delete;

  // Whose they are. nullptr: nobody's yet, or no more: the copy thread goes, and its words with it.
  CopyThread* thread() const { return thread_; }
  void set_thread(CopyThread* thread);
  // Into the stream. `operations`: false once the driver has refused.
  Code put(GpuDriver& driver, StreamHandle stream, uint32_t value, std::atomic<bool>& operations);
  // From the copy thread's context or, if that has failed, from the stream's own.
  void open(GpuDriver& driver, const CopyContext& from, ContextHandle stream, uint32_t value);

 private:
  // Opens a gate that is a host function.
  class Ticket {
   public:
    void finish() { done_.set(1); }
    void wait() const { done_.wait_while(0); }

   private:
    WaitWord<uint32_t> done_{0};
  };

  Code put_function(GpuDriver& driver, StreamHandle stream, uint32_t value);

  CopyThread* thread_ = nullptr;
  GateWord word_;
  uint32_t behind_ = 0;  // by so much the word is ahead of the machine's count
  std::mutex mutex_;     // of what follows
  std::deque<std::pair<uint32_t, std::shared_ptr<Ticket>>> tickets_;
};

}  // namespace sealane::serve
