// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A program that ends, forks and frees at the worst moments: with copies under way. What it does is
// its first argument; it prints "ok" and exits with 0, or says what went wrong.

#include <cuda.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "must.h"

namespace {

constexpr size_t kBytes = 8 << 20;

struct Device : OneDevice {
  Device() : OneDevice(kBytes) {
    OK(cuMemAllocHost(&pinned, kBytes));
    std::memset(pinned, 1, kBytes);
  }
  void copy_in(int times) {
    for (int i = 0; i < times; ++i) OK(cuMemcpyHtoDAsync(memory, pinned, kBytes, stream));
  }
  void check(unsigned char expected) {
    std::vector<unsigned char> back(kBytes);
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(back.data(), memory, kBytes));
    for (const unsigned char byte : back) {
      if (byte != expected) fail("wrong byte", byte);
    }
  }

  void* pinned = nullptr;
};

// The child must be able to live without the driver, and the parent must not notice.
void fork_in_flight(bool exec) {
  Device device;
  device.copy_in(6);
  const pid_t child = fork();
  if (child == 0) {
    if (exec) execl("/bin/true", "true", nullptr);
    const bool refused = cuMemcpyHtoDAsync(device.memory, device.pinned, 16, device.stream) != 0;
    _exit(refused ? 0 : 7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) fail("the child failed", status);
  device.check(1);
}

void exit_in_flight() {
  static Device device;
  device.copy_in(20);
  std::puts("ok");
  std::fflush(stdout);
  std::exit(0);
}

// Everything that is freed is still being copied.
void free_in_flight() {
  Device device;
  for (int round = 0; round < 20; ++round) {
    void* more = nullptr;
    CUdeviceptr target = 0;
    OK(cuMemAllocHost(&more, kBytes));
    OK(cuMemAlloc(&target, kBytes));
    OK(cuMemcpyHtoDAsync(target, more, kBytes, device.stream));
    auto* pageable = static_cast<unsigned char*>(std::malloc(1 << 20));
    std::memset(pageable, round, 1 << 20);
    OK(cuMemcpyHtoDAsync(device.memory, pageable, 1 << 20, device.stream));
    std::free(pageable);
    OK(round % 2 == 0 ? cuMemFreeHost(more) : cuMemFree(target));
    OK(round % 2 == 0 ? cuMemFree(target) : cuMemFreeHost(more));
  }
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, 0));
  OK(cuMemcpyHtoDAsync(device.memory, device.pinned, kBytes, stream));
  OK(cuStreamDestroy(stream));
  OK(cuCtxSynchronize());
  device.check(1);
}

// A context is destroyed under its copies; the next one works.
void destroy_in_flight() {
  Device device;
  for (int round = 0; round < 5; ++round) {
    CUcontext context = nullptr;
    OK(cuCtxCreate(&context, nullptr, 0, 0));
    CUdeviceptr target = 0;
    OK(cuMemAlloc(&target, kBytes));
    OK(cuMemcpyHtoDAsync(target, device.pinned, kBytes, nullptr));
    OK(cuCtxDestroy(context));
  }
  device.copy_in(1);
  device.check(1);
}

std::atomic<int> signals{0};

// Handlers of the program run on its threads, not on ours.
void signals_in_flight() {
  static const pthread_t main_thread = pthread_self();
  struct sigaction action {};
  action.sa_handler = [](int) {
    signals += pthread_equal(pthread_self(), main_thread) ? 1 : 1000000;
  };
  sigaction(SIGALRM, &action, nullptr);
  ualarm(500, 500);
  Device device;
  device.copy_in(40);
  device.check(1);
  ualarm(0, 0);
  if (signals >= 1000000) fail("a signal came to a thread that is not the program's", signals);
}

void registered() {
  Device device;
  std::vector<unsigned char> memory(kBytes, 5);
  OK(cuMemHostRegister(memory.data(), kBytes, 0));
  unsigned type = 0;
  const auto address = reinterpret_cast<CUdeviceptr>(memory.data());
  OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address + 100));
  if (type != CU_MEMORYTYPE_HOST)
    fail("registered memory is not host memory", static_cast<int>(type));
  OK(cuMemcpyHtoDAsync(device.memory, memory.data(), kBytes, device.stream));
  OK(cuMemsetD8Async(device.memory + kBytes / 2, 9, kBytes / 2, device.stream));
  OK(cuMemcpyDtoHAsync(memory.data(), device.memory, kBytes, device.stream));
  OK(cuStreamSynchronize(device.stream));
  if (memory[0] != 5 || memory[kBytes - 1] != 9) fail("wrong bytes through registered memory");
  if (cuMemHostRegister(memory.data() + 4096, 4096, 0) !=
      CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) {
    fail("registered twice");
  }
  OK(cuMemcpyDtoHAsync(memory.data(), device.memory, kBytes, device.stream));
  OK(cuMemHostUnregister(memory.data()));
}

// A source that is pageable at both ends: what is still on its way to the part between them is in
// it.
void registered_within() {
  Device device;
  constexpr size_t kPart = kBytes / 4;
  std::vector<unsigned char> memory(kBytes, 5);
  OK(cuMemHostRegister(memory.data() + kPart, kPart, 0));
  OK(cuMemsetD8Async(device.memory, 9, kBytes, device.stream));
  std::atomic<bool> lifted{false};
  const auto wait = [](void* flag) { static_cast<std::atomic<bool>*>(flag)->wait(false); };
  OK(cuLaunchHostFunc(device.stream, wait, &lifted));
  OK(cuMemcpyDtoHAsync(memory.data() + kPart, device.memory, kPart, device.stream));
  std::thread lifts([&] {  // a call that does not wait has read by then
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    lifted = true;
    lifted.notify_all();
  });
  OK(cuMemcpyHtoDAsync(device.memory, memory.data(), kBytes, device.stream));
  lifts.join();
  std::vector<unsigned char> there(kBytes);
  OK(cuStreamSynchronize(device.stream));
  OK(cuMemcpyDtoH(there.data(), device.memory, kBytes));
  for (size_t i = 0; i < kBytes; ++i) {
    if (there[i] != (i / kPart == 1 ? 9 : 5)) fail("a source of two kinds was stale");
  }
  OK(cuMemHostUnregister(memory.data() + kPart));
}

void load_and_close() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) fail("no driver");
  const auto init = reinterpret_cast<CUresult (*)(unsigned)>(dlsym(driver, "cuInit"));
  ok(init(0), "cuInit");
  dlclose(driver);
  Device device;
  device.copy_in(2);
  device.check(1);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "fork") {
    fork_in_flight(false);
  } else if (what == "exec") {
    fork_in_flight(true);
  } else if (what == "exit") {
    exit_in_flight();
  } else if (what == "free") {
    free_in_flight();
  } else if (what == "destroy") {
    destroy_in_flight();
  } else if (what == "signals") {
    signals_in_flight();
  } else if (what == "registered") {
    registered();
  } else if (what == "registered-within") {
    registered_within();
  } else if (what == "dlclose") {
    load_and_close();
  } else {
    fail("what?");
  }
  std::puts("ok");
  return 0;
}
