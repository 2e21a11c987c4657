// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The memory the program has, and how bytes get from there to memory of ours and back: on all
// workers, with calls that cannot fault. Knows no stream and no copy's state. Thread-safe. Fails by
// saying so: no room, or memory that is gone.
#pragma once

#include <cstdint>
#include <vector>

#include "os/worker_pool.h"
#include "serve/memory.h"

namespace sealane::serve {

class ProgramMemory {
 public:
  ProgramMemory(WorkerPool& pool, uint64_t staging_bytes_max)
      : pool_(pool), staging_(staging_bytes_max) {}

  RangeMap<DeviceBlock>& device() { return device_; }
  RangeMap<HostBlock>& host() { return host_; }
  // All that a context has; it is out of the maps then.
  struct OfContext {
    std::vector<RangeMap<DeviceBlock>::Entry> device;
    std::vector<RangeMap<HostBlock>::Entry> host;
  };
  OfContext take_out(const void* context);

  // Memory of ours, private: empty, or with these bytes in it. nullptr: no room, or no such source.
  uint8_t* take(uint64_t bytes) { return static_cast<uint8_t*>(staging_.take(bytes)); }
  uint8_t* snapshot(const void* from, uint64_t bytes);
  void give(uint8_t* memory) { staging_.give(memory); }

  // Between the program's and ours, if the program's is there still.
  bool fetch(const void* program, uint8_t* ours, uint64_t bytes);
  [[nodiscard]] bool deliver(const uint8_t* ours, void* program, uint64_t bytes);
  // Out of memory of ours that is wiped with it, to where nothing can go before the copy is over.
  void move_out(uint8_t* ours, uint8_t* to, uint64_t bytes);

 private:
  bool move(bool (*how)(const void*, void*, uint64_t), const void* from, void* to, uint64_t bytes);
  template <typename Move>
  void each_part(uint64_t bytes, const Move& how);

  WorkerPool& pool_;
  Staging staging_;
  RangeMap<DeviceBlock> device_;
  RangeMap<HostBlock> host_;
};

}  // namespace sealane::serve
