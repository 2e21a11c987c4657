// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/driver/launch.h"

#include <algorithm>

namespace sealane::emu {
namespace {

// What a kernel is handed, and what we need to answer its questions.
struct Frame : sealane_emu_launch {
  Driver* driver = nullptr;
  Context* context = nullptr;
  // The kernel sees a const launch; its charges and faults are ours to note.
  mutable double operations = 0;
  mutable double moved_bytes = 0;
  mutable bool charged = false;
  mutable bool faulted = false;
};

void* kernel_memory(const sealane_emu_launch* launch, uint64_t address, size_t bytes) {
  const auto& frame = *static_cast<const Frame*>(launch);
  uint8_t* memory = nullptr;
  if (const Gpu* gpu = frame.driver->gpu_of(address)) {
    const bool mine = may_reach(*frame.driver, *frame.context, *gpu, address);
    memory = mine ? gpu->memory.translate(address, bytes) : nullptr;
  } else {
    memory = frame.driver->host.view(address, bytes, config()->stale_views());
  }
  if (memory == nullptr) frame.faulted = true;
  return memory;
}

void kernel_charge(const sealane_emu_launch* launch, double operations, double bytes) {
  const auto& frame = *static_cast<const Frame*>(launch);
  frame.operations += operations;
  frame.moved_bytes += bytes;
  frame.charged = true;
}

uint64_t kernel_symbol(const sealane_emu_launch*, const char* name, size_t* bytes) {
  const Symbol symbol = find_symbol(name);
  if (bytes != nullptr) *bytes = symbol.bytes;
  return symbol.address;
}

double cost_ns(const Frame& frame, bool cc) {
  const Model& model = config()->model;
  double cost = ns_from_us(model.gpu_kernel_us);
  if (frame.charged) {
    cost = std::max(frame.operations / (model.gpu_tera_ops_per_s * 1e3),
                    frame.moved_bytes / model.gpu_memory_gb_per_s);
  }
  return cc ? cost * (1 + model.gpu_kernel_slowdown) : cost;
}

}  // namespace

// Memory of a pool is open to whom the pool says, mapped memory to whom its mapping says, all other
// memory to the context's peers.
bool may_reach(Driver& d, const Context& context, const Gpu& gpu, uint64_t address) {
  if (&gpu == &context.gpu() && gpu.memory.contains(address)) return true;
  const auto block = gpu.memory.find_room(address);
  if (block && block->mapped) return (block->access >> context.gpu().ordinal & 1) != 0;
  if (!block || block->pool == nullptr) return context.reaches(gpu);
  const auto pool = d.pools.find(static_cast<CUmemoryPool>(const_cast<void*>(block->pool)));
  return pool && pool->open_to(context.gpu().ordinal);
}

CUresult run_kernel(Driver& d, Context& context, const LaunchOperation& launch, RealNs asked_at) {
  const Model& model = config()->model;
  const bool cc = context.sealed();
  const RealNs queued = real_ns_of(ns_from_us(cc ? model.gpu_queue_cc_us : model.gpu_queue_off_us));
  sleep_until(asked_at + queued);
  const RealNs began = thread_ns();
  Frame frame;
  static_cast<sealane_emu_launch&>(frame) = {sizeof(sealane_emu_launch),
                                             static_cast<uint32_t>(context.gpu().ordinal),
                                             {launch.grid[0], launch.grid[1], launch.grid[2]},
                                             {launch.block[0], launch.block[1], launch.block[2]},
                                             launch.shared_bytes,
                                             static_cast<uint32_t>(launch.arguments.count()),
                                             launch.arguments.pointers(),
                                             kernel_memory,
                                             kernel_charge,
                                             kernel_symbol};
  frame.driver = &d;
  frame.context = &context;
  RealNs end = 0;
  CUresult ran = CUDA_SUCCESS;
  const HostMemory::Use use(d.host);
  if (launch.code) {
    const ClockStop still;
    const GridResult grid = run_grid(d, context, launch);
    ran = grid.result;
    kernel_charge(&frame, grid.operations, grid.bytes);
    end = context.gpu().compute_time.reserve(began, cost_ns(frame, cc));
  } else {
    const ClockStop still;
    const std::lock_guard compute(context.gpu().compute);
    if (launch.kernel->run != nullptr) launch.kernel->run(&frame);
    end = context.gpu().compute_time.reserve(began, cost_ns(frame, cc));
  }
  sleep_until(end);
  return frame.faulted ? CUDA_ERROR_ILLEGAL_ADDRESS : ran;
}

}  // namespace sealane::emu
