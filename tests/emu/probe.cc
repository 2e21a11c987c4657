// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A CUDA program for the emulator's tests: does one thing, says what it saw, exits 0 if it was
// right. Linked to libcuda.so.1 like any program.

#include "probe.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

using namespace probe;

namespace {

// Sizes around every boundary there is, pinned and pageable, rows and batches.
int roundtrip() {
  begin();
  int wrong = 0;
  for (const size_t size :
       {1ul, 15ul, 16ul, 4096ul, 65537ul, 1ul << 20, (1ul << 20) + 1, 5000000ul}) {
    const CUdeviceptr device = allocate(size);
    const Bytes in = pattern(size, static_cast<unsigned>(size));
    Bytes out(size);
    MUST(cuMemcpyHtoD(device, in.data(), size));
    MUST(cuMemcpyDtoH(out.data(), device, size));
    wrong += EXPECT(in == out);
    MUST(cuMemFree(device));
  }
  void* pinned = nullptr;
  MUST(cuMemHostAlloc(&pinned, 3000000, 0));
  const Bytes in = pattern(3000000, 7);
  std::memcpy(pinned, in.data(), in.size());
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const CUdeviceptr device = allocate(in.size());
  MUST(cuMemcpyHtoDAsync(device, pinned, in.size(), stream));
  MUST(cuMemsetD8Async(device, 9, 100, stream));
  MUST(cuMemcpyDtoHAsync(pinned, device, in.size(), stream));
  MUST(cuStreamSynchronize(stream));
  wrong += EXPECT(static_cast<unsigned char*>(pinned)[99] == 9);
  wrong +=
      EXPECT(std::memcmp(static_cast<char*>(pinned) + 100, in.data() + 100, in.size() - 100) == 0);

  CUDA_MEMCPY2D rows{};
  rows.srcMemoryType = CU_MEMORYTYPE_HOST;
  rows.srcHost = in.data();
  rows.srcPitch = 1000;
  rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.dstDevice = device;
  rows.dstPitch = 512;
  rows.WidthInBytes = 300;
  rows.Height = 2000;
  MUST(cuMemcpy2D(&rows));
  Bytes row(300);
  MUST(cuMemcpyDtoH(row.data(), device + 1999 * 512, 300));
  wrong += EXPECT(std::memcmp(row.data(), in.data() + 1999 * 1000, 300) == 0);
  return wrong;
}

// What a program gets when its bytes are tampered with: an error that sticks, and no wrong bytes.
int attacked() {
  begin();
  const size_t size = 6 << 20;
  const CUdeviceptr device = allocate(size);
  const Bytes in = pattern(size, 3);
  Bytes out(size);
  CUresult first = CUDA_SUCCESS;
  bool same = true;
  for (int i = 0; i < 4 && first == CUDA_SUCCESS; ++i) {
    first = cuMemcpyHtoD(device, in.data(), size);
    if (first == CUDA_SUCCESS) first = cuMemcpyDtoH(out.data(), device, size);
    if (first == CUDA_SUCCESS) same = same && in == out;
  }
  for (size_t i = 0; i < size; ++i) same = same && (out[i] == in[i] || out[i] == 0);
  std::printf("first %d\n", static_cast<int>(first));
  return EXPECT(same) + EXPECT(first == CUDA_ERROR_ECC_UNCORRECTABLE) +
         EXPECT(cuMemcpyHtoD(device, in.data(), 1) == first) + EXPECT(cuCtxSynchronize() == first);
}

int dereference() {
  begin();
  const CUdeviceptr device = allocate(4096);
  MUST(cuMemsetD8(device, 65, 4096));
  MUST(cuCtxSynchronize());
  std::printf("about to fault\n");
  std::fflush(stdout);
  std::printf("read %c\n", *reinterpret_cast<volatile char*>(device));
  return 0;
}

int contexts() {
  MUST(cuInit(0));
  int made = 0;
  CUcontext context = nullptr;
  CUresult result = CUDA_SUCCESS;
  while (made < 40 && (result = cuCtxCreate(&context, nullptr, 0, 0)) == CUDA_SUCCESS) ++made;
  std::printf("%d %d\n", made, static_cast<int>(result));
  MUST(cuCtxGetCurrent(&context));
  MUST(cuCtxDestroy(context));
  return EXPECT(cuCtxCreate(&context, nullptr, 0, 0) == CUDA_SUCCESS);
}

int errors() {
  int wrong = EXPECT(cuMemAlloc(nullptr, 1) == CUDA_ERROR_NOT_INITIALIZED);
  MUST(cuInit(0));
  CUdeviceptr device = 0;
  wrong += EXPECT(cuMemAlloc(&device, 1) == CUDA_ERROR_INVALID_CONTEXT);
  begin();
  char here[64] = {};
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  MUST(cuMemGetInfo(&free_bytes, &total_bytes));
  wrong += EXPECT(cuMemAlloc(&device, 0) == CUDA_ERROR_INVALID_VALUE);
  wrong += EXPECT(cuMemAlloc(&device, total_bytes + 1) == CUDA_ERROR_OUT_OF_MEMORY);
  device = allocate(1000);
  wrong += EXPECT(cuMemcpyHtoD(device + 990, here, 11) == CUDA_ERROR_INVALID_VALUE);
  wrong += EXPECT(cuMemcpyHtoD(device, reinterpret_cast<void*>(8), 4) == CUDA_ERROR_INVALID_VALUE);
  wrong +=
      EXPECT(cuMemcpyDtoH(const_cast<char*>("constant"), device, 4) == CUDA_ERROR_INVALID_VALUE);
  wrong +=
      EXPECT(cuMemcpyHtoD(device, reinterpret_cast<void*>(device), 4) == CUDA_ERROR_INVALID_VALUE);
  wrong += EXPECT(cuMemcpyHtoD(0, here, 4) == CUDA_ERROR_INVALID_VALUE);
  wrong += EXPECT(cuMemcpyDtoD(device, reinterpret_cast<CUdeviceptr>(here), 4) ==
                  CUDA_ERROR_INVALID_VALUE);
  wrong += EXPECT(cuMemFree(device + 4) == CUDA_ERROR_INVALID_VALUE);
  MUST(cuMemFree(device));
  wrong += EXPECT(cuMemFree(device) == CUDA_ERROR_INVALID_VALUE);
  wrong += EXPECT(cuMemcpyHtoD(device, here, 4) == CUDA_ERROR_INVALID_VALUE);
  const auto wild = reinterpret_cast<CUstream>(here);
  wrong += EXPECT(cuStreamSynchronize(wild) == CUDA_ERROR_INVALID_HANDLE);
  wrong += EXPECT(cuStreamDestroy(wild) == CUDA_ERROR_INVALID_HANDLE);
  wrong += EXPECT(cuEventQuery(reinterpret_cast<CUevent>(here)) == CUDA_ERROR_INVALID_HANDLE);
  wrong += EXPECT(cuCtxSetCurrent(reinterpret_cast<CUcontext>(here)) == CUDA_ERROR_INVALID_CONTEXT);
  CUmodule module = nullptr;
  wrong += EXPECT(cuModuleLoadData(&module, "garbage, not PTX") == CUDA_ERROR_INVALID_IMAGE);
  wrong += EXPECT(cuModuleLoad(&module, "/no/such/file") == CUDA_ERROR_FILE_NOT_FOUND);
  MUST(cuModuleLoadData(&module, ".version 8.0 .target sm_90 .entry known() { ret; }"));
  CUfunction function = nullptr;
  wrong += EXPECT(cuModuleGetFunction(&function, module, "unknown") == CUDA_ERROR_NOT_FOUND);
  MUST(cuModuleGetFunction(&function, module, "known"));
  wrong += EXPECT(cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) ==
                  CUDA_ERROR_INVALID_VALUE);
  wrong += EXPECT(cuLaunchKernel(reinterpret_cast<CUfunction>(here), 1, 1, 1, 1, 1, 1, 0, nullptr,
                                 nullptr, nullptr) == CUDA_ERROR_INVALID_HANDLE);
  MUST(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  const void* table = nullptr;
  CUuuid id{};
  wrong += EXPECT(cuGetExportTable(&table, &id) == CUDA_ERROR_NOT_SUPPORTED);
  MUST(cuCtxSynchronize());  // nothing of this sticks
  return wrong;
}

int host_registration() {
  begin();
  Bytes memory(8192);
  const CUresult result = cuMemHostRegister(memory.data(), memory.size(), 0);
  std::printf("%d\n", static_cast<int>(result));
  MUST(cuCtxSynchronize());
  return 0;
}

// A word in device memory releases a stream; it is written from another context's stream.
int gate() {
  begin();
  CUcontext second = nullptr;
  CUstream waiting = nullptr;
  CUstream releasing = nullptr;
  const CUdeviceptr word = allocate(8);
  MUST(cuMemsetD32(word, 0, 2));
  MUST(cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING));
  MUST(cuCtxSynchronize());
  const CUresult result = cuStreamWaitValue32(waiting, word, 5, CU_STREAM_WAIT_VALUE_GEQ);
  if (result != CUDA_SUCCESS) {
    std::printf("%d\n", static_cast<int>(result));
    return 0;
  }
  MUST(cuMemsetD32Async(word + 4, 77, 1, waiting));
  int wrong = EXPECT(cuStreamQuery(waiting) == CUDA_ERROR_NOT_READY);
  MUST(cuCtxCreate(&second, nullptr, 0, 0));
  const CUdeviceptr five = allocate(4);
  MUST(cuMemsetD32(five, 5, 1));
  MUST(cuStreamCreate(&releasing, 0));
  MUST(cuMemcpyDtoDAsync(word, five, 4, releasing));
  MUST(cuStreamSynchronize(waiting));
  unsigned seen = 0;
  MUST(cuMemcpyDtoH(&seen, word + 4, 4));
  wrong += EXPECT(seen == 77);
  std::printf("0\n");
  return wrong;
}

int exit_in_flight() {
  begin();
  static const Bytes& memory = *new Bytes(64 << 20);  // outlives the exit handlers
  const CUdeviceptr device = allocate(memory.size());
  std::thread([device] {
    CUcontext context = nullptr;
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
    for (;;) cuMemcpyHtoD(device, memory.data(), memory.size());
  }).detach();
  std::atexit([] {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    if (cuMemGetInfo(&free_bytes, &total_bytes) == CUDA_SUCCESS) std::printf("still there\n");
  });
  usleep(30000);
  return 0;
}

double cpu_seconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

// Queues, a blocked stream and a seal thread exist, and none of them does anything.
int idle() {
  begin();
  const CUdeviceptr word = allocate(4096);
  MUST(cuMemsetD8(word, 0, 4096));
  std::vector<CUstream> streams(8);
  Bytes memory(4096);
  for (CUstream& stream : streams) {
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemcpyHtoDAsync(word, memory.data(), memory.size(), stream));
  }
  MUST(cuCtxSynchronize());
  MUST(cuStreamWaitValue32(streams[0], word, 1, CU_STREAM_WAIT_VALUE_EQ));
  const double before = cpu_seconds();
  usleep(500000);
  std::printf("%.3f\n", cpu_seconds() - before);
  MUST(cuStreamWriteValue32(streams[1], word, 1, 0));
  MUST(cuCtxSynchronize());
  return 0;
}

int after_fork() {
  begin();
  const pid_t child = fork();
  if (child == 0) {
    size_t bytes = 0;
    _exit(cuMemGetInfo(&bytes, &bytes) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return EXPECT(status == 0);
}

int peers() {
  begin(1);
  const size_t size = 3 << 20;
  const CUdeviceptr there = allocate(size);
  begin(0);
  const CUdeviceptr here = allocate(size);
  const Bytes in = pattern(size, 5);
  Bytes out(size);
  MUST(cuMemcpyHtoD(here, in.data(), size));
  MUST(cuMemcpyDtoD(there, here, size));
  MUST(cuMemcpyDtoH(out.data(), there, size));
  return EXPECT(in == out);
}

// Threads of one GPU each copy their own bytes through their own streams, for a while.
int stress() {
  MUST(cuInit(0));
  int gpus = 0;
  MUST(cuDeviceGetCount(&gpus));
  std::vector<std::thread> threads;
  std::vector<int> wrong(8);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t, gpus, &wrong] {
      begin(t % gpus);
      CUstream stream = nullptr;
      MUST(cuStreamCreate(&stream, t % 2 == 0 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
      for (unsigned round = 0; round < 12; ++round) {
        const size_t size = 1000 + 40000 * ((round * 7 + static_cast<unsigned>(t)) % 11);
        const Bytes in = pattern(size, round * 100 + static_cast<unsigned>(t));
        Bytes out(size);
        const CUdeviceptr a = allocate(size);
        const CUdeviceptr b = allocate(size);
        MUST(cuMemcpyHtoDAsync(a, in.data(), size, stream));
        MUST(cuMemcpyDtoDAsync(b, a, size, stream));
        MUST(cuMemcpyDtoHAsync(out.data(), b, size, stream));
        MUST(cuStreamSynchronize(stream));
        wrong[static_cast<size_t>(t)] += EXPECT(in == out);
        MUST(cuMemFree(a));
        MUST(cuMemFree(b));
      }
      MUST(cuStreamDestroy(stream));
    });
  }
  int total = 0;
  for (std::thread& thread : threads) thread.join();
  for (const int w : wrong) total += w;
  return total;
}

}  // namespace

int main(int argc, char** argv) {
  Jobs jobs = {
      {"roundtrip", roundtrip},
      {"attacked", attacked},
      {"dereference", dereference},
      {"contexts", contexts},
      {"errors", errors},
      {"host_registration", host_registration},
      {"gate", gate},
      {"exit_in_flight", exit_in_flight},
      {"idle", idle},
      {"after_fork", after_fork},
      {"peers", peers},
      {"stress", stress},
  };
  jobs.merge(quirk_jobs());
  jobs.merge(time_jobs());
  const auto job = argc == 2 ? jobs.find(argv[1]) : jobs.end();
  if (job == jobs.end()) return 64;
  return job->second() == 0 ? 0 : 1;
}
