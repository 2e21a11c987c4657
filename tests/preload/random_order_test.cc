// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do random programs get what CUDA promises? Each thread puts random copies, fills and kernels into
// several streams of its device, ordered by events where they share memory, and carries out the
// same on the host at once. Pageable sources are overwritten as soon as the call returns; buffers
// are freed and made again in between. Every byte that comes back must be the model's.
//
// RANDOM_ORDER_SEED, RANDOM_ORDER_THREADS (per device) and RANDOM_ORDER_SECONDS (new programs until
// then) are for those who soak or replay.

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>

#include "cuda/driver.h"

namespace sealane::test {
namespace {

constexpr int kStreams = 3;
constexpr int kBuffers = 5;
constexpr int kSteps = 400;
constexpr unsigned kThreadsPerDevice = 2;
constexpr uint32_t kWordsMax = 60000;

// One thread's program, and what it must lead to.
class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed) : random_(seed) {
    for (CUstream& stream : streams_) ok(cuStreamCreate(&stream, random_() % 2));
    for (Buffer& buffer : buffers_) make(buffer);
  }
  ~RandomProgram() {
    for (Buffer& buffer : buffers_) drop(buffer);
    for (CUstream stream : streams_) ok(cuStreamDestroy(stream));
  }
  RandomProgram(const RandomProgram&) = delete;
  RandomProgram& operator=(const RandomProgram&) = delete;

  std::string run() {
    for (int step = 0; step < kSteps && problem_.empty(); ++step) {
      one_step(streams_[random_() % kStreams], buffers_[random_() % kBuffers]);
    }
    for (Buffer& buffer : buffers_) check(buffer, streams_[0]);
    return problem_;
  }

 private:
  struct Buffer {
    CUdeviceptr device = 0;
    uint32_t* pinned = nullptr;     // source and destination of asynchronous copies
    CUevent used = nullptr;         // behind the last thing that touched any of it
    std::vector<uint32_t> words;    // what the device must hold
    std::vector<uint32_t> fetched;  // what `pinned` must hold
  };

  void ok(CUresult code) {
    if (code != CUDA_SUCCESS && problem_.empty()) problem_ = "error " + std::to_string(code);
  }
  size_t bytes(const Buffer& b) const { return b.words.size() * sizeof(uint32_t); }

  void make(Buffer& b) {
    b.words.assign(1 + random_() % kWordsMax, 0);
    b.fetched.assign(b.words.size(), 0);
    ok(cuMemAlloc(&b.device, bytes(b)));
    void* memory = nullptr;
    ok(cuMemAllocHost(&memory, bytes(b)));
    b.pinned = static_cast<uint32_t*>(memory);
    std::memset(b.pinned, 0, bytes(b));
    ok(cuMemsetD8(b.device, 0, bytes(b)));
    ok(cuStreamSynchronize(CU_STREAM_LEGACY));
    ok(cuEventCreate(&b.used, CU_EVENT_DISABLE_TIMING));
  }

  // No synchronisation of ours: freeing has to wait for what is under way.
  void drop(Buffer& b) {
    ok(cuMemFreeHost(b.pinned));
    ok(cuMemFree(b.device));
    ok(cuEventDestroy(b.used));
  }

  void one_step(CUstream stream, Buffer& b) {
    ok(cuStreamWaitEvent(stream, b.used, 0));
    switch (random_() % 13) {
      case 0:
      case 1:
        copy_in_pinned(stream, b);
        break;
      case 2:
      case 3:
        copy_in_pageable(stream, b);
        break;
      case 4:
      case 5:
        copy_out(stream, b);
        break;
      case 6:
        fill(stream, b);
        break;
      case 7:
      case 8:
        copy_within(stream, b, buffers_[random_() % kBuffers]);
        break;
      case 9:
        check(b, stream);
        break;
      case 10:
        several(stream, b);
        break;
      case 11:
        batch(stream, b);
        break;
      default:
        if (random_() % 8 == 0) {
          drop(b);
          make(b);
        }
    }
    ok(cuEventRecord(b.used, stream));
  }

  void copy_in_pinned(CUstream stream, Buffer& b) {
    ok(cuEventSynchronize(b.used));  // the pinned memory is the program's again
    for (size_t i = 0; i < b.words.size(); i += 1 + random_() % 64) {
      b.pinned[i] = static_cast<uint32_t>(random_());
    }
    std::memcpy(b.words.data(), b.pinned, bytes(b));
    std::memcpy(b.fetched.data(), b.pinned, bytes(b));
    ok(cuMemcpyHtoDAsync(b.device, b.pinned, bytes(b), stream));
  }

  void copy_in_pageable(CUstream stream, Buffer& b) {
    const size_t first = random_() % b.words.size();
    const size_t count = 1 + random_() % (b.words.size() - first);
    std::vector<uint32_t> source(count);
    for (uint32_t& word : source) word = static_cast<uint32_t>(random_());
    std::memcpy(&b.words[first], source.data(), count * sizeof(uint32_t));
    ok(cuMemcpyHtoDAsync(b.device + first * sizeof(uint32_t), source.data(),
                         count * sizeof(uint32_t), stream));
    std::memset(source.data(), 0xee, count * sizeof(uint32_t));
  }

  void copy_out(CUstream stream, Buffer& b) {
    ok(cuMemcpyDtoHAsync(b.pinned, b.device, bytes(b), stream));
    b.fetched = b.words;
  }

  void fill(CUstream stream, Buffer& b) {
    const auto value = static_cast<uint32_t>(random_());
    ok(cuMemsetD32Async(b.device, value, b.words.size(), stream));
    std::fill(b.words.begin(), b.words.end(), value);
  }

  void copy_within(CUstream stream, Buffer& from, Buffer& to) {
    if (&from == &to) return;
    const size_t count = std::min(from.words.size(), to.words.size());
    ok(cuStreamWaitEvent(stream, to.used, 0));
    ok(cuMemcpyDtoDAsync(to.device, from.device, count * sizeof(uint32_t), stream));
    std::copy_n(from.words.begin(), count, to.words.begin());
    ok(cuEventRecord(to.used, stream));
  }

  // Copies with nothing between them, which may overlap.
  void several(CUstream stream, Buffer& b) {
    for (int i = 0; i < 4; ++i) copy_in_pageable(stream, b);
    copy_out(stream, b);
  }

  // Pieces of the buffer, no two the same words, from memory that is gone after the call.
  void batch(CUstream stream, Buffer& b) {
    std::vector<uint32_t> source(b.words.size());
    std::vector<CUdeviceptr> to, from;
    std::vector<size_t> sizes;
    for (size_t first = 0; first < b.words.size();) {
      const size_t most = random_() % 2 == 0 ? 40 : 20000;
      const size_t count = std::min(1 + random_() % most, b.words.size() - first);
      if (random_() % 4 != 0) {
        for (size_t i = first; i < first + count; ++i) {
          source[i] = b.words[i] = static_cast<uint32_t>(random_());
        }
        to.push_back(b.device + first * sizeof(uint32_t));
        from.push_back(reinterpret_cast<CUdeviceptr>(&source[first]));
        sizes.push_back(count * sizeof(uint32_t));
      }
      first += count;
      if (to.size() == 100) break;
    }
    if (to.empty()) return;
    CUmemcpyAttributes attributes{};
    attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    size_t start = 0;
    ok(cuMemcpyBatchAsync(to.data(), from.data(), sizes.data(), to.size(), &attributes, &start, 1,
                          stream));
    std::memset(source.data(), 0xee, bytes(b));
  }

  void check(Buffer& b, CUstream stream) {
    ok(cuStreamWaitEvent(stream, b.used, 0));
    copy_out(stream, b);
    ok(cuStreamSynchronize(stream));
    if (problem_.empty() && std::memcmp(b.pinned, b.fetched.data(), bytes(b)) != 0) {
      problem_ = "wrong bytes";
    }
  }

  std::mt19937 random_;
  CUstream streams_[kStreams] = {};
  Buffer buffers_[kBuffers];
  std::string problem_;
};

unsigned number(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
}

void run_programs(int devices, unsigned per_device, unsigned seed) {
  std::vector<std::thread> threads;
  for (int i = 0; i < devices * static_cast<int>(per_device); ++i) {
    threads.emplace_back([=] {
      CUcontext context = nullptr;
      EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, i % devices), CUDA_SUCCESS);
      EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
      const std::string problem = RandomProgram(seed + static_cast<unsigned>(i)).run();
      EXPECT_EQ(problem, "") << "seed " << seed << " thread " << i;
      EXPECT_EQ(cuDevicePrimaryCtxRelease(i % devices), CUDA_SUCCESS);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(RandomOrder, ProgramsGetWhatCudaPromises) {
  CU_OK(cuInit(0));
  int devices = 0;
  CU_OK(cuDeviceGetCount(&devices));
  const unsigned per_device = number("RANDOM_ORDER_THREADS", kThreadsPerDevice);
  unsigned seed = number("RANDOM_ORDER_SEED", std::random_device()());
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds(number("RANDOM_ORDER_SECONDS", 0));
  do {
    run_programs(devices, per_device, seed);
    seed += 1000;
  } while (!HasFailure() && std::chrono::steady_clock::now() < end);
}

}  // namespace
}  // namespace sealane::test
