// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "workload/serving/engine.h"

#include <utility>

#include "base/bytes.h"
#include "base/text.h"

namespace sealane::workload {
namespace {

constexpr uint32_t kEvents = 64;  // of follow(), in turns: far more than are waited for at a time
constexpr uint32_t kFirstEvent = 3;
constexpr uint64_t kPage = 4096;

uint64_t round_up(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

uint64_t whole_gb(uint64_t bytes) { return (bytes + 999'999'999) / 1'000'000'000; }

}  // namespace

bool Engine::extend(Instant now, Program& program) {
  out_ = &program;
  if (!std::exchange(is_set_up_, true)) {
    call(CreateContext{kContext});
    for (const StreamId stream : {kCompute, kIn, kOut}) {
      call(CreateStream{stream, kContext, StreamKind::non_blocking});
    }
    for (uint32_t event = 1; event < kFirstEvent + kEvents; ++event) {
      call(CreateEvent{EventId{event}});
    }
    set_up();
  }
  return step(now);
}

void Engine::call(Action action) {
  Operation operation;
  operation.think = kThink + std::exchange(think_, Duration{0});
  operation.action = std::move(action);
  out_->push_back(std::move(operation));
}

Range Engine::host_memory(uint64_t bytes, MemoryKind kind) {
  const Range range{next_host_, round_up(std::max<uint64_t>(bytes, 1))};
  next_host_ += range.bytes + kPage;
  call(AllocateHost{range, kind});
  return {range.address, bytes};
}

uint64_t Engine::device_memory(uint64_t bytes) {
  return std::exchange(next_device_, next_device_ + round_up(bytes));
}

void Engine::follow(StreamId later, StreamId earlier) {
  const EventId event{kFirstEvent + follows_++ % kEvents};
  call(RecordEvent{event, earlier});
  call(WaitEvent{later, event});
}

Status must_fit_host(const Model& model, uint64_t bytes, const Roofline& gpu) {
  if (bytes <= gpu.host_bytes) return {};
  return usage_error(concat(model.name, " needs ", whole_gb(bytes),
                            " GB of host memory, the platform has ", gpu.host_bytes / 1'000'000'000,
                            " GB: take a smaller model or batch, or another platform"));
}

Status must_fit_gpu(std::string_view what, uint64_t bytes, const Roofline& gpu) {
  if (bytes <= gpu.gpu_bytes) return {};
  return usage_error(concat(what, " needs ", whole_gb(bytes),
                            " GB of GPU memory, the platform has ", gpu.gpu_bytes / 1'000'000'000,
                            " GB: keep less on the GPU, or take a smaller model or batch"));
}

}  // namespace sealane::workload
