// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Plays a trace as a CUDA program on the emulated GPU and looks whether every byte arrives. What it
// sees it tells findings().
//
// How bytes are judged without copies of its own, which would change what is tested:
//   to the device  behind each copy a kernel compares what arrived with what the source held when
//                  the copy was asked for
//   to the host    before each copy a kernel writes fresh bytes; the host compares after the call
//                  that synchronises with it
//
// A thread of the trace is a thread here. Calls begin in the order of the trace; they may block.
#pragma once

#include <cuda.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "scenario/player/kernels.h"
#include "workload/operation.h"

namespace sealane::test {

class Player {
 public:
  explicit Player(const workload::Program& program) : program_(program) {}
  ~Player();
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  void disturb_before(size_t operation, std::string what) {
    disturbances_.emplace(operation, std::move(what));
  }

  // Returns when every thread of the trace has ended.
  void play();

 private:
  using Call = std::function<CUresult()>;

  struct Host {
    uint8_t* memory;
    uint64_t bytes;
    bool pinned;
  };
  // A copy, as far as synchronisation is concerned.
  struct Asked {
    workload::StreamId stream;
    size_t operation;
  };
  // Bytes on their way to the host.
  struct Arriving {
    Range range;
    uint64_t digest;
    Asked asked;
  };
  struct Recorded {
    CUevent event = nullptr;
    workload::StreamId stream{};
    size_t operation = 0;
  };

  void play_thread(const std::vector<size_t>& operations);
  Call next_call(size_t operation);
  uint8_t* host(const Range& range);
  CUdeviceptr device(uint64_t wanted);

  // One per kind of operation: does the books, returns the call.
  Call prepare(const workload::CreateContext&, size_t);
  Call prepare(const workload::DestroyContext&, size_t) { return {}; }
  Call prepare(const workload::CreateStream&, size_t);
  Call prepare(const workload::DestroyStream&, size_t);
  Call prepare(const workload::CreateEvent&, size_t);
  Call prepare(const workload::DestroyEvent&, size_t);
  Call prepare(const workload::AllocateHost&, size_t);
  Call prepare(const workload::FreeHost&, size_t);
  Call prepare(const workload::AllocateDevice&, size_t);
  Call prepare(const workload::FreeDevice&, size_t);
  Call prepare(const workload::WriteHost&, size_t);
  Call prepare(const workload::ReadHost&, size_t);
  Call prepare(const workload::Copy&, size_t);
  Call prepare(const workload::CopyOnDevice&, size_t);
  Call prepare(const workload::Launch&, size_t);
  Call prepare(const workload::RecordEvent&, size_t);
  Call prepare(const workload::WaitEvent&, size_t);
  Call prepare(const workload::SyncEvent&, size_t);
  Call prepare(const workload::SyncStream&, size_t);
  Call prepare(const workload::SyncContext&, size_t);
  Call prepare(const workload::QueryEvent&, size_t);
  Call prepare(const workload::QueryStream&, size_t);
  // What no scenario says.
  template <typename Other>
  Call prepare(const Other&, size_t) {
    return [] { return CUDA_ERROR_NOT_SUPPORTED; };
  }

  std::optional<uint64_t> source_digest(const Range& range);
  Call copy_in(const workload::Copy& copy, size_t operation);
  Call copy_out(const workload::Copy& copy, size_t operation);
  template <typename Covered>
  Call then_look(Call call, Covered covered);
  workload::StreamId stream_of(size_t copy) const;

  const workload::Program& program_;
  std::multimap<size_t, std::string> disturbances_;
  std::atomic<size_t> begun_{0};

  std::mutex mutex_;  // what follows
  CUcontext context_ = nullptr;
  Kernels kernels_;
  std::map<uint64_t, Host> hosts_;
  std::map<uint64_t, CUdeviceptr> devices_;
  std::map<workload::StreamId, CUstream> streams_;
  std::map<workload::EventId, Recorded> events_;
  std::vector<Arriving> arriving_;
  volatile uint64_t read_ = 0;
};

}  // namespace sealane::test
