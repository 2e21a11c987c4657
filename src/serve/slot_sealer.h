// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Has slots sealed by workers: arms the guard of what is read ahead, before its first byte is read,
// then makes the record (slot_records.h). Knows workers, guards and the program's memory; whether a
// slot is wanted and what becomes of it is the owner's to say, on the worker.
//
// Thread-safe: start() and the guards from any thread, the owner's lock held or not. Fails by
// start(): there is nobody to seal, or no memory to tell him what.
#pragma once

#include <cstdint>
#include <memory>

#include "base/time.h"
#include "core/pipeline/speculator.h"
#include "os/worker_pool.h"
#include "serve/guard_book.h"
#include "serve/memory.h"
#include "serve/slot_records.h"

namespace sealane::serve {

class SlotSealer {
 public:
  // On a worker, without a lock of ours.
  class Owner {
   public:
    // What is guarded there is digested in every request: its pages cannot be protected (`news`:
    // nobody was told yet). False: the slot is not wanted any more.
    virtual bool handle_digested(const Range& guarded, bool news, SlotId slot) = 0;
    virtual void handle_sealed(SlotId slot, Speculator::Sealed how, const SlotRecord& record) = 0;
    virtual void handle_broken() = 0;  // something was thrown

   protected:
    ~Owner() = default;
  };

  SlotSealer(Owner& owner, WorkerPool& pool, const RangeMap<HostBlock>& host_memory,
             SlotRecords& records, bool page_guards, int device)
      : owner_(owner),
        pool_(pool),
        host_memory_(host_memory),
        records_(records),
        guards_(page_guards),
        device_(device) {}

  bool start(const SealSlot& what, std::shared_ptr<const SplitGcm> schedule);

  GuardBook& guards() { return guards_; }
  void unguard(const Range& range);  // pages are given back when there is time for it

 private:
  struct Job {
    SlotSealer* sealer = nullptr;
    SealSlot what{};
    SlotRecords::Order order{};
    GuardBook::Pointer guard{};
    bool by_pages = false;  // nobody but the program's threads can write there
  };

  void work(Job& job);
  Speculator::Sealed fill(Job& job, SlotRecord& record);
  void tell(const Job& job, Instant began) const;

  Owner& owner_;
  WorkerPool& pool_;
  const RangeMap<HostBlock>& host_memory_;
  SlotRecords& records_;
  GuardBook guards_;
  const int device_;
};

}  // namespace sealane::serve
