// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the engines have in common: one thread, one context, a stream for kernels and one for copies
// in each direction, memory that is handed out once and never given back.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>

#include "workload/feed.h"
#include "workload/model.h"
#include "workload/serving/serving.h"

namespace sealane::workload {

class Engine : public Feed {
 public:
  bool extend(Instant now, Program& program) final;
  const Achieved& achieved() const final { return achieved_; }

 protected:
  static constexpr StreamId kCompute{1};
  static constexpr StreamId kIn{2};   // copies to the device
  static constexpr StreamId kOut{3};  // copies to the host
  // One event for each of two buffers that are used in turns.
  static constexpr EventId kUsed[2] = {EventId{1}, EventId{2}};
  static constexpr Duration kThink{3'000};  // an engine's own work before any call

  virtual void set_up() = 0;
  // Writes one step. Called when the one before has returned; false at the end.
  virtual bool step(Instant now) = 0;

  void call(Action action);
  void think(Duration time) { think_ += time; }  // before the next call

  Range host_memory(uint64_t bytes, MemoryKind kind = MemoryKind::pinned);
  uint64_t device_memory(uint64_t bytes);

  void launch(Duration run_time) { call(Launch{kCompute, run_time}); }
  void copy_in(StreamId stream, const Range& from, uint64_t to,
               MemoryKind kind = MemoryKind::pinned, CallKind how = CallKind::async) {
    call(Copy{stream, Direction::to_device, from, to, kind, how});
  }
  void copy_out(StreamId stream, const Range& to, uint64_t from) {
    call(Copy{stream, Direction::to_host, to, from, MemoryKind::pinned, CallKind::async});
  }
  // `later` goes on when what `earlier` has been given so far is done.
  void follow(StreamId later, StreamId earlier);
  void synchronise() { call(SyncContext{kContext}); }

  Achieved achieved_;

 private:
  static constexpr ContextId kContext{1};

  Program* out_ = nullptr;
  Duration think_{0};
  bool is_set_up_ = false;
  uint64_t next_host_ = 0x7f00'0000'0000;
  uint64_t next_device_ = 0x3'0000'0000;
  uint32_t follows_ = 0;
};

// Input that the engine writes and the device reads in every step, a few hundred bytes each: token
// ids, positions, block tables.
class ControlCopies {
 public:
  static constexpr uint32_t kCopies = 5;
  static constexpr uint64_t kRegionBytes = 64 << 10;

  ControlCopies() = default;
  ControlCopies(const Range& host, uint64_t device) : host_(host), device_(device) {}

  template <typename Send>
  void each(uint64_t sequences, Send send, uint64_t copies = kCopies) {
    const uint64_t bytes = std::min(kRegionBytes, std::max<uint64_t>(64, 8 * sequences));
    for (uint64_t i = 0; i < copies; ++i) {
      const uint64_t region = i % kCopies * kRegionBytes;
      send(Range{host_.address + region, bytes}, device_ + region);
    }
  }

 private:
  Range host_;
  uint64_t device_ = 0;
};

// Errors about sizes, in the same words everywhere.
Status must_fit_host(const Model& model, uint64_t bytes, const Roofline& gpu);
Status must_fit_gpu(std::string_view what, uint64_t bytes, const Roofline& gpu);

// The engines, each in the file of its name.
Result<std::unique_ptr<Feed>> make_flexgen(const Model&, const Roofline&, const ServingOptions&);
Result<std::unique_ptr<Feed>> make_peft(const Model&, const Roofline&, const ServingOptions&);
Result<std::unique_ptr<Feed>> make_vllm(const Model&, const Roofline&, const ServingOptions&);
Result<std::unique_ptr<Feed>> make_kv_restore(const Model&, const Roofline&, const ServingOptions&);
Result<std::unique_ptr<Feed>> make_weight_offload(const Model&, const Roofline&,
                                                  const ServingOptions&);
Result<std::unique_ptr<Feed>> make_decode(const Model&, const Roofline&, const ServingOptions&);
Result<std::unique_ptr<Feed>> make_load(const Model&, const Roofline&, const ServingOptions&);

}  // namespace sealane::workload
