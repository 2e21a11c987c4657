// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Operations become commands of a stream. Each perform() checks its addresses, then submits.

#include <algorithm>
#include <thread>
#include <utility>

#include "emu/driver/api.h"
#include "emu/driver/graph_memory.h"
#include "emu/driver/launch.h"

namespace sealane::emu {
namespace {

// Device memory, or host memory of ours, at an address; nullptr: neither.
uint8_t* reach(Driver& d, uint64_t address, uint64_t bytes) {
  if (const Gpu* gpu = d.gpu_of(address)) return gpu->memory.translate(address, bytes);
  return d.host.covers(address, bytes) ? reinterpret_cast<uint8_t*>(address) : nullptr;
}

template <typename Element>
void fill_row(uint8_t* row, uint32_t value, uint64_t count) {
  std::fill_n(reinterpret_cast<Element*>(row), count, static_cast<Element>(value));
}

void fill(uint8_t* base, const FillOperation& f) {
  for (uint64_t y = 0; y < f.height; ++y) {
    uint8_t* row = base + y * f.pitch;
    if (f.element_bytes == 1) fill_row<uint8_t>(row, f.value, f.width);
    if (f.element_bytes == 2) fill_row<uint16_t>(row, f.value, f.width);
    if (f.element_bytes == 4) fill_row<uint32_t>(row, f.value, f.width);
  }
}

CUresult perform(Driver&, ResolvedStream& stream, const NothingOperation&, Fence& fence) {
  fence = stream.context->submit(stream.stream, {});
  return CUDA_SUCCESS;
}

CUresult perform(Driver& d, ResolvedStream& stream, const FillOperation& f, Fence& fence) {
  const uint64_t row = f.width * f.element_bytes;
  if (row == 0 || f.height == 0) return CUDA_SUCCESS;
  if (f.height > 1 && f.pitch < row) return CUDA_ERROR_INVALID_VALUE;
  if (f.address % f.element_bytes != 0 || f.pitch % f.element_bytes != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  uint8_t* base = reach(d, f.address, (f.height - 1) * f.pitch + row);
  if (base == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Command command;
  const double cost = ns_at(config()->model.gpu_memory_gb_per_s, row * f.height);
  command.run = [base, f, cost] {
    const RealNs began = thread_ns();
    {
      const ClockStop still;
      fill(base, f);
    }
    sleep_until(began + real_ns_of(cost));
    return CUDA_SUCCESS;
  };
  ++counters().fills;
  fence = stream.context->submit(stream.stream, std::move(command));
  return CUDA_SUCCESS;
}

CUresult perform(Driver&, ResolvedStream& stream, const HostOperation& h, Fence& fence) {
  Command command;
  command.even_if_failed = h.callback != nullptr;
  command.run = [h, context = stream.context.get()] {
    if (h.callback != nullptr) {
      h.callback(h.stream, context->failure(), h.data);
    } else {
      h.function(h.data);
    }
    return CUDA_SUCCESS;
  };
  ++counters().host_functions;
  fence = stream.context->submit(stream.stream, std::move(command));
  return CUDA_SUCCESS;
}

// Decodes device code where it is to run, at its first launch there.
CUresult find_code(Context& context, LaunchOperation& launch) {
  if (!launch.module) return CUDA_SUCCESS;
  std::shared_ptr<LoadedCode> loaded;
  const CUresult there = launch.module->in(context, loaded);
  if (there != CUDA_SUCCESS) return there;
  const CUresult found = loaded->kernel(launch.kernel->name, launch.code);
  if (found != CUDA_SUCCESS) return found;
  const unsigned threads = launch.block[0] * launch.block[1] * launch.block[2];
  if (threads > launch.code->threads_max) return CUDA_ERROR_INVALID_VALUE;
  const unsigned shared = launch.code->shared_bytes + launch.shared_bytes;
  if (shared > 227u << 10) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t blocks = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  const bool fits = blocks <= uint64_t{kSms} * resident_blocks_per_sm(threads, shared);
  return launch.cooperative && !fits ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
}

CUresult perform(Driver& d, ResolvedStream& stream, const LaunchOperation& asked, Fence& fence) {
  const RealNs began = thread_ns();
  LaunchOperation launch = asked;
  const CUresult found = find_code(*stream.context, launch);
  if (found != CUDA_SUCCESS) return found;
  const Model& model = config()->model;
  const bool cc = stream.context->sealed();
  Command command;
  command.run = [&d, launch, context = stream.context.get(), asked_at = began] {
    return run_kernel(d, *context, launch, asked_at);
  };
  ++counters().launches;
  if (!launch.kernel->known) ++counters().unknown_launches;
  fence = stream.context->submit(stream.stream, std::move(command));
  if (!launch.host_paid) {
    sleep_until(began +
                real_ns_of(ns_from_us(cc ? model.gpu_launch_cc_us : model.gpu_launch_off_us)));
  }
  return CUDA_SUCCESS;
}

CUresult perform(Driver&, ResolvedStream& stream, const RecordOperation& record, Fence& fence) {
  const RealNs began = thread_ns();
  auto recording = std::make_shared<EventObject::Recording>();
  std::unique_lock lock(record.event->mutex);
  Command command;
  command.even_if_failed = true;
  command.run = [recording, on = stream.stream.get()] {
    recording->at = std::max(thread_ns(), on->ended_at());  // events of a stream are in order
    return CUDA_SUCCESS;
  };
  fence = stream.context->submit(stream.stream, std::move(command));
  recording->fence = fence;
  record.event->last = std::move(recording);
  lock.unlock();
  if (record.called) charge_call(*stream.context, began);
  return CUDA_SUCCESS;
}

CUresult perform(Driver&, ResolvedStream& stream, const AwaitOperation& await, Fence& fence) {
  const auto recording = await.event->recording();
  if (!recording || recording->fence.passed()) return CUDA_SUCCESS;
  Command command;
  command.after.push_back(recording->fence);
  fence = stream.context->submit(stream.stream, std::move(command));
  return CUDA_SUCCESS;
}

// Read while copies and kernels may write it: that is its purpose. Not instrumented for the same
// reason.
__attribute__((no_sanitize_thread)) uint64_t peek(const volatile uint8_t* at, bool wide) {
  return wide ? *reinterpret_cast<const volatile uint64_t*>(at)
              : *reinterpret_cast<const volatile uint32_t*>(at);
}

__attribute__((no_sanitize_thread)) void poke(volatile uint8_t* at, bool wide, uint64_t value) {
  if (wide) {
    *reinterpret_cast<volatile uint64_t*>(at) = value;
  } else {
    *reinterpret_cast<volatile uint32_t*>(at) = static_cast<uint32_t>(value);
  }
}

bool holds(const MemoryOperation& op, uint64_t seen) {
  const uint64_t all = op.wide ? UINT64_MAX : UINT32_MAX;
  switch (op.condition & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ:  // cyclic: the difference is not negative
      return op.wide ? static_cast<int64_t>(seen - op.value) >= 0
                     : static_cast<int32_t>(static_cast<uint32_t>(seen - op.value)) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return seen == op.value;
    case CU_STREAM_WAIT_VALUE_AND:
      return (seen & op.value) != 0;
    default:
      return (~(seen | op.value) & all) != 0;
  }
}

void await_value(Context& context, const MemoryOperation& op, const uint8_t* at, bool on_device) {
  for (;;) {
    const uint32_t changes = context.gpu().changes();
    if (context.over() || holds(op, peek(at, op.wide))) return;
    if (on_device) {
      context.gpu().await_change(changes);
    } else {
      // The host writes without telling anybody.
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

CUresult perform(Driver& d, ResolvedStream& stream, const MemoryOperations& ops, Fence& fence) {
  if (!config()->stream_memory_operations) return CUDA_ERROR_NOT_SUPPORTED;
  struct Step {
    MemoryOperation op;
    uint8_t* at;
    bool on_device;
  };
  std::vector<Step> steps;
  for (const MemoryOperation& op : ops.all) {
    const uint64_t bytes = op.wide ? 8 : 4;
    uint8_t* at = op.address % bytes == 0 ? reach(d, op.address, bytes) : nullptr;
    if (at == nullptr) return CUDA_ERROR_INVALID_VALUE;
    steps.push_back({op, at, d.gpu_of(op.address) != nullptr});
  }
  Command command;
  command.run = [steps = std::move(steps), context = stream.context.get()] {
    for (const Step& step : steps) {
      if (step.op.wait) {
        await_value(*context, step.op, step.at, step.on_device);
      } else {
        poke(step.at, step.op.wide, step.op.value);
        context->gpu().announce_change();
      }
    }
    return CUDA_SUCCESS;
  };
  fence = stream.context->submit(stream.stream, std::move(command));
  return CUDA_SUCCESS;
}

CUresult perform(Driver&, ResolvedStream& stream, const AllocOperation& alloc, Fence& fence) {
  Command command;
  command.run = [memory = alloc.memory] {
    memory->set_allocated(true);
    return CUDA_SUCCESS;
  };
  fence = stream.context->submit(stream.stream, std::move(command));
  return CUDA_SUCCESS;
}

CUresult perform(Driver& d, ResolvedStream& stream, const FreeOperation& op, Fence& fence) {
  Command command;
  command.even_if_failed = true;
  if (auto memory = GraphMemory::at(op.address)) {
    command.run = [memory = std::move(memory)] {
      memory->set_allocated(false);
      return CUDA_SUCCESS;
    };
  } else {
    Gpu* gpu = d.gpu_of(op.address);
    const auto block = gpu != nullptr ? gpu->memory.retire(op.address) : std::nullopt;
    if (!block) return CUDA_ERROR_INVALID_VALUE;
    auto* const pool = static_cast<CUmemoryPool>(const_cast<void*>(block->pool));
    command.run = [gpu, freed = *block, from = d.pools.find(pool)] {
      if (from) from->used -= freed.bytes;
      gpu->memory.recycle(freed);
      return CUDA_SUCCESS;
    };
  }
  fence = stream.context->submit(stream.stream, std::move(command));
  return CUDA_SUCCESS;
}

}  // namespace

void charge_call(const Context& context, RealNs began) {
  if (context.sealed()) sleep_until(began + real_ns_of(ns_from_us(config()->model.gpu_call_cc_us)));
}

CUresult submit(Driver& d, ResolvedStream& stream, Operation operation, bool wait) {
  if (d.captures.load() > 0) {
    if (wait) {
      const CUresult allowed = allow_synchronising(d, &stream);
      if (allowed != CUDA_SUCCESS) return allowed;
    }
    const CUresult captured = capture_operation(d, stream, operation);
    if (captured != CUDA_ERROR_NOT_READY) return captured;
  }
  if (const auto* copy = std::get_if<CopyOperation>(&operation)) {
    return run_copy(d, stream, *copy, wait);
  }
  Fence fence;
  const CUresult result = std::visit(
      [&](const auto& op) -> CUresult {
        if constexpr (std::is_same_v<std::decay_t<decltype(op)>, CopyOperation>) {
          return CUDA_SUCCESS;
        } else {
          return perform(d, stream, op, fence);
        }
      },
      operation);
  return result == CUDA_SUCCESS && wait ? finish(*stream.context, fence) : result;
}

}  // namespace sealane::emu
