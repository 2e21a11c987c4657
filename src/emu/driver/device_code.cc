// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/driver/device_code.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "emu/config/identity.h"
#include "emu/driver/launch.h"
#include "emu/driver/objects.h"
#include "ptx/decode/decode.h"
#include "ptx/exec/executor.h"

namespace sealane::emu {
namespace {

constexpr uint64_t kHeapMax = uint64_t{1} << 32;

// Workers of all GPUs. Never ended: they sleep when there is nothing to run.
std::atomic<bool> executor_made{false};

ptx::Executor& executor() {
  static auto& made =
      *new ptx::Executor(config()->workers > 0 ? static_cast<unsigned>(config()->workers)
                                               : std::max(1u, std::thread::hardware_concurrency()));
  executor_made.store(true);
  return made;
}

// What a grid sees of a context.
class ContextDevice : public ptx::Device {
 public:
  ContextDevice(Driver& d, Context& context) : driver_(d), context_(context) {}

  ptx::Window find(uint64_t address) override {
    if (const Gpu* gpu = driver_.gpu_of(address)) {
      if (!may_reach(driver_, context_, *gpu, address)) return {};
      const auto block = gpu->memory.find_room(address);
      if (!block) return {};
      const uint64_t bytes = config()->check_memory ? block->bytes : block->room;
      return {block->address, bytes, gpu->memory.translate(block->address, block->bytes)};
    }
    const auto range = driver_.host.find(address);
    if (!range) return {};
    return {range->address, range->bytes,
            driver_.host.view(range->address, range->bytes, config()->stale_views())};
  }
  uint64_t allocate(uint64_t bytes) override {
    if (bytes == 0 || bytes > kHeapMax) return 0;
    return context_.gpu().memory.allocate(bytes, context_.id()).value_or(0);
  }
  bool release(uint64_t address) override { return context_.gpu().memory.release(address); }
  void print(std::string_view text) override {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }
  bool cancelled() override { return context_.over(); }
  uint64_t now_ns() override { return static_cast<uint64_t>(device_ns_of(clock_ns())); }
  uint64_t clock() override {
    const uint64_t ns = ptx::Device::clock();
    constexpr uint64_t kPerUs = kCoreClockKhz / 1000;
    return ns / 1000 * kPerUs + ns % 1000 * kPerUs / 1000;
  }

 private:
  Driver& driver_;
  Context& context_;
};

CUresult result_of(ptx::Fault fault) {
  switch (fault) {
    case ptx::Fault::none:
      return CUDA_SUCCESS;
    case ptx::Fault::illegal_address:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case ptx::Fault::misaligned_address:
      return CUDA_ERROR_MISALIGNED_ADDRESS;
    case ptx::Fault::illegal_instruction:
      return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case ptx::Fault::invalid_pc:
      return CUDA_ERROR_INVALID_PC;
    case ptx::Fault::assertion:
      return CUDA_ERROR_ASSERT;
    case ptx::Fault::stack:
      return CUDA_ERROR_HARDWARE_STACK_ERROR;
    case ptx::Fault::hang:
      return CUDA_ERROR_LAUNCH_TIMEOUT;
    default:
      return CUDA_ERROR_LAUNCH_FAILED;
  }
}

}  // namespace

unsigned resident_blocks_per_sm(unsigned threads, unsigned shared_bytes) {
  const unsigned rounded = std::max(32u, (threads + 31) / 32 * 32);
  const unsigned by_shared = (228u << 10) / (shared_bytes + 1024);
  return std::min({32u, 2048 / rounded, by_shared});
}

CUresult LoadedCode::load(Context& context, std::shared_ptr<const ptx::Module> module,
                          std::shared_ptr<LoadedCode>& out) {
  auto made = std::make_shared<LoadedCode>();
  made->module_ = std::move(module);
  const CUresult result = made->give_memory(context);
  if (result == CUDA_SUCCESS) out = std::move(made);
  return result;
}

CUresult LoadedCode::give_memory(Context& context) {
  for (const ptx::Variable& variable : module_->variables) {
    const bool here =
        variable.space == ptx::Space::global || variable.space == ptx::Space::constant;
    if (!here || variable.opaque || variable.external || variable.bytes == 0) continue;
    const auto address = context.gpu().memory.allocate(variable.bytes, context.id());
    if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
    variables_[variable.name] = {*address, variable.bytes};
  }
  for (const ptx::Variable& variable : module_->variables) {
    const auto place = variables_.find(variable.name);
    if (place == variables_.end()) continue;
    const CUresult result = initialise(context, variable, place->second);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult LoadedCode::initialise(Context& context, const ptx::Variable& variable,
                                const Place& place) {
  uint8_t* memory = context.gpu().memory.translate(place.address, place.bytes);
  std::memset(memory, 0, place.bytes);
  if (!variable.initial.empty()) {
    std::memcpy(memory, variable.initial.data(),
                std::min<size_t>(variable.initial.size(), place.bytes));
  }
  for (const ptx::Relocation& one : variable.relocations) {
    const auto symbol = variables_.find(one.symbol);
    uint64_t value = symbol != variables_.end() ? symbol->second.address
                                                : ptx::function_address(*module_, one.symbol);
    if (value == 0) {
      std::fprintf(stderr, "sealane emulated GPU: line %u: unresolved symbol %s\n", variable.line,
                   one.symbol.c_str());
      return CUDA_ERROR_INVALID_PTX;
    }
    value = (value + static_cast<uint64_t>(one.addend)) >> one.shift;
    if (one.offset + one.bytes <= place.bytes) std::memcpy(memory + one.offset, &value, one.bytes);
  }
  return CUDA_SUCCESS;
}

const LoadedCode::Place* LoadedCode::variable(const std::string& name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : &found->second;
}

CUresult LoadedCode::kernel(const std::string& name, std::shared_ptr<const ptx::Kernel>& out,
                            bool quiet) {
  const std::lock_guard lock(mutex_);
  const auto [entry, added] = kernels_.emplace(name, Decoded{});
  Decoded& mine = entry->second;
  if (added) {
    const auto address = [&](std::string_view variable) -> std::optional<uint64_t> {
      const auto found = variables_.find(variable);
      if (found == variables_.end()) return std::nullopt;
      return found->second.address;
    };
    auto decoded = ptx::decode_kernel(module_, name, address);
    if (decoded)
      mine.kernel = std::move(*decoded);
    else
      mine.error = decoded.error().message;
  }
  if (!quiet && !mine.error.empty()) {
    std::fprintf(stderr, "sealane emulated GPU: kernel %s: %s\n", name.c_str(), mine.error.c_str());
    mine.error.clear();
  }
  out = mine.kernel;
  return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
}

void forget_found_memory() {
  if (executor_made.load()) executor().forget_windows();
}

GridResult run_grid(Driver& d, Context& context, const LaunchOperation& launch) {
  static std::atomic<uint64_t> grids{0};
  ContextDevice device(d, context);
  ptx::Grid grid;
  grid.kernel = launch.code;
  std::copy_n(launch.grid, 3, grid.shape.grid);
  std::copy_n(launch.block, 3, grid.shape.block);
  grid.shape.dynamic_shared = launch.shared_bytes;
  grid.parameters = *launch.parameters;
  grid.parameters.resize(std::max<size_t>(grid.parameters.size(), launch.code->parameter_bytes));
  grid.device = &device;
  grid.id = ++grids;
  grid.stack_limit = 64 << 10;
  grid.blocks = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  const uint32_t threads = launch.block[0] * launch.block[1] * launch.block[2];
  const uint32_t shared = launch.code->dynamic_shared_offset + launch.shared_bytes;
  grid.resident_max = std::max(1u, kSms * resident_blocks_per_sm(threads, shared));
  // What a grid barrier counts in.
  const auto workspace = context.gpu().memory.allocate(16, context.id());
  if (!workspace) return {CUDA_ERROR_OUT_OF_MEMORY, 0, 0};
  std::memset(context.gpu().memory.translate(*workspace, 16), 0, 16);
  grid.workspace = *workspace;
  grid.checks = {config()->check_memory, config()->check_races};
  executor().run(grid);
  context.gpu().memory.release(*workspace);
  if (!grid.printed.empty()) device.print(grid.printed);
  for (const std::string& found : grid.reports) {
    std::fprintf(stderr, "sealane emulated GPU: check: %s\n", found.c_str());
  }
  if (grid.failed()) std::fprintf(stderr, "sealane emulated GPU: %s\n", grid.message.c_str());
  return {result_of(static_cast<ptx::Fault>(grid.fault.load())),
          static_cast<double>(grid.counts.operations),
          static_cast<double>(grid.counts.global_bytes)};
}

}  // namespace sealane::emu
