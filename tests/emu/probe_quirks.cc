// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Jobs about what confidential mode does to host memory, and about what is not there.

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sealane_emu.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "probe.h"

namespace probe {
namespace {

// to[0] = from[0]
void copy_word(const sealane_emu_launch* launch) {
  const auto to = *static_cast<const uint64_t*>(launch->arguments[0]);
  const auto from = *static_cast<const uint64_t*>(launch->arguments[1]);
  auto* target = static_cast<uint32_t*>(launch->memory(launch, to, 4));
  const auto* source = static_cast<const uint32_t*>(launch->memory(launch, from, 4));
  if (target != nullptr && source != nullptr) *target = *source;
}

class WordKernel {
 public:
  WordKernel() {
    static const size_t sizes[] = {8, 8};
    const sealane_emu_kernel kernel = {sizeof kernel, "copy_word", copy_word, sizes, 2};
    if (sealane_emu_register(&kernel) != 0) std::abort();
    CUmodule module = nullptr;
    MUST(cuModuleLoadData(&module, ".version 8.0 .target sm_90 .entry copy_word() { ret; }"));
    MUST(cuModuleGetFunction(&function_, module, "copy_word"));
  }

  // Runs it and waits without synchronising: a query does not refresh what is mapped.
  void run(CUdeviceptr to, CUdeviceptr from) const {
    void* arguments[] = {&to, &from};
    MUST(cuLaunchKernel(function_, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
    while (cuStreamQuery(nullptr) == CUDA_ERROR_NOT_READY) usleep(100);
  }

 private:
  CUfunction function_ = nullptr;
};

// What a kernel sees of mapped host memory the host keeps writing, and the host of the kernel's
// writes: "three words seen by the device, two by the host".
int mapped_views() {
  begin();
  const WordKernel kernel;
  void* memory = nullptr;
  CUdeviceptr mapped = 0;
  MUST(cuMemHostAlloc(&memory, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  MUST(cuMemHostGetDevicePointer(&mapped, memory, 0));
  auto* host = static_cast<volatile uint32_t*>(memory);
  const CUdeviceptr seen = allocate(64);
  MUST(cuMemsetD32(seen, 7, 16));
  host[0] = 1;
  kernel.run(seen, mapped);
  host[0] = 2;
  kernel.run(seen + 4, mapped);
  MUST(cuCtxSynchronize());
  kernel.run(seen + 8, mapped);
  uint32_t words[3] = {};
  host[1] = 0;
  kernel.run(mapped + 4, seen + 12);
  const uint32_t early = host[1];
  MUST(cuCtxSynchronize());
  const uint32_t late = host[1];
  MUST(cuMemcpyDtoH(words, seen, sizeof words));
  std::printf("%u %u %u, %u %u\n", words[0], words[1], words[2], early, late);
  MUST(cuMemFreeHost(memory));
  return 0;
}

// What somebody gets who wants to write-protect a page with userfaultfd.
int guard(int fd, void* page) {
  uffdio_register request{};
  request.range = {reinterpret_cast<uint64_t>(page), 4096};
  request.mode = UFFDIO_REGISTER_MODE_WP;
  return ioctl(fd, UFFDIO_REGISTER, &request) == 0 ? 0 : errno;
}

int guarded_memory() {
  begin();
  constexpr int kUserModeOnly = 1;
  const auto fd = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | kUserModeOnly));
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP;
  void* plain = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0 || guard(fd, plain) != 0) {
    std::printf("no userfaultfd here\n");
    return 0;
  }
  void* pinned = nullptr;
  MUST(cuMemHostAlloc(&pinned, 4096, 0));
  const int refused = guard(fd, pinned);
  std::printf("%s\n", refused == EBUSY ? "busy"
                      : refused == 0   ? "guarded"
                                       : std::strerror(refused));
  std::memset(pinned, 1, 4096);  // it is memory all the same
  MUST(cuMemFreeHost(pinned));
  return 0;
}

using AnyCall = CUresult (*)(void*, void*, void*, void*);

// What is not supported says so, twice the same, without doing harm.
int unsupported() {
  begin();
  for (const char* name :
       {"cuTexObjectCreate", "cuMipmappedArrayDestroy", "cuGreenCtxCreate", "cuMulticastCreate"}) {
    void* found = nullptr;
    CUdriverProcAddressQueryResult status{};
    MUST(cuGetProcAddress(name, &found, 13000, 0, &status));
    const auto call = reinterpret_cast<AnyCall>(found);
    const CUresult first = call(nullptr, nullptr, nullptr, nullptr);
    const CUresult second = call(nullptr, nullptr, nullptr, nullptr);
    std::printf("%d %d\n", static_cast<int>(first), static_cast<int>(second));
  }
  MUST(cuCtxSynchronize());
  return 0;
}

// A new key, a message of the driver's own and an attack, each when asked for.
int disturbed() {
  begin();
  const Bytes in = pattern(3 << 20, 21);
  Bytes out(in.size());
  const CUdeviceptr device = allocate(in.size());
  for (const char* what : {"rotate", "message", "rotate"}) {
    if (sealane_emu_disturb(what) != 0) return EXPECT(false);
    MUST(cuMemcpyHtoD(device, in.data(), in.size()));
    MUST(cuMemcpyDtoH(out.data(), device, in.size()));
    if (in != out) return EXPECT(false);
  }
  return EXPECT(sealane_emu_disturb("bribe") == 1) + EXPECT(sealane_emu_disturb(nullptr) == 1) +
         EXPECT(sealane_emu_disturb("truncate") == 0) +
         EXPECT(cuMemcpyHtoD(device, in.data(), in.size()) == CUDA_ERROR_ECC_UNCORRECTABLE);
}

// What CUDA shows of the machine: how many devices, and which is the first (by its PCI bus).
int devices() {
  int count = 0;
  const CUresult started = cuInit(0);
  if (started == CUDA_ERROR_NO_DEVICE) return std::printf("none\n") < 0;
  MUST(started);
  MUST(cuDeviceGetCount(&count));
  int bus = 0;
  MUST(cuDeviceGetAttribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0));
  std::printf("%d, first on bus %d\n", count, bus);
  return 0;
}

// An asynchronous copy from pageable memory behind a host function that the program itself lets go:
// with a driver that blocks, the copy would never return.
int pageable_behind_host_function() {
  begin();
  std::atomic<bool> open{false};
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const CUdeviceptr device = allocate(3 << 20);
  const auto wait = [](void* flag) {
    while (!static_cast<std::atomic<bool>*>(flag)->load()) usleep(1000);
  };
  MUST(cuLaunchHostFunc(stream, wait, &open));
  Bytes in = pattern(3 << 20, 5);
  const Bytes sent = in;
  MUST(cuMemcpyHtoDAsync(device, in.data(), in.size(), stream));
  std::fill(in.begin(), in.end(), 0);  // it was staged: the program may reuse it
  open = true;
  MUST(cuStreamSynchronize(stream));
  MUST(cuMemcpyDtoH(in.data(), device, in.size()));
  return EXPECT(in == sent);
}

// Of several threads the first are there: whatever is missing then, calls end.
int few_threads() {
  MUST(cuInit(0));
  CUcontext context = nullptr;
  if (cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 0;
  MUST(cuCtxSetCurrent(context));
  CUresult last = CUDA_SUCCESS;
  for (int i = 0; i < 8 && last == CUDA_SUCCESS; ++i) {
    CUstream stream = nullptr;
    CUdeviceptr device = 0;
    last = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (last == CUDA_SUCCESS) last = cuMemAlloc(&device, 4096);
    if (last == CUDA_SUCCESS) last = cuMemsetD8Async(device, 1, 4096, stream);
    if (last == CUDA_SUCCESS) last = cuStreamSynchronize(stream);
  }
  return EXPECT(last == CUDA_ERROR_OPERATING_SYSTEM);
}

// Where no thread can be made, the driver says so and leaves signals alone.
int no_threads() {
  sigset_t before;
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  MUST(cuInit(0));
  CUcontext context = nullptr;
  const CUresult made = cuDevicePrimaryCtxRetain(&context, 0);
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  bool same = true;
  for (int signal = 1; signal < 32; ++signal) {
    same = same && sigismember(&before, signal) == sigismember(&after, signal);
  }
  return EXPECT(made == CUDA_ERROR_OPERATING_SYSTEM) + EXPECT(same);
}

}  // namespace

Jobs quirk_jobs() {
  return {{"disturbed", disturbed},
          {"devices", devices},
          {"pageable_behind_host_function", pageable_behind_host_function},
          {"few_threads", few_threads},
          {"no_threads", no_threads},
          {"mapped_views", mapped_views},
          {"guarded_memory", guarded_memory},
          {"unsupported", unsupported}};
}

}  // namespace probe
