// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "scenario/player/kernels.h"

#include <sealane_emu.h>

#include <chrono>
#include <thread>
#include <utility>

#include "scenario/player/bytes.h"
#include "scenario/player/findings.h"

namespace sealane::test {
namespace {

unsigned waits_percent = 0;  // set before the first thread begins

const KernelArguments& arguments_of(const sealane_emu_launch* launch) {
  return *static_cast<const KernelArguments*>(launch->arguments[0]);
}

void check_kernel(const sealane_emu_launch* launch) {
  const KernelArguments& a = arguments_of(launch);
  const auto* memory = static_cast<const uint8_t*>(launch->memory(launch, a.address, a.bytes));
  if (memory == nullptr || digest(memory, a.bytes) == a.number) return;
  findings().suspect(a.operation);
}

void scramble_kernel(const sealane_emu_launch* launch) {
  const KernelArguments& a = arguments_of(launch);
  auto* memory = static_cast<uint8_t*>(launch->memory(launch, a.address, a.bytes));
  if (memory != nullptr) scramble(memory, a.bytes, a.number);
}

void timed_kernel(const sealane_emu_launch* launch) {
  constexpr double kBytesPerNs = 3000;  // gpu.memory_gb_per_s, docs/emulator.md
  const uint64_t ns = arguments_of(launch).number;
  launch->charge(launch, 0, static_cast<double>(ns) * kBytesPerNs);
  wait_part_of(ns);
}

}  // namespace

void set_waits(unsigned percent) { waits_percent = percent; }

void wait_part_of(uint64_t modelled_ns) {
  const uint64_t ns = modelled_ns * waits_percent / 100;
  if (ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
}

CUresult Kernels::load() {
  const std::pair<const char*, sealane_emu_kernel_fn> all[] = {
      {"scenario_check", check_kernel},
      {"scenario_scramble", scramble_kernel},
      {"scenario_timed", timed_kernel}};
  CUmodule module = nullptr;
  CUresult result = cuModuleLoadData(&module,
                                     ".version 8.0 .target sm_90 .entry scenario_check() { ret; } "
                                     ".entry scenario_scramble() { ret; } "
                                     ".entry scenario_timed() { ret; }");
  const size_t sizes[] = {sizeof(KernelArguments)};
  for (size_t i = 0; i < 3 && result == CUDA_SUCCESS; ++i) {
    const sealane_emu_kernel kernel = {sizeof kernel, all[i].first, all[i].second, sizes, 1};
    sealane_emu_register(&kernel);
    result = cuModuleGetFunction(&functions_[i], module, all[i].first);
  }
  return result;
}

CUresult Kernels::launch(Kernel kernel, KernelArguments arguments, CUstream stream) const {
  void* pointers[] = {&arguments};
  return cuLaunchKernel(functions_[static_cast<size_t>(kernel)], 1, 1, 1, 1, 1, 1, 0, stream,
                        pointers, nullptr);
}

}  // namespace sealane::test
