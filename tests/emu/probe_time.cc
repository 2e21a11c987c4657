// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Jobs about modelled time. What they say in device time is judged by the test.

#include <sealane_emu.h>

#include <chrono>
#include <thread>

#include "probe.h"

namespace probe {
namespace {

// Work of the modelled host takes what the model says, and no longer if it took that long already.
int pace() {
  begin();
  const double dilation = sealane_emu_dilation();
  int wrong = EXPECT(dilation > 0);
  struct Kind {
    sealane_emu_work work;
    double gb_per_s;
  };
  for (const Kind& kind : {Kind{SEALANE_EMU_AEAD_STOCK, 0.5}, Kind{SEALANE_EMU_AEAD_FAST, 1.0},
                           Kind{SEALANE_EMU_HOST_COPY, 2.0}, Kind{SEALANE_EMU_DIGEST, 4.0}}) {
    const uint64_t bytes = 1 << 20;
    const auto least = static_cast<uint64_t>(dilation * static_cast<double>(bytes) / kind.gb_per_s);
    const uint64_t began = sealane_emu_clock_ns();
    sealane_emu_pace(kind.work, bytes, began);
    wrong += EXPECT(sealane_emu_clock_ns() - began >= least);
    // A minute of modelled work that began two minutes ago was done a minute ago: nobody waits for
    // it, and the thread goes on from there until it is told what time it is.
    const uint64_t minute = 60000000000u;
    const uint64_t before = sealane_emu_clock_ns();
    sealane_emu_pace(kind.work, static_cast<uint64_t>(kind.gb_per_s * 60e9 / dilation),
                     before - 2 * minute);
    wrong += EXPECT(before - sealane_emu_clock_ns() > minute / 2);
    sealane_emu_go_on(UINT64_MAX);
    wrong += EXPECT(sealane_emu_clock_ns() - before < minute / 2);
  }
  return wrong;
}

// Calls that neither copy nor launch keep their caller as long as the model says.
int calls() {
  begin();
  const auto least = static_cast<uint64_t>(sealane_emu_dilation() * 2e6);
  const auto takes_its_time = [&](auto&& call) {
    const uint64_t began = sealane_emu_clock_ns();
    MUST(call());
    return EXPECT(sealane_emu_clock_ns() - began >= least);
  };
  CUdeviceptr device = 0;
  CUevent event = nullptr;
  int wrong = takes_its_time([&] { return cuMemAlloc(&device, 4096); });
  wrong += takes_its_time([&] { return cuEventCreate(&event, CU_EVENT_DEFAULT); });
  wrong += takes_its_time([&] { return cuEventRecord(event, nullptr); });
  wrong += takes_its_time([&] { return cuMemFree(device); });
  return wrong;
}

// A copy of 8 MiB, for whoever looks at the counters.
int copy() {
  begin();
  const Bytes in = pattern(8 << 20, 11);
  Bytes out(in.size());
  const CUdeviceptr device = allocate(in.size());
  MUST(cuMemcpyHtoD(device, in.data(), in.size()));
  MUST(cuMemcpyDtoH(out.data(), device, in.size()));
  return EXPECT(in == out);
}

constexpr auto kSlow = std::chrono::milliseconds(300);

// A kernel that takes us long and the modelled GPU next to nothing.
int slow_kernel() {
  begin();
  const sealane_emu_kernel kernel = {sizeof kernel, "slow",
                                     [](const sealane_emu_launch* launch) {
                                       std::this_thread::sleep_for(kSlow);
                                       launch->charge(launch, 1, 1);
                                     },
                                     nullptr, 0};
  int wrong = EXPECT(sealane_emu_register(&kernel) == 0);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  MUST(cuModuleLoadData(&module, ".version 8.0 .target sm_90 .entry slow() { ret; }"));
  MUST(cuModuleGetFunction(&function, module, "slow"));
  MUST(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  MUST(cuCtxSynchronize());
  return wrong;
}

}  // namespace

Jobs time_jobs() {
  return {{"pace", pace}, {"calls", calls}, {"copy", copy}, {"slow_kernel", slow_kernel}};
}

}  // namespace probe
