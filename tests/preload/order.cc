// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies of one stream land in the order they were asked for, whatever memory they touch: much data
// and then a small flag that says it is there. Who sees the flag sees the data, without waiting for
// the stream: a kernel that runs already and polls, a stream that waits for the word, a host that
// looks at pinned memory. Prints "ok".
//
// What is copied back is what was copied in before it, also if that travelled with others.
//
// "publish" is of readers: who writes data and then a flag while copies read both, the flag before
// the data, sees no data that is older than its flag. CUDA leaves such races undefined, and by
// default data may be read early: for SEALANE_EARLY=0.
//
// And a stream that is kept waiting, with however many copies behind each other, keeps no other one
// waiting: the host lets it go when the other's copy is done.
//
//   order kernel|stream|host|back|beside|publish

#include <cuda.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "emulated.h"

namespace {

constexpr size_t kBytes = 16 << 20;
constexpr uint32_t kRounds = 10;

std::atomic<uint32_t> seen{0};

uint64_t argument(const sealane_emu_launch* launch, size_t which) {
  return *static_cast<const uint64_t*>(launch->arguments[which]);
}

void wait_for(uint32_t* flag, uint32_t value) {
  while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != value) sched_yield();
}

// Parameters: flag, its value or 0 for not to wait, data. Looks at the byte that comes last.
void look(const sealane_emu_launch* launch) {
  auto* const flag = static_cast<uint32_t*>(launch->memory(launch, argument(launch, 0), 4));
  auto* const data = static_cast<uint8_t*>(launch->memory(launch, argument(launch, 2), kBytes));
  if (flag == nullptr || data == nullptr) return;
  if (const uint64_t value = argument(launch, 1); value != 0) {
    wait_for(flag, static_cast<uint32_t>(value));
  }
  seen = __atomic_load_n(&data[kBytes - 1], __ATOMIC_RELAXED);
}

struct Device : OneDevice {
  Device() : OneDevice(kBytes) {
    OK(cuMemAlloc(&flag, 4));
    OK(cuMemsetD32(flag, 0, 1));
    OK(cuCtxSynchronize());  // no stream of ours waits for it
    OK(cuMemAllocHost(&host, kBytes));
    OK(cuMemAllocHost(reinterpret_cast<void**>(&host_flag), 4));
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    *host_flag = 0;
  }
  CUdeviceptr flag = 0;
  void* host = nullptr;
  uint32_t* host_flag = nullptr;
  CUstream other = nullptr;
};

void to_device(Device& device, CUfunction kernel, uint32_t round, bool polls) {
  std::memset(device.host, static_cast<int>(round), kBytes);
  *device.host_flag = round;
  seen = 0;
  if (!polls) OK(cuStreamWaitValue32(device.other, device.flag, round, CU_STREAM_WAIT_VALUE_EQ));
  OK(launch(kernel, device.other, {device.flag, polls ? round : 0, device.memory}));
  OK(cuMemcpyHtoDAsync(device.memory, device.host, kBytes, device.stream));
  OK(cuMemcpyHtoDAsync(device.flag, device.host_flag, 4, device.stream));
  OK(cuStreamSynchronize(device.other));
  if (seen != round) fail("the flag was there before the data", static_cast<int>(round));
  OK(cuStreamSynchronize(device.stream));
}

void to_host(Device& device, uint32_t round) {
  OK(cuMemsetD8Async(device.memory, static_cast<unsigned char>(round), kBytes, device.stream));
  OK(cuMemsetD32Async(device.flag, round, 1, device.stream));
  OK(cuStreamSynchronize(device.stream));
  std::memset(device.host, 0, kBytes);
  OK(cuMemcpyDtoHAsync(device.host, device.memory, kBytes, device.stream));
  OK(cuMemcpyDtoHAsync(device.host_flag, device.flag, 4, device.stream));
  wait_for(device.host_flag, round);
  const uint8_t last = static_cast<volatile uint8_t*>(device.host)[kBytes - 1];
  if (last != round) fail("the flag was there before the data", static_cast<int>(round));
  OK(cuStreamSynchronize(device.stream));
}

// All are asked for before the first may go.
void back(Device& device) {
  constexpr size_t kPart = 4096;
  constexpr size_t kParts = 6;
  auto* const sent = static_cast<uint8_t*>(device.host);
  uint8_t* const got = sent + kBytes / 2;
  for (uint32_t round = 1; round <= 100; ++round) {
    std::memset(sent, static_cast<int>(round), kParts * kPart);
    OK(cuMemsetD8Async(device.memory, 0, kParts * kPart, device.stream));
    for (size_t i = 0; i < kParts; ++i) {
      OK(cuMemcpyHtoDAsync(device.memory + i * kPart, sent + i * kPart, kPart, device.stream));
    }
    OK(cuMemcpyDtoHAsync(got, device.memory + 2 * kPart, kPart, device.stream));
    OK(cuStreamSynchronize(device.stream));
    if (got[kPart / 2] != round) fail("what was there before came back", got[kPart / 2]);
  }
}

void beside(Device& device) {
  constexpr size_t kDeep = 400;  // more than anybody looks at in one go
  constexpr size_t kPart = 1000;
  std::atomic<bool> lifted{false};
  const auto wait = [](void* flag) { static_cast<std::atomic<bool>*>(flag)->wait(false); };
  std::memset(device.host, 1, kBytes);
  OK(cuMemcpyHtoDAsync(device.memory, device.host, kBytes, device.stream));
  OK(cuStreamSynchronize(device.stream));
  OK(cuLaunchHostFunc(device.stream, wait, &lifted));
  for (size_t i = 0; i < kDeep; ++i) {
    OK(cuMemcpyHtoDAsync(device.memory + i * kPart, device.host, kPart, device.stream));
    OK(cuMemsetD8Async(device.memory + i * kPart, 2, kPart / 2, device.stream));
  }
  *device.host_flag = 77;
  OK(cuMemcpyHtoDAsync(device.flag, device.host_flag, 4, device.other));
  OK(cuStreamSynchronize(device.other));
  lifted = true;
  lifted.notify_all();
  OK(cuMemcpyDtoHAsync(device.host, device.memory, kBytes, device.stream));
  OK(cuStreamSynchronize(device.stream));
  const auto* const host = static_cast<const uint8_t*>(device.host);
  for (size_t i = 0; i < kDeep * kPart; ++i) {
    if (host[i] != (i % kPart < kPart / 2 ? 2 : 1)) fail("wrong bytes", host[i]);
  }
}

// Until it is told to stop: data, then flag. Whoever reads meanwhile races with it, on purpose.
std::atomic<bool> publishing{false};
[[gnu::noinline, gnu::no_sanitize("thread")]] void write_until_stopped(uint32_t* flag,
                                                                       uint32_t* data) {
  for (uint32_t n = 1; publishing; ++n) {
    __atomic_store_n(data, n, __ATOMIC_SEQ_CST);
    __atomic_store_n(flag, n, __ATOMIC_SEQ_CST);
    if (n % 64 == 0) sched_yield();
  }
}
void publish(const sealane_emu_launch* launch) {
  write_until_stopped(static_cast<uint32_t*>(launch->memory(launch, argument(launch, 0), 4)),
                      static_cast<uint32_t*>(launch->memory(launch, argument(launch, 1), 4)));
}

// The flag is the last word of what is copied first, the data the first of what is copied then.
constexpr size_t kData = 4 << 20;
constexpr size_t kFlag = kData - sizeof(uint32_t);
constexpr size_t kDataBytes = 100'000;  // neither small nor bulk
constexpr uint32_t kPublished = 200;

void check_published(const uint8_t* got) {
  uint32_t flag = 0;
  uint32_t data = 0;
  std::memcpy(&flag, got + kFlag, sizeof flag);
  std::memcpy(&data, got + kData, sizeof data);
  if (data < flag) fail("data is older than its flag", static_cast<int>(flag - data));
}

void publish_on_device(Device& device) {
  CUfunction kernel = make_kernel("publish", publish, 2);
  auto* const got = static_cast<uint8_t*>(device.host);
  OK(cuMemsetD8(device.memory, 0, kData + kDataBytes));
  OK(cuCtxSynchronize());  // no stream of ours waits for it
  publishing = true;
  OK(launch(kernel, device.other, {device.memory + kFlag, device.memory + kData}));
  for (uint32_t round = 0; round < kPublished; ++round) {
    OK(cuMemcpyDtoHAsync(got, device.memory, kData, device.stream));
    OK(cuMemcpyDtoHAsync(got + kData, device.memory + kData, kDataBytes, device.stream));
    OK(cuStreamSynchronize(device.stream));
    check_published(got);
  }
  publishing = false;
  OK(cuStreamSynchronize(device.other));
}

void publish_on_host(Device& device) {
  auto* const source = static_cast<uint8_t*>(device.host);
  uint8_t* const got = source + kBytes / 2;
  std::memset(source, 0, kData + kDataBytes);
  publishing = true;
  std::thread writer(write_until_stopped, reinterpret_cast<uint32_t*>(source + kFlag),
                     reinterpret_cast<uint32_t*>(source + kData));
  for (uint32_t round = 0; round < kPublished; ++round) {
    OK(cuMemcpyHtoDAsync(device.memory, source, kData, device.stream));
    OK(cuMemcpyHtoDAsync(device.memory + kData, source + kData, kDataBytes, device.stream));
    OK(cuStreamSynchronize(device.stream));
    OK(cuMemcpyDtoH(got + kFlag, device.memory + kFlag, kData - kFlag + sizeof(uint32_t)));
    check_published(got);
  }
  publishing = false;
  writer.join();
}

}  // namespace

int main(int count, char** words) {
  const std::string who = count > 1 ? words[1] : "";
  Device device;
  CUfunction kernel = make_kernel("look", look, 3);
  if (who == "beside") beside(device);
  if (who == "back") back(device);
  if (who == "publish") {
    publish_on_device(device);
    publish_on_host(device);
  }
  const bool flagged = who != "beside" && who != "back" && who != "publish";
  for (uint32_t round = 1; round <= kRounds && flagged; ++round) {
    who == "host" ? to_host(device, round) : to_device(device, kernel, round, who == "kernel");
  }
  std::puts("ok");
  return 0;
}
