// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A program that copies to the host, synchronises and looks at the memory: at once, from several
// threads, by system calls, after a fork, by freeing it, by copying it back; or copies on before it
// has looked. What it sees must be what the device had. With "forged" somebody changes a message on
// the bus: then it must see zeros, and its context must fail from then on. Prints "ok".
//
//   copied_out MOMENT

#include <cuda.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "must.h"

namespace {

constexpr size_t kBytes = (6 << 20) + 4096 + 100;  // with a tail
constexpr int kRounds = 12;

struct Device : OneDevice {
  Device() : OneDevice(kBytes) {
    OK(cuMemAlloc(&other, kBytes));
    void* pinned = nullptr;
    OK(cuMemAllocHost(&pinned, kBytes));
    host = static_cast<uint8_t*>(pinned);
    std::memset(host, 0xee, kBytes);
  }
  // The device has `value` everywhere and the program thinks that it has it too.
  void copy_out(uint8_t value) {
    OK(cuMemsetD8Async(memory, value, kBytes, stream));
    OK(cuMemcpyDtoHAsync(host, memory, kBytes, stream));
    OK(cuMemsetD8Async(memory, static_cast<uint8_t>(~value), kBytes, stream));
    OK(cuStreamSynchronize(stream));
  }
  void expect(uint8_t value) const {
    for (size_t i = 0; i < kBytes; ++i) {
      if (host[i] != value) fail("wrong byte", host[i]);
    }
  }

  CUdeviceptr other = 0;
  uint8_t* host = nullptr;
};

void at_once(Device& device) {
  for (uint8_t round = 1; round < kRounds; ++round) {
    device.copy_out(round);
    device.expect(round);
  }
}

void threads(Device& device) {
  for (uint8_t round = 1; round < kRounds; ++round) {
    device.copy_out(round);
    std::vector<std::thread> all;
    for (size_t i = 0; i < 4; ++i) {
      all.emplace_back([&, i] {
        if (device.host[kBytes / 4 * i + 17] != round) fail("wrong byte in a thread");
      });
    }
    for (auto& thread : all) thread.join();
    device.expect(round);
  }
}

// The kernel reads and writes on the program's behalf.
void by_system_call(Device& device) {
  const int file = open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
  if (file < 0) fail("no temporary file");
  for (uint8_t round = 1; round < kRounds; ++round) {
    device.copy_out(round);
    if (pwrite(file, device.host, kBytes, 0) != static_cast<ssize_t>(kBytes)) fail("pwrite");
    std::vector<uint8_t> seen(kBytes);
    if (pread(file, seen.data(), kBytes, 0) != static_cast<ssize_t>(kBytes)) fail("pread");
    for (const uint8_t byte : seen) {
      if (byte != round) fail("wrong byte in a file", byte);
    }
    device.copy_out(static_cast<uint8_t>(round + 100));
    if (pread(file, device.host, 4096, 0) != 4096) fail("pread into it");
    if (device.host[0] != round || device.host[4096] != round + 100) fail("pread got lost");
  }
}

// What the program writes stays, whether the bytes were there or not.
void write_into(Device& device) {
  for (uint8_t round = 1; round < kRounds; ++round) {
    device.copy_out(round);
    device.host[3 << 20] = 200;
    if (device.host[3 << 20] != 200 || device.host[(3 << 20) + 1] != round) fail("a write is lost");
    device.host[3 << 20] = round;
    device.expect(round);
  }
}

void fork_then_look(Device& device) {
  for (uint8_t round = 1; round < 4; ++round) {
    device.copy_out(round);
    const pid_t child = fork();
    if (child == 0) {
      for (size_t i = 0; i < kBytes; ++i) {
        if (device.host[i] != round) _exit(7);
      }
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) fail("the child saw something else", status);
    device.expect(round);
  }
}

void free_it(Device& device) {
  for (uint8_t round = 1; round < kRounds; ++round) {
    device.copy_out(round);
    OK(cuMemFreeHost(device.host));
    void* pinned = nullptr;
    OK(cuMemAllocHost(&pinned, kBytes));
    device.host = static_cast<uint8_t*>(pinned);
    std::memset(device.host, 1, kBytes);
    device.expect(1);
  }
}

// What was just swapped out is swapped in again, asynchronously, synchronously and in parts.
void copy_back(Device& device) {
  std::vector<uint8_t> seen(kBytes);
  for (uint8_t round = 1; round < kRounds; ++round) {
    device.copy_out(round);
    if (round % 2 == 0) {
      OK(cuMemcpyHtoDAsync(device.other, device.host, kBytes, device.stream));
      OK(cuStreamSynchronize(device.stream));
    } else {
      OK(cuMemcpyHtoD(device.other, device.host, kBytes));
    }
    OK(cuMemcpyDtoH(seen.data(), device.other, kBytes));
    for (const uint8_t byte : seen) {
      if (byte != round) fail("wrong byte went back", byte);
    }
  }
}

void copy_over(Device& device) {
  for (uint8_t round = 1; round < kRounds; ++round) {
    device.copy_out(round);
    device.copy_out(static_cast<uint8_t>(round + 50));
    OK(cuMemcpyDtoHAsync(device.host + 10'000, device.memory, 200'000, device.stream));
    OK(cuMemcpyDtoHAsync(device.host + 1'000'000, device.memory, 100, device.stream));
    OK(cuStreamSynchronize(device.stream));
    const auto first = static_cast<uint8_t>(round + 50);
    for (size_t i = 0; i < kBytes; ++i) {
      const bool second = (i >= 10'000 && i < 210'000) || (i >= 1'000'000 && i < 1'000'100);
      const auto expected = static_cast<uint8_t>(second ? ~first : first);
      if (device.host[i] != expected) fail("wrong byte of the second", static_cast<int>(i));
    }
  }
}

void exit_in_flight(Device& device) {
  device.copy_out(1);
  std::puts("ok");
  std::fflush(stdout);
  std::exit(device.host[1 << 20] == 1 ? 0 : 1);
}

// Somebody changes a message in the middle of the copy.
void forged(Device& device) {
  OK(cuMemsetD8Async(device.memory, 5, kBytes, device.stream));
  OK(cuMemcpyDtoHAsync(device.host, device.memory, kBytes, device.stream));
  const CUresult now = cuStreamSynchronize(device.stream);
  if (now != CUDA_ERROR_ECC_UNCORRECTABLE) fail("another error", now);
  for (size_t i = 0; i < kBytes; ++i) {
    if (device.host[i] != 0) fail("a byte of a forged copy", device.host[i]);
  }
  for (int i = 0; i < 3; ++i) {
    if (cuStreamSynchronize(device.stream) != CUDA_ERROR_ECC_UNCORRECTABLE) fail("forgiven");
  }
  CUdeviceptr more = 0;
  if (cuMemAlloc(&more, 16) != CUDA_ERROR_ECC_UNCORRECTABLE) fail("forgiven by another call");
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)(Device&)> moments = {
      {"at-once", at_once},     {"threads", threads},     {"system-call", by_system_call},
      {"write", write_into},    {"fork", fork_then_look}, {"free", free_it},
      {"copy-back", copy_back}, {"copy-over", copy_over}, {"exit", exit_in_flight},
      {"forged", forged},
  };
  const auto found = moments.find(argc > 1 ? argv[1] : "");
  if (found == moments.end()) fail("which moment?");
  Device device;
  found->second(device);
  std::puts("ok");
  return 0;
}
