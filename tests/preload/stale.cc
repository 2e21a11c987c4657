// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A program that copies the same buffers to the device in the same order, again and again, with
// pauses: what is easiest to seal ahead. And between two copies it changes some of them, by every
// way there is: by a thread, by read(2), by a copy from the device, by discarding the pages, by
// mapping new memory in their place, by freeing and allocating again. What the device has received
// must be what the memory held when the copy was asked for. Prints "ok" if so.
//
//   stale pinned|pageable [SEED [ROUNDS]]

#include <cuda.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "patience.h"

namespace {

constexpr size_t kBuffers = 6;

void ok(CUresult code, const char* what) {
  if (code == CUDA_SUCCESS) return;
  std::printf("%s: error %d\n", what, static_cast<int>(code));
  std::exit(1);
}

struct Buffer {
  uint8_t* host = nullptr;
  CUdeviceptr device = 0;
  size_t bytes = 0;
  size_t mapped = 0;
};

class Program {
 public:
  Program(bool pinned, unsigned seed) : pinned_(pinned), random_(seed) {
    for (size_t i = 0; i < kBuffers; ++i) {
      Buffer& b = buffers_[i];
      b.bytes = (256 << 10) + random_() % (2 << 20);
      b.mapped = (b.bytes + 4095) & ~size_t{4095};
      allocate(b);
      ok(cuMemAlloc(&b.device, b.bytes), "cuMemAlloc");
      fill(b.host, b.bytes);
    }
    ok(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  }

  bool round() {
    for (Buffer& b : buffers_) {
      if (random_() % 4 == 0) change(b);
      expected_.assign(b.host, b.host + b.bytes);
      ok(cuMemcpyHtoDAsync(b.device, b.host, b.bytes, stream_), "cuMemcpyHtoDAsync");
      // A pageable source is the program's again at once.
      if (!pinned_ && random_() % 3 == 0) b.host[random_() % b.bytes] ^= 0xff;
      ok(cuStreamSynchronize(stream_), "cuStreamSynchronize");
      if (!holds_expected(b)) return false;
      std::this_thread::sleep_for(patiently(std::chrono::microseconds(random_() % 600)));
    }
    return true;
  }

 private:
  void allocate(Buffer& b) {
    void* memory = nullptr;
    if (pinned_) {
      ok(cuMemAllocHost(&memory, b.bytes), "cuMemAllocHost");
    } else {
      memory = mmap(nullptr, b.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    b.host = static_cast<uint8_t*>(memory);
  }

  void fill(uint8_t* to, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 97) to[i] = static_cast<uint8_t>(random_());
  }

  void change(Buffer& b) {
    const size_t at = random_() % b.bytes;
    const size_t count = 1 + random_() % std::min<size_t>(b.bytes - at, 70000);
    switch (random_() % (pinned_ ? 5 : 6)) {
      case 0:
        b.host[at] ^= 1;
        break;
      case 1:
        std::thread([&] { std::memset(b.host + at, static_cast<int>(random_()), count); }).join();
        break;
      case 2: {
        const int zero = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
        if (read(zero, b.host + at, count) < 0) std::exit(1);
        close(zero);
        break;
      }
      case 3: {  // from another buffer's device memory
        const Buffer& other = buffers_[random_() % kBuffers];
        const size_t bytes = std::min(count, other.bytes);
        ok(cuMemcpyDtoHAsync(b.host + at, other.device, std::min(bytes, b.bytes - at), stream_),
           "cuMemcpyDtoHAsync");
        ok(cuStreamSynchronize(stream_), "cuStreamSynchronize");
        break;
      }
      case 4:
        if (pinned_) {
          ok(cuMemFreeHost(b.host), "cuMemFreeHost");
          allocate(b);
          fill(b.host, b.bytes);
        } else {  // the pages read as zero from now on
          madvise(b.host, b.mapped, MADV_DONTNEED);
        }
        break;
      default:  // other memory at the same address
        mmap(b.host, b.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
             0);
        fill(b.host, b.bytes / 2);
    }
  }

  bool holds_expected(const Buffer& b) {
    got_.assign(b.bytes, 0);
    ok(cuMemcpyDtoH(got_.data(), b.device, b.bytes), "cuMemcpyDtoH");
    if (got_ == expected_) return true;
    size_t at = 0;
    while (got_[at] == expected_[at]) ++at;
    std::printf("stale byte %zu of a buffer of %zu\n", at, b.bytes);
    return false;
  }

  const bool pinned_;
  std::mt19937 random_;
  Buffer buffers_[kBuffers];
  CUstream stream_ = nullptr;
  std::vector<uint8_t> expected_, got_;  // kept: new pages take longer than a copy
};

}  // namespace

int main(int argc, char** argv) {
  const std::string memory = argc > 1 ? argv[1] : "pinned";
  const unsigned seed = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 40;
  ok(cuInit(0), "cuInit");
  CUcontext context = nullptr;
  ok(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  ok(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  Program program(memory == "pinned", seed);
  for (int i = 0; i < rounds; ++i) {
    if (!program.round()) return 1;
  }
  std::puts("ok");
  return 0;
}
