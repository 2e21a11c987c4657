// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do streams, events, kernels, host functions and captures keep CUDA's order through the runtime
// API?

#include <atomic>
#include <cstring>
#include <thread>

#include "cuda/gate.h"
#include "cuda/runtime.h"

namespace sealane::test {
namespace {

constexpr uint32_t kWords = 1000;

class RuntimeStreams : public RuntimeTest {};

void expect_filled(const ByteVector& bytes, uint32_t owner) {
  for (uint32_t i = 0; i < kWords; ++i) {
    uint32_t word = 0;
    std::memcpy(&word, &bytes[size_t{i} * 4], 4);
    ASSERT_EQ(word, filled_word(owner, i)) << i;
  }
}

TEST_F(RuntimeStreams, KernelsAndCopiesAreInOrder) {
  RuntimeStream stream;
  DeviceBytes device(kWords * 4);
  PinnedBytes out(kWords * 4);
  for (uint32_t round = 0; round < 30; ++round) {
    CUDA_OK(cudaMemsetAsync(device.data(), 0, kWords * 4, stream));
    CUDA_OK(launch_fill(device.data(), kWords, round, stream));
    CUDA_OK(cudaMemcpyAsync(out.data(), device.data(), kWords * 4, cudaMemcpyDeviceToHost, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    expect_filled(ByteVector(out.data(), out.data() + kWords * 4), round);
  }
}

TEST_F(RuntimeStreams, SynchronousCopiesWaitForTheDefaultStream) {
  DeviceBytes device(kWords * 4);
  CUDA_OK(launch_fill(device.data(), kWords, 77, nullptr));
  expect_filled(device.read(), 77);
}

TEST_F(RuntimeStreams, QuerySaysWhetherWorkIsLeft) {
  RuntimeStream stream;
  Gate gate;
  CUDA_OK(cudaLaunchHostFunc(stream, Gate::wait, gate.ticket()));
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  cudaGetLastError();  // "not ready" may count as the last error
  gate.open();
  CUDA_OK(cudaStreamSynchronize(stream));
  CUDA_EXPECT_OK(cudaStreamQuery(stream));
}

TEST_F(RuntimeStreams, EventsOrderAcrossStreams) {
  RuntimeStream first;
  RuntimeStream second;
  RuntimeEvent event;
  Gate gate;
  DeviceBytes device(64);
  device.fill(0);
  CUDA_OK(cudaLaunchHostFunc(first, Gate::wait, gate.ticket()));
  CUDA_OK(cudaMemsetAsync(device.data(), 1, 64, first));
  CUDA_OK(cudaEventRecord(event, first));
  CUDA_OK(cudaStreamWaitEvent(second, event, 0));
  CUDA_OK(cudaMemsetAsync(device.data(), 2, 32, second));
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  cudaGetLastError();
  gate.open();
  CUDA_OK(cudaStreamSynchronize(second));
  ByteVector expected(64, 1);
  std::memset(expected.data(), 2, 32);
  EXPECT_EQ(device.read(), expected);
}

TEST_F(RuntimeStreams, BlockingStreamsWaitForTheLegacyStream) {
  RuntimeStream blocking(cudaStreamDefault);
  RuntimeStream free_running;
  DeviceBytes device(64);
  Gate gate;
  CUDA_OK(cudaLaunchHostFunc(cudaStreamLegacy, Gate::wait, gate.ticket()));
  CUDA_OK(cudaMemsetAsync(device.data(), 1, 32, blocking));
  CUDA_OK(cudaMemsetAsync(device.data() + 32, 1, 32, free_running));
  CUDA_EXPECT_OK(cudaStreamSynchronize(free_running));
  EXPECT_EQ(cudaStreamQuery(blocking), cudaErrorNotReady);
  cudaGetLastError();
  gate.open();
  CUDA_EXPECT_OK(cudaStreamSynchronize(blocking));
}

TEST_F(RuntimeStreams, PerThreadStreamsAreApart) {
  Gate gate;
  CUDA_OK(cudaLaunchHostFunc(cudaStreamPerThread, Gate::wait, gate.ticket()));
  cudaError_t other = cudaErrorUnknown;
  std::thread([&] { other = cudaStreamSynchronize(cudaStreamPerThread); }).join();
  CUDA_EXPECT_OK(other);
  EXPECT_EQ(cudaStreamQuery(cudaStreamPerThread), cudaErrorNotReady);
  cudaGetLastError();
  gate.open();
  CUDA_EXPECT_OK(cudaStreamSynchronize(cudaStreamPerThread));
}

TEST_F(RuntimeStreams, ElapsedTimeIsNotNegative) {
  RuntimeStream stream;
  RuntimeEvent start;
  RuntimeEvent end;
  DeviceBytes device(1 << 20);
  CUDA_OK(cudaEventRecord(start, stream));
  CUDA_OK(cudaMemsetAsync(device.data(), 1, 1 << 20, stream));
  CUDA_OK(cudaEventRecord(end, stream));
  CUDA_OK(cudaEventSynchronize(end));
  float milliseconds = -1;
  CUDA_OK(cudaEventElapsedTime(&milliseconds, start, end));
  EXPECT_GE(milliseconds, 0);
}

TEST_F(RuntimeStreams, CallbacksSeeWhatWasCopied) {
  RuntimeStream stream;
  DeviceBytes device(4);
  PinnedBytes host(4);
  struct Seen {
    const unsigned char* data;
    cudaError_t status;
    unsigned char value;
  } seen{host.data(), cudaErrorUnknown, 0};
  CUDA_OK(cudaMemsetAsync(device.data(), 0x5c, 4, stream));
  CUDA_OK(cudaMemcpyAsync(host.data(), device.data(), 4, cudaMemcpyDeviceToHost, stream));
  CUDA_OK(cudaStreamAddCallback(
      stream,
      [](cudaStream_t, cudaError_t status, void* argument) {
        auto* const what = static_cast<Seen*>(argument);
        what->status = status;
        what->value = what->data[0];
      },
      &seen, 0));
  CUDA_OK(cudaStreamSynchronize(stream));
  CUDA_EXPECT_OK(seen.status);
  EXPECT_EQ(seen.value, 0x5c);
}

TEST_F(RuntimeStreams, CapturedWorkRunsWhenLaunched) {
  RuntimeStream stream;
  DeviceBytes device(kWords * 4);
  PinnedBytes in(kWords * 4);
  PinnedBytes out(kWords * 4);
  CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CUDA_OK(cudaMemcpyAsync(device.data(), in.data(), kWords * 4, cudaMemcpyHostToDevice, stream));
  CUDA_OK(launch_fill(device.data() + kWords * 2, kWords / 2, 12, stream));
  CUDA_OK(cudaMemcpyAsync(out.data(), device.data(), kWords * 4, cudaMemcpyDeviceToHost, stream));
  cudaGraph_t graph = nullptr;
  CUDA_OK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = nullptr;
  CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
  for (uint32_t round = 0; round < 3; ++round) {
    ByteVector expected = make_bytes(kWords * 4, round);
    std::memcpy(in.data(), expected.data(), expected.size());
    CUDA_OK(cudaGraphLaunch(exec, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    for (uint32_t i = 0; i < kWords / 2; ++i) {
      const uint32_t word = filled_word(12, i);
      std::memcpy(&expected[kWords * 2 + size_t{i} * 4], &word, 4);
    }
    EXPECT_EQ(ByteVector(out.data(), out.data() + kWords * 4), expected);
  }
  CUDA_OK(cudaGraphExecDestroy(exec));
  CUDA_OK(cudaGraphDestroy(graph));
}

// Functions that make a stream for their own use, and are captured, destroy it again.
TEST_F(RuntimeStreams, AStreamThatJoinedACaptureCanBeDestroyedInIt) {
  for (const bool waited_for : {true, false}) {
    RuntimeStream stream;
    DeviceBytes device(16);
    RuntimeEvent begun;
    RuntimeEvent done;
    cudaStream_t helper = nullptr;
    CUDA_OK(cudaStreamCreateWithFlags(&helper, cudaStreamNonBlocking));
    CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CUDA_OK(cudaMemsetAsync(device.data(), 1, 16, stream));
    CUDA_OK(cudaEventRecord(begun, stream));
    CUDA_OK(cudaStreamWaitEvent(helper, begun, 0));
    CUDA_OK(cudaMemsetAsync(device.data(), 2, 16, helper));
    CUDA_OK(cudaEventRecord(done, helper));
    CUDA_OK(cudaStreamDestroy(helper));
    if (waited_for) {
      CUDA_OK(cudaStreamWaitEvent(stream, done, 0));
    }
    cudaGraph_t graph = nullptr;
    if (!waited_for) {
      EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureUnjoined);
      EXPECT_EQ(cudaGetLastError(), cudaErrorStreamCaptureUnjoined);
      continue;
    }
    CUDA_OK(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t exec = nullptr;
    CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    CUDA_OK(cudaGraphLaunch(exec, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    EXPECT_EQ(device.read(), ByteVector(16, 2));
    CUDA_OK(cudaGraphExecDestroy(exec));
    CUDA_OK(cudaGraphDestroy(graph));
  }
}

TEST_F(RuntimeStreams, ThreadsTimesDevices) {
  int devices = 0;
  CUDA_OK(cudaGetDeviceCount(&devices));
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4 * devices; ++i) {
    threads.emplace_back([&, i] {
      cudaSetDevice(i % devices);
      for (uint32_t round = 0; round < 25; ++round) {
        const ByteVector sent = make_bytes(20000 + 7919 * round, round + static_cast<uint32_t>(i));
        DeviceBytes device(sent.size());
        device.write(sent);
        good += device.read() == sent ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 4 * devices * 25);
}

}  // namespace
}  // namespace sealane::test
