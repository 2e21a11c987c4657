// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A program that ends, forks and frees at the worst moments: with copies under way. What it does is
// its first argument; it prints "ok" and exits with 0, or says what went wrong.

#include <cuda.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
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

// A thread asks the dynamic linker for libcrypto's functions all the time. A child of that moment
// can ask too, and load a library, before the driver has started and after.
void fork_and_ask(void* library, int times) {
  constexpr const char* kName = "EVP_EncryptInit_ex";
  constexpr const char* kNew = "libanl.so.1";
  std::atomic<bool> enough{false};
  std::thread asks([&] {
    while (!enough) dlsym(library, kName);
  });
  int hung = 0;
  for (int i = 0; i < times && hung == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const pid_t child = fork();
    if (child == 0) {
      alarm(300);
      if (dlopen(kNew, RTLD_LAZY | RTLD_NOLOAD) != nullptr) _exit(8);
      _exit(dlsym(library, kName) != nullptr && dlopen(kNew, RTLD_LAZY) != nullptr ? 0 : 7);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) hung = status;
  }
  enough = true;
  asks.join();
  if (hung != 0) fail("a child could not ask", hung);
}

void fork_within_dlsym() {
  void* const library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail("no libcrypto");
  fork_and_ask(library, 150);
  Device device;
  fork_and_ask(library, 50);
  device.copy_in(2);
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

// Memory is freed in a stream that does not wait for the copy of another one. The driver's own copy
// is done when its call returns; ours has to be when the memory is given to somebody else.
void free_in_other_stream(bool to_host) {
  constexpr unsigned char kNext = 0x55;
  Device device;
  device.copy_in(1);
  OK(cuStreamSynchronize(device.stream));
  CUstream other = nullptr;
  OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  const auto wait = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(100)); };
  OK(cuLaunchHostFunc(device.stream, wait, nullptr));
  if (to_host) {
    OK(cuMemcpyDtoHAsync(device.pinned, device.memory, kBytes, device.stream));
  } else {
    device.copy_in(1);
  }
  OK(cuMemFreeAsync(device.memory, other));
  OK(cuStreamSynchronize(other));
  OK(cuMemAlloc(&device.memory, kBytes));
  OK(cuMemsetD8Async(device.memory, kNext, kBytes, other));
  OK(cuStreamSynchronize(other));
  device.check(kNext);
  const unsigned char* const host = static_cast<unsigned char*>(device.pinned);
  for (size_t i = 0; i < kBytes; ++i) {
    if (host[i] != 1) fail("what was freed was copied too late", host[i]);
  }
}

// In the copy's own stream nobody waits: the stream keeps the order.
void free_in_own_stream() {
  Device device;
  device.copy_in(1);
  OK(cuStreamSynchronize(device.stream));
  std::atomic<bool> lifted{false};
  const auto wait = [](void* flag) { static_cast<std::atomic<bool>*>(flag)->wait(false); };
  OK(cuLaunchHostFunc(device.stream, wait, &lifted));
  device.copy_in(1);
  OK(cuMemFreeAsync(device.memory, device.stream));
  lifted = true;
  lifted.notify_all();
  OK(cuStreamSynchronize(device.stream));
}

// A stream that waits for the copy keeps the memory for it. What holds the copy is the caller's to
// end, when the call has returned.
void free_behind_other_stream() {
  Device device;
  device.copy_in(1);
  OK(cuStreamSynchronize(device.stream));
  CUstream other = nullptr;
  CUevent copied = nullptr;
  OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  OK(cuEventCreate(&copied, CU_EVENT_DISABLE_TIMING));
  std::atomic<bool> lifted{false};
  const auto wait = [](void* flag) { static_cast<std::atomic<bool>*>(flag)->wait(false); };
  OK(cuLaunchHostFunc(device.stream, wait, &lifted));
  device.copy_in(1);
  OK(cuEventRecord(copied, device.stream));
  OK(cuStreamWaitEvent(other, copied, 0));
  OK(cuMemFreeAsync(device.memory, other));
  lifted = true;
  lifted.notify_all();
  OK(cuStreamSynchronize(other));
}

enum class Theirs { source, target, device_target, device_source };

// A context ends while copies of another one use its memory. They have used it by then, and what is
// there next is left alone.
void end_beside(Theirs memory, bool primary) {
  constexpr unsigned char kNext = 0x55;
  CUcontext ends = nullptr;
  CUcontext stays = nullptr;
  OK(cuInit(0));
  OK(primary ? cuDevicePrimaryCtxRetain(&ends, 0) : cuCtxCreate(&ends, nullptr, 0, 0));
  OK(cuCtxSetCurrent(ends));
  void* their_host = nullptr;
  CUdeviceptr their_device = 0;
  OK(cuMemHostAlloc(&their_host, kBytes, CU_MEMHOSTALLOC_PORTABLE));
  OK(cuMemAlloc(&their_device, kBytes));
  std::memset(their_host, 7, kBytes);
  OK(cuMemsetD8(their_device, 9, kBytes));
  OK(cuCtxSynchronize());

  OK(cuCtxCreate(&stays, nullptr, 0, 0));
  CUstream stream = nullptr;
  void* host = nullptr;
  CUdeviceptr device = 0;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuMemAllocHost(&host, kBytes));
  OK(cuMemAlloc(&device, kBytes));
  std::memset(host, 3, kBytes);
  OK(cuMemcpyHtoDAsync(device, host, kBytes, stream));
  OK(cuStreamSynchronize(stream));
  const auto wait = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(100)); };
  OK(cuLaunchHostFunc(stream, wait, nullptr));
  switch (memory) {
    case Theirs::source:
      OK(cuMemcpyHtoDAsync(device, their_host, kBytes, stream));
      break;
    case Theirs::target:
      OK(cuMemcpyDtoHAsync(their_host, device, kBytes, stream));
      break;
    case Theirs::device_target:
      OK(cuMemcpyHtoDAsync(their_device, host, kBytes, stream));
      break;
    case Theirs::device_source:
      OK(cuMemcpyDtoHAsync(host, their_device, kBytes, stream));
  }
  OK(primary ? cuDevicePrimaryCtxReset(0) : cuCtxDestroy(ends));

  // Somebody else may have the place by now.
  void* const next_host = mmap(their_host, kBytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  const bool had = next_host != MAP_FAILED;
  if (had) std::memset(next_host, kNext, kBytes);
  CUdeviceptr next_device = 0;
  OK(cuMemAlloc(&next_device, kBytes));
  OK(cuMemsetD8(next_device, kNext, kBytes));
  OK(cuStreamSynchronize(stream));
  std::vector<unsigned char> there(kBytes);
  OK(cuMemcpyDtoH(there.data(), next_device, kBytes));
  for (const unsigned char byte : there) {
    if (byte != kNext) fail("memory of the device was written when it was somebody else's", byte);
  }
  for (size_t i = 0; had && i < kBytes; ++i) {
    const unsigned char byte = static_cast<unsigned char*>(next_host)[i];
    if (byte != kNext) fail("memory of the host was written when it was somebody else's", byte);
  }
  OK(cuMemcpyDtoH(there.data(), device, kBytes));
  if (there[kBytes - 1] != (memory == Theirs::source ? 7 : 3)) fail("a source was gone too early");
  const unsigned char arrived = static_cast<unsigned char*>(host)[kBytes - 1];
  if (arrived != (memory == Theirs::device_source ? 9 : 3)) fail("bytes were gone too early");
  if (had) munmap(next_host, kBytes);
  OK(cuCtxDestroy(stays));
}

void end_beside(bool primary) {
  for (const Theirs memory :
       {Theirs::source, Theirs::target, Theirs::device_target, Theirs::device_source}) {
    end_beside(memory, primary);
  }
}

// A context ends while a stream of it is being captured. Copies of others are carried as before: a
// call does not wait for what keeps its stream.
void destroy_while_capturing() {
  Device device;
  device.copy_in(1);
  OK(cuStreamSynchronize(device.stream));
  CUcontext context = nullptr;
  CUstream captured = nullptr;
  OK(cuCtxCreate(&context, nullptr, 0, 0));
  OK(cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
  OK(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cuCtxDestroy(context));
  OK(cuCtxSetCurrent(device.context));
  std::atomic<bool> lifted{false};
  std::atomic<bool> returned{false};
  const auto wait = [](void* flag) { static_cast<std::atomic<bool>*>(flag)->wait(false); };
  OK(cuLaunchHostFunc(device.stream, wait, &lifted));
  std::thread lifts([&] {
    for (int i = 0; i < 6000 && !returned; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    lifted = true;
    lifted.notify_all();
  });
  device.copy_in(1);
  const bool early = !lifted;
  returned = true;
  lifts.join();
  if (!early) fail("copies are not carried any more");
  device.check(1);
}

// A primary context that somebody else has retained goes on: its copies are not waited for, and its
// memory is known still.
void release_in_flight() {
  Device device;
  CUcontext again = nullptr;
  OK(cuDevicePrimaryCtxRetain(&again, 0));
  device.copy_in(1);
  OK(cuStreamSynchronize(device.stream));
  std::atomic<bool> lifted{false};
  const auto wait = [](void* flag) { static_cast<std::atomic<bool>*>(flag)->wait(false); };
  OK(cuLaunchHostFunc(device.stream, wait, &lifted));
  device.copy_in(1);
  OK(cuDevicePrimaryCtxRelease(0));
  lifted = true;
  lifted.notify_all();
  device.check(1);
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

// Bytes that cannot be written where they belong are an error, as those that cannot be read.
void registered_gone() {
  Device device;
  void* const memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("no memory");
  OK(cuMemHostRegister(memory, kBytes, 0));
  OK(cuMemcpyDtoHAsync(memory, device.memory, kBytes, device.stream));
  OK(cuStreamSynchronize(device.stream));
  mprotect(memory, kBytes, PROT_READ);
  const CUresult asked = cuMemcpyDtoHAsync(memory, device.memory, kBytes, device.stream);
  const CUresult waited = cuStreamSynchronize(device.stream);
  if (asked != CUDA_SUCCESS && asked != CUDA_ERROR_ILLEGAL_ADDRESS) fail("the copy", asked);
  if (waited != CUDA_ERROR_ILLEGAL_ADDRESS) fail("bytes were lost in silence", waited);
}

size_t address_space() {
  size_t pages = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%zu", &pages) != 1) fail("no statm");
  std::fclose(file);
  return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// Pinned memory that nobody has freed goes with its context.
void pinned_goes_with_its_context() {
  constexpr size_t kMuch = size_t{256} << 20;
  constexpr size_t kRounds = 20;
  OK(cuInit(0));
  size_t before = 0;
  for (size_t round = 0; round < kRounds; ++round) {
    CUcontext context = nullptr;
    void* memory = nullptr;
    OK(cuCtxCreate(&context, nullptr, 0, 0));
    OK(cuMemAllocHost(&memory, kMuch));
    OK(cuCtxDestroy(context));
    if (round == 0) before = address_space();
  }
  const size_t now = address_space();
  if (now > before + kRounds / 2 * kMuch) fail("memory of contexts that are gone is there still");
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
  } else if (what == "fork-within-dlsym") {
    fork_within_dlsym();
  } else if (what == "exec") {
    fork_in_flight(true);
  } else if (what == "exit") {
    exit_in_flight();
  } else if (what == "free") {
    free_in_flight();
  } else if (what == "destroy") {
    destroy_in_flight();
  } else if (what == "free-later") {
    free_in_other_stream(false);
    free_in_other_stream(true);
    free_in_own_stream();
    free_behind_other_stream();
  } else if (what == "destroy-beside") {
    end_beside(false);
  } else if (what == "reset-beside") {
    end_beside(true);
  } else if (what == "destroy-captured") {
    destroy_while_capturing();
  } else if (what == "release") {
    release_in_flight();
  } else if (what == "signals") {
    signals_in_flight();
  } else if (what == "registered") {
    registered();
  } else if (what == "registered-gone") {
    registered_gone();
  } else if (what == "pinned-left") {
    pinned_goes_with_its_context();
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
