// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Pinned memory is read when the stream has come to its copy. So whatever stands before a copy and
// writes its source must be in what the device receives, also where the source was sealed before:
// work of the stream, of another stream it waits for, or the host while the stream is kept waiting.
// Buffers are copied in the same order again and again, which is easiest to foresee; before every
// second copy one of them is written by the writer that the first argument names. Prints "ok".
//
//   writers WRITER [managed|after-refused-free [default|batch]]
//
// "managed": the same of managed memory, which no call tells from pageable; its copies are asked
// for by cuMemcpyHtoDAsync, by the call that knows no direction, or in a batch. Whatever writes it
// has not begun by then. "after-refused-free": pinned memory that the driver was asked to free, by
// a thread without a context, and has kept.

#include <cuda.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "emulated.h"
#include "patience.h"

namespace {

constexpr size_t kBuffers = 4;
constexpr size_t kBytes = 1500000;  // two messages
constexpr size_t kAt = 800000;      // what is written
constexpr size_t kCount = 8192;
constexpr int kTurns = 40;

std::atomic<bool> holds{false};

CUdeviceptr address(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

CUmemcpyAttributes in_stream_order() {
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  return attributes;
}

struct Program {
  explicit Program(bool of_managed_memory) : managed(of_managed_memory) {
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(cuMemAlloc(&spare, kBytes));
    const CUDA_ARRAY_DESCRIPTOR line{kCount, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    OK(cuArrayCreate(&array, &line));
    fresh = pinned();
    for (size_t i = 0; i < kBuffers; ++i) {
      OK(cuMemAlloc(&device[i], kBytes));
      host[i] = managed ? managed_memory() : pinned();
    }
  }

  uint8_t* managed_memory() {
    CUdeviceptr memory = 0;
    OK(cuMemAllocManaged(&memory, kBytes, CU_MEM_ATTACH_GLOBAL));
    return reinterpret_cast<uint8_t*>(memory);
  }

  uint8_t* pinned() {
    void* memory = nullptr;
    OK(cuMemAllocHost(&memory, kBytes));
    for (size_t i = 0; i < kBytes; ++i) static_cast<uint8_t*>(memory)[i] = next_byte();
    return static_cast<uint8_t*>(memory);
  }
  uint8_t next_byte() {
    return static_cast<uint8_t>((state = state * 6364136223846793005 + 1) >> 56);
  }

  // Bytes nobody has seen yet, in memory of the host and of the device.
  void refill() {
    for (size_t i = 0; i < kCount; ++i) fresh[i] = next_byte();
    OK(cuMemcpyHtoD(spare, fresh, kCount));
  }

  void copy(size_t i) {
    CUdeviceptr from = address(host[i]);
    if (how == "default") {
      OK(cuMemcpyAsync(device[i], from, kBytes, stream));
    } else if (how == "batch") {
      CUmemcpyAttributes attributes = in_stream_order();
      size_t bytes = kBytes;
      size_t start = 0;
      OK(cuMemcpyBatchAsync(&device[i], &from, &bytes, 1, &attributes, &start, 1, stream));
    } else {
      OK(cuMemcpyHtoDAsync(device[i], host[i], kBytes, stream));
    }
  }

  void check(size_t i, const char* when) {
    OK(cuStreamSynchronize(stream));
    std::vector<uint8_t> back(kBytes);
    OK(cuMemcpyDtoH(back.data(), device[i], kBytes));
    if (std::memcmp(back.data(), host[i], kBytes) != 0) fail(when);
    std::this_thread::sleep_for(
        patiently(std::chrono::microseconds(500)));  // workers seal the next
  }

  const bool managed;
  std::string how;  // a copy is asked for
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUstream other = nullptr;
  CUevent event = nullptr;
  CUdeviceptr spare = 0;
  CUarray array = nullptr;
  uint8_t* fresh = nullptr;
  CUdeviceptr device[kBuffers] = {};
  uint8_t* host[kBuffers] = {};
  uint64_t state = 42;
};

// What puts a write of program.host[i] in front of the copy that is asked for next.
using Writer = std::function<void(Program&, uint8_t* to)>;

void by_batch(Program& p, uint8_t* to) {
  // A copy within the device among them: such a batch is the driver's.
  CUdeviceptr targets[] = {address(to), p.spare + kCount};
  CUdeviceptr sources[] = {p.spare, p.spare};
  size_t bytes[] = {kCount, kCount};
  size_t starts[] = {0};
  CUmemcpyAttributes attributes = in_stream_order();
  OK(cuMemcpyBatchAsync(targets, sources, bytes, 2, &attributes, starts, 1, p.stream));
}

void by_memory_operations(Program& p, uint8_t* to) {
  CUstreamBatchMemOpParams all[2] = {};
  for (size_t i = 0; i < 2; ++i) {
    all[i].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    all[i].writeValue.address = address(to) + 4 * i;
    all[i].writeValue.value = static_cast<cuuint32_t>(p.state >> 20) + static_cast<cuuint32_t>(i);
  }
  OK(cuStreamBatchMemOp(p.stream, 2, all, 0));
}

void by_rows(Program& p, uint8_t* to) {
  CUDA_MEMCPY2D rows{};
  rows.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.srcDevice = p.spare;
  rows.srcPitch = 256;
  rows.dstMemoryType = CU_MEMORYTYPE_HOST;
  rows.dstHost = to;
  rows.dstPitch = 512;
  rows.WidthInBytes = 128;
  rows.Height = 16;
  OK(cuMemcpy2DAsync(&rows, p.stream));
}

// Out of an array, by the call that only one-dimensional ones have and by the one for all.
void by_array(Program& p, uint8_t* to) {
  OK(cuMemcpyDtoA(p.array, 0, p.spare, kCount));
  OK(cuStreamSynchronize(CU_STREAM_LEGACY));
  OK(cuMemcpyAtoHAsync(to, p.array, 0, kCount / 2, p.stream));
  CUDA_MEMCPY2D rest{};
  rest.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  rest.srcArray = p.array;
  rest.srcXInBytes = kCount / 2;
  rest.dstMemoryType = CU_MEMORYTYPE_HOST;
  rest.dstHost = to + kCount / 2;
  rest.WidthInBytes = kCount / 2;
  rest.Height = 1;
  OK(cuMemcpy2DAsync(&rest, p.stream));
}

void by_graph(Program& p, uint8_t* to) {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  OK(cuStreamBeginCapture(p.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cuMemsetD8Async(address(to), p.next_byte(), 100, p.stream));
  OK(cuStreamEndCapture(p.stream, &graph));
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuGraphLaunch(exec, p.stream));
}

void by_other_stream(Program& p, uint8_t* to) {
  OK(cuMemcpyDtoHAsync(to, p.spare, kCount, p.other));
  OK(cuEventRecord(p.event, p.other));
  OK(cuStreamWaitEvent(p.stream, p.event, 0));
}

// In confidential mode what a kernel writes to mapped memory may appear only when the host waits
// for it. Where it appears at once nobody has to wait.
void by_kernel(Program& p, uint8_t* to, bool live) {
  static const CUfunction kernel = make_kernel(
      "store",
      [](const sealane_emu_launch* launch) {
        const auto at = *static_cast<const uint64_t*>(launch->arguments[0]);
        const auto value = *static_cast<const uint64_t*>(launch->arguments[1]);
        void* const memory = launch->memory(launch, at, kCount);
        if (memory != nullptr) std::memset(memory, static_cast<int>(value), kCount);
      },
      2);
  OK(launch(kernel, p.stream, {address(to), p.next_byte()}));
  if (!live) OK(cuStreamSynchronize(p.stream));
}

const std::map<std::string, Writer>& writers() {
  static const std::map<std::string, Writer> all = {
      {"write-value",
       [](Program& p, uint8_t* to) {
         OK(cuStreamWriteValue32(p.stream, address(to), static_cast<cuuint32_t>(p.state), 0));
       }},
      {"write-value-64",
       [](Program& p, uint8_t* to) {
         OK(cuStreamWriteValue64(p.stream, address(to), p.state, 0));
       }},
      {"memory-operations", by_memory_operations},
      {"batch", by_batch},
      {"rows", by_rows},
      {"array", by_array},
      {"graph", by_graph},
      {"kernel", [](Program& p, uint8_t* to) { by_kernel(p, to, false); }},
      {"kernel-live", [](Program& p, uint8_t* to) { by_kernel(p, to, true); }},
      {"other-stream", by_other_stream},
      {"device-to-device",
       [](Program& p, uint8_t* to) {
         OK(cuMemcpyDtoDAsync(address(to), address(p.fresh), kCount, p.stream));
       }},
      {"any-to-any",
       [](Program& p, uint8_t* to) {
         OK(cuMemcpyAsync(address(to), address(p.fresh), kCount, p.stream));
       }},
      {"peer",
       [](Program& p, uint8_t* to) {
         OK(cuMemcpyPeerAsync(address(to), p.context, address(p.fresh), p.context, kCount,
                              p.stream));
       }},
      {"fill",
       [](Program& p, uint8_t* to) {
         OK(cuMemsetD32Async(address(to), static_cast<unsigned>(p.state), 100, p.stream));
       }},
      {"to-host",
       [](Program& p, uint8_t* to) { OK(cuMemcpyDtoHAsync(to, p.spare, kCount, p.stream)); }},
      {"function",
       [](Program& p, uint8_t* to) {
         const auto write = [](void* memory) {
           for (size_t i = 0; i < kCount; i += 16) ++static_cast<uint8_t*>(memory)[i];
         };
         OK(cuLaunchHostFunc(p.stream, write, to));
       }},
  };
  return all;
}

void be_refused_to_free(Program& p) {
  std::thread([&] {
    for (uint8_t* const memory : p.host) {
      if (cuMemFreeHost(memory) == CUDA_SUCCESS) fail("freed without a context");
    }
  }).join();
}

// Keeps the stream busy for longer than a call takes.
void delay(Program& p) {
  static const CUfunction kernel = make_kernel("delay", [](const sealane_emu_launch*) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  });
  OK(launch(kernel, p.stream));
}

void hold(Program& p) {
  static const CUfunction kernel =
      make_kernel("hold", [](const sealane_emu_launch*) { holds.wait(true); });
  holds = true;
  OK(launch(kernel, p.other));
  OK(cuEventRecord(p.event, p.other));
  OK(cuStreamWaitEvent(p.stream, p.event, 0));
}

void release() {
  holds = false;
  holds.notify_all();
}

// The stream waits for a kernel in another one, the copy is asked for, and then the host writes.
void written_by_the_host(Program& p, size_t i) {
  hold(p);
  p.copy(i);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));  // for workers to be too early
  std::memset(p.host[i] + kAt, p.next_byte(), kCount);
  release();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const bool by_host = what == "host";
  if (!by_host && writers().count(what) == 0) fail("which writer?");
  OK(cuInit(0));
  const std::string memory = argc > 2 ? argv[2] : "pinned";
  Program program(memory == "managed");
  if (argc > 3) program.how = argv[3];
  const bool delays = memory != "pinned";
  if (memory == "after-refused-free") be_refused_to_free(program);
  for (size_t turn = 0; turn < 6 * kBuffers; ++turn) {
    program.copy(turn % kBuffers);
    program.check(turn % kBuffers, "stale though nobody wrote");
  }
  for (size_t turn = 0; turn < kTurns; ++turn) {
    const size_t i = turn % kBuffers;
    if (turn % 2 == 0) program.refill();
    if (turn % 2 == 0 && by_host) {
      written_by_the_host(program, i);
    } else {
      if (turn % 2 == 0 && delays) delay(program);
      if (turn % 2 == 0) writers().at(what)(program, program.host[i] + kAt);
      program.copy(i);
    }
    program.check(i, "stale bytes");
  }
  std::puts("ok");
  return 0;
}
