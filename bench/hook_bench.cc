// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What a call costs that the preload catches and has nothing to do for: the same calls on the
// emulated GPU without the preload, with it and CC mode off, and with it and CC mode on. Each run
// is a process of its own; settings take turns, the fastest run of each counts.

#include <cuda.h>
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kRounds = 9;
constexpr int kCalls = 100'000;
constexpr std::array<const char*, 2> kNames = {"cuStreamWaitEvent", "cuEventQuery"};
using Figures = std::array<double, kNames.size()>;

struct Setting {
  const char* name;
  const char* cc;
  bool preload;
};
constexpr std::array<Setting, 4> kSettings = {{{"CC off", "off", false},
                                               {"CC off, preload", "off", true},
                                               {"CC on", "on", false},
                                               {"CC on, preload", "on", true}}};

void ok(CUresult code) {
  if (code == CUDA_SUCCESS) return;
  std::fprintf(stderr, "hook_bench: CUDA error %d\n", code);
  std::exit(1);
}

template <typename Call>
double ns_per_call(const Call& call) {
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) ok(call());
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
  return took.count() / kCalls;
}

// A carried copy first, so that there is a lane and the stream is known.
Figures measure() {
  constexpr size_t kBytes = 1 << 20;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUdeviceptr there = 0;
  void* here = nullptr;
  ok(cuInit(0));
  ok(cuDeviceGet(&device, 0));
  ok(cuCtxCreate(&context, nullptr, 0, device));
  ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  ok(cuMemAlloc(&there, kBytes));
  ok(cuMemAllocHost(&here, kBytes));
  ok(cuMemcpyHtoDAsync(there, here, kBytes, stream));
  ok(cuEventRecord(event, stream));
  ok(cuStreamSynchronize(stream));
  return {ns_per_call([&] { return cuStreamWaitEvent(stream, event, 0); }),
          ns_per_call([&] { return cuEventQuery(event); })};
}

// In a process of its own, whose figures come through a pipe.
Figures run(const char* program, const Setting& setting) {
  int ends[2];
  if (pipe(ends) != 0) std::exit(1);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    setenv("SEALANE_EMU_CC", setting.cc, 1);
    setenv("LD_LIBRARY_PATH", SEALANE_EMU_DIR, 1);
    if (setting.preload) setenv("LD_PRELOAD", SEALANE_PRELOAD, 1);
    execl("/proc/self/exe", program, "--measure", nullptr);
    _exit(127);
  }
  close(ends[1]);
  Figures figures{};
  const auto bytes = read(ends[0], figures.data(), sizeof figures);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status == 0 && bytes == static_cast<ssize_t>(sizeof figures)) return figures;
  std::fprintf(stderr, "hook_bench: a run failed\n");
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--measure") == 0) {
    const Figures figures = measure();
    return write(STDOUT_FILENO, figures.data(), sizeof figures) == sizeof figures ? 0 : 1;
  }
  std::array<Figures, kSettings.size()> best;
  for (Figures& one : best) one.fill(1e9);
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < kSettings.size(); ++i) {
      const Figures found = run(argv[0], kSettings[i]);
      for (size_t call = 0; call < found.size(); ++call) {
        best[i][call] = std::min(best[i][call], found[call]);
      }
    }
  }
  fmt::print("MEASURED on the emulated GPU, ns per call, the best of {} runs of {}\n", kRounds,
             kCalls);
  for (size_t i = 0; i < kSettings.size(); ++i) {
    for (size_t call = 0; call < kNames.size(); ++call) {
      fmt::print("{:<16} {:<18} {:8.1f}", kSettings[i].name, kNames[call], best[i][call]);
      if (kSettings[i].preload) fmt::print("   {:+.1f}", best[i][call] - best[i - 1][call]);
      fmt::print("\n");
    }
  }
}
