// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does time on the emulated GPU pass as its platform file says? Copies of many sizes, timed by
// events, beside what the cost model of src/platform says of them. A measurement, not a test:
//     sealane run --emulate --cc on --platform h100-tdx -- emu_rates h100-tdx
// Unpaced, without an argument: how fast the emulator itself copies, beside memcpy.
//     sealane run --emulate --cc off -- emu_rates

#include <cuda.h>
#include <fmt/core.h>
#include <sealane_emu.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "platform/cost.h"
#include "platform/reader.h"

namespace {

using namespace sealane;

constexpr uint64_t kLargest = 64_MiB;

void must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  fmt::print(stderr, "{}: error {}\n", what, static_cast<int>(result));
  std::exit(1);
}
#define MUST(call) must(call, #call)

struct Copies {
  CUdeviceptr device = 0;
  void* pinned = nullptr;
  void* pageable = nullptr;
  CUstream stream = nullptr;
  CUevent begin = nullptr;
  CUevent end = nullptr;

  void* host(HostMemory memory) const { return memory == HostMemory::pinned ? pinned : pageable; }
};

Copies prepare() {
  Copies out;
  CUcontext context = nullptr;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  MUST(cuMemAlloc(&out.device, kLargest));
  MUST(cuMemAllocHost(&out.pinned, kLargest));
  out.pageable = std::aligned_alloc(4096, kLargest);
  std::memset(out.pinned, 1, kLargest);
  std::memset(out.pageable, 2, kLargest);
  MUST(cuStreamCreate(&out.stream, CU_STREAM_NON_BLOCKING));
  MUST(cuEventCreate(&out.begin, CU_EVENT_DEFAULT));
  MUST(cuEventCreate(&out.end, CU_EVENT_DEFAULT));
  return out;
}

int copies_timed(uint64_t bytes) { return bytes < 1_MiB ? 10 : 1; }

// The mean of a few, back to back, as bandwidthTest does: the platform files have its numbers.
double copy_us(const Copies& copies, void* host, bool inbound, uint64_t bytes) {
  const int count = copies_timed(bytes);
  MUST(cuEventRecord(copies.begin, copies.stream));
  for (int i = 0; i < count; ++i) {
    if (inbound) {
      MUST(cuMemcpyHtoDAsync(copies.device, host, bytes, copies.stream));
    } else {
      MUST(cuMemcpyDtoHAsync(host, copies.device, bytes, copies.stream));
    }
  }
  MUST(cuEventRecord(copies.end, copies.stream));
  MUST(cuEventSynchronize(copies.end));
  float milliseconds = 0;
  MUST(cuEventElapsedTime(&milliseconds, copies.begin, copies.end));
  return static_cast<double>(milliseconds) * 1e3 / count;
}

double median_us(const Copies& copies, HostMemory memory, bool inbound, uint64_t bytes) {
  const size_t rounds = std::clamp<size_t>(32_MiB / bytes, 3, 15);
  std::vector<double> seen;
  copy_us(copies, copies.host(memory), inbound, bytes);
  for (size_t i = 0; i < rounds; ++i) {
    seen.push_back(copy_us(copies, copies.host(memory), inbound, bytes));
  }
  std::nth_element(seen.begin(), seen.begin() + static_cast<long>(seen.size() / 2), seen.end());
  return seen[seen.size() / 2];
}

double modelled_us(const Platform& platform, HostMemory memory, bool cc, bool inbound,
                   uint64_t bytes) {
  const Path& path = inbound ? platform.to_device : platform.to_host;
  const Duration cost =
      cc ? stock_copy_time(platform, path, memory, bytes) : open_copy_time(path, memory, bytes);
  // The event that begins it keeps its caller from the first copy.
  const Duration record = call_surcharge(platform.gpu, cc) / copies_timed(bytes);
  return static_cast<double>((cost + record).count()) / 1e3;
}

// Real nanoseconds of `copy`, the best of a few: the machine may have other things to do.
template <typename Copy>
double best_ns(Copy&& copy) {
  double best = 1e18;
  for (int i = 0; i < 9; ++i) {
    const uint64_t began = sealane_emu_clock_ns();
    copy();
    best = std::min(best, static_cast<double>(sealane_emu_clock_ns() - began));
  }
  return best;
}

int compare_with_memcpy() {
  const Copies copies = prepare();
  fmt::print("{:>8} {:>12} {:>14} {:>12} {:>7}\n", "MiB", "memcpy GB/s", "to_device GB/s",
             "to_host GB/s", "ratio");
  for (uint64_t bytes = 1_MiB; bytes <= kLargest; bytes *= 4) {
    const double plain = best_ns([&] { std::memcpy(copies.pageable, copies.pinned, bytes); });
    const double in = best_ns([&] { MUST(cuMemcpyHtoD(copies.device, copies.pinned, bytes)); });
    const double out = best_ns([&] { MUST(cuMemcpyDtoH(copies.pinned, copies.device, bytes)); });
    const auto size = static_cast<double>(bytes);
    fmt::print("{:>8} {:>12.2f} {:>14.2f} {:>12.2f} {:>7.2f}\n", bytes >> 20, size / plain,
               size / in, size / out, plain / std::max(in, out));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) return compare_with_memcpy();
  const auto platform =
      argc == 2 ? find_platform(argv[1]) : usage_error("usage: emu_rates PLATFORM");
  if (!platform) {
    fmt::print(stderr, "emu_rates: {}\n", platform.error().message);
    return 2;
  }
  const char* mode = std::getenv("SEALANE_EMU_CC");
  const bool cc = mode == nullptr || std::string(mode) != "off";
  const Copies copies = prepare();
  double worst = 0;
  fmt::print("{} cc {}\n{:>10} {:>9} {:>8} {:>12} {:>12} {:>7}\n", argv[1], cc ? "on" : "off", "",
             "memory", "KiB", "modelled us", "emulated us", "ratio");
  for (const HostMemory memory : {HostMemory::pinned, HostMemory::pageable}) {
    for (const bool inbound : {true, false}) {
      for (uint64_t bytes = 64_KiB; bytes <= kLargest; bytes *= 4) {
        const double expected = modelled_us(*platform, memory, cc, inbound, bytes);
        const double seen = median_us(copies, memory, inbound, bytes);
        worst = std::max(worst, std::abs(seen / expected - 1));
        fmt::print("{:>10} {:>9} {:>8} {:>12.1f} {:>12.1f} {:>7.3f}\n",
                   inbound ? "to_device" : "to_host",
                   memory == HostMemory::pinned ? "pinned" : "pageable", bytes / 1024, expected,
                   seen, seen / expected);
      }
    }
  }
  fmt::print("largest deviation {:.1f} %\n", worst * 100);
}
