// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do streams, events, default streams and host functions keep CUDA's order?

#include <atomic>
#include <cstring>
#include <thread>

#include "cuda/driver.h"
#include "cuda/gate.h"

namespace sealane::test {
namespace {

class DriverStreams : public DriverTest {};
class DriverEvents : public DriverTest {};
// Streams that go on while another one waits: CUDA promises that only where streams have hardware
// queues of their own.
class DriverConcurrency : public DriverTest {};

TEST_F(DriverStreams, WorkOfAStreamIsInOrder) {
  DriverStream stream;
  KernelModule kernels;
  DeviceMemory a(4096);
  DeviceMemory b(4096);
  PinnedMemory out(4096);
  for (uint32_t round = 0; round < 50; ++round) {
    CU_OK(cuMemsetD8Async(a.address(), 0, 4096, stream));
    kernels.launch(fill_kernel(a.address(), 1024, round), stream);
    CU_OK(cuMemcpyDtoDAsync(b.address(), a.address(), 4096, stream));
    CU_OK(cuMemsetD8Async(a.address(), 0xff, 4096, stream));
    CU_OK(cuMemcpyDtoHAsync(out.data(), b.address(), 4096, stream));
    CU_OK(cuStreamSynchronize(stream));
    uint32_t word = 0;
    std::memcpy(&word, out.data() + 4 * round, 4);
    ASSERT_EQ(word, filled_word(round, round));
  }
}

// Copies of both directions and kernels in turn; each result feeds the next.
TEST_F(DriverStreams, CopiesAndKernelsInterleave) {
  DriverStream stream;
  KernelModule kernels;
  constexpr uint32_t kWords = 1 << 16;
  DeviceMemory device(kWords * 4);
  PinnedMemory host(kWords * 4);
  for (uint32_t round = 0; round < 8; ++round) {
    kernels.launch(fill_kernel(device.address(), kWords, round), stream);
    CU_OK(cuMemcpyDtoHAsync(host.data(), device.address(), kWords * 4, stream));
    CU_OK(cuMemsetD8Async(device.address(), 0, kWords * 4, stream));
    CU_OK(cuMemcpyHtoDAsync(device.address(), host.data(), kWords * 4, stream));
    CU_OK(cuStreamSynchronize(stream));
    const ByteVector bytes = device.read();
    for (uint32_t i = 0; i < kWords; i += 4099) {
      uint32_t word = 0;
      std::memcpy(&word, &bytes[size_t{i} * 4], 4);
      ASSERT_EQ(word, filled_word(round, i)) << round << ' ' << i;
    }
  }
}

TEST_F(DriverStreams, QuerySaysWhetherWorkIsLeft) {
  DriverStream stream;
  CU_EXPECT_OK(cuStreamQuery(stream));
  Gate gate;
  CU_OK(cuLaunchHostFunc(stream, Gate::wait, gate.ticket()));
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  gate.open();
  CU_OK(cuStreamSynchronize(stream));
  CU_EXPECT_OK(cuStreamQuery(stream));
}

TEST_F(DriverConcurrency, StreamsThatAreGoneTakeNoQueue) {
  for (int gone = 0; gone < 34; ++gone) {
    DriverStream held;
    for (int i = 0; i < gone; ++i) const DriverStream one;
    DriverStream going_on;
    DeviceMemory device(16);
    Gate gate;
    CU_OK(cuLaunchHostFunc(held, Gate::wait, gate.ticket()));
    CU_OK(cuMemsetD8Async(device.address(), 1, 16, going_on));
    CU_OK(cuStreamSynchronize(going_on));
    ASSERT_EQ(cuStreamQuery(held), CUDA_ERROR_NOT_READY) << gone;
  }
}

TEST_F(DriverConcurrency, OtherStreamsGoOnBehindABlockedOne) {
  DriverStream blocked;
  DriverStream other;
  Gate gate;
  DeviceMemory device(256);
  CU_OK(cuLaunchHostFunc(blocked, Gate::wait, gate.ticket()));
  CU_OK(cuMemsetD8Async(device.address(), 0x42, 256, other));
  CU_EXPECT_OK(cuStreamSynchronize(other));
  EXPECT_EQ(cuStreamQuery(blocked), CUDA_ERROR_NOT_READY);
  gate.open();
}

TEST_F(DriverStreams, WaitEventOrdersAcrossStreams) {
  DriverStream first;
  DriverStream second;
  DriverEvent event(CU_EVENT_DISABLE_TIMING);
  Gate gate;
  DeviceMemory device(256);
  device.fill(0);
  CU_OK(cuLaunchHostFunc(first, Gate::wait, gate.ticket()));
  CU_OK(cuMemsetD8Async(device.address(), 1, 256, first));
  CU_OK(cuEventRecord(event, first));
  CU_OK(cuStreamWaitEvent(second, event, 0));
  CU_OK(cuMemsetD8Async(device.address(), 2, 128, second));
  EXPECT_EQ(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
  gate.open();
  CU_OK(cuStreamSynchronize(second));
  ByteVector expected(256, 1);
  std::memset(expected.data(), 2, 128);
  EXPECT_EQ(device.read(), expected);
}

// A wait takes the event as it was recorded last before the wait; recording it again later does
// not move it.
TEST_F(DriverConcurrency, WaitEventTakesTheRecordBeforeIt) {
  DriverStream first;
  DriverStream second;
  DriverStream third;
  DriverEvent event;
  Gate gate;
  CU_OK(cuEventRecord(event, first));
  CU_OK(cuStreamWaitEvent(second, event, 0));
  CU_OK(cuLaunchHostFunc(third, Gate::wait, gate.ticket()));
  CU_OK(cuEventRecord(event, third));
  CU_EXPECT_OK(cuStreamSynchronize(second));
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  gate.open();
}

TEST_F(DriverStreams, WaitOnAnEventNeverRecordedPasses) {
  DriverStream stream;
  DriverEvent event;
  CU_OK(cuStreamWaitEvent(stream, event, 0));
  CU_EXPECT_OK(cuStreamSynchronize(stream));
}

// The legacy default stream waits for streams that were not made non-blocking, and they for it.
TEST_F(DriverStreams, LegacyStreamWaitsForBlockingStreams) {
  DriverStream blocking(CU_STREAM_DEFAULT);
  Gate gate;
  DriverEvent event;
  CU_OK(cuLaunchHostFunc(blocking, Gate::wait, gate.ticket()));
  CU_OK(cuEventRecord(event, CU_STREAM_LEGACY));
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  gate.open();
  CU_EXPECT_OK(cuEventSynchronize(event));
}

TEST_F(DriverStreams, BlockingStreamsWaitForTheLegacyStream) {
  DriverStream blocking(CU_STREAM_DEFAULT);
  Gate gate;
  DeviceMemory device(16);
  CU_OK(cuLaunchHostFunc(CU_STREAM_LEGACY, Gate::wait, gate.ticket()));
  CU_OK(cuMemsetD8Async(device.address(), 1, 16, blocking));
  EXPECT_EQ(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
  gate.open();
  CU_EXPECT_OK(cuStreamSynchronize(blocking));
}

TEST_F(DriverConcurrency, NonBlockingStreamsIgnoreTheLegacyStream) {
  DriverStream stream;
  Gate gate;
  DeviceMemory device(16);
  CU_OK(cuLaunchHostFunc(CU_STREAM_LEGACY, Gate::wait, gate.ticket()));
  CU_OK(cuMemsetD8Async(device.address(), 1, 16, stream));
  CU_EXPECT_OK(cuStreamSynchronize(stream));
  gate.open();
}

TEST_F(DriverStreams, NullIsTheLegacyStream) {
  Gate gate;
  CU_OK(cuLaunchHostFunc(nullptr, Gate::wait, gate.ticket()));
  EXPECT_EQ(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
  gate.open();
  CU_EXPECT_OK(cuStreamSynchronize(CU_STREAM_LEGACY));
}

// Every thread has a default stream of its own, which other threads' work does not hold up.
TEST_F(DriverConcurrency, PerThreadStreamsAreApart) {
  Gate gate;
  CU_OK(cuLaunchHostFunc(CU_STREAM_PER_THREAD, Gate::wait, gate.ticket()));
  CUresult other = CUDA_ERROR_UNKNOWN;
  std::thread thread([&] {
    cuCtxSetCurrent(context_);
    other = cuStreamSynchronize(CU_STREAM_PER_THREAD);
  });
  thread.join();
  EXPECT_EQ(other, CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
  gate.open();
  CU_EXPECT_OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

TEST_F(DriverStreams, ContextSynchronizeWaitsForAllStreams) {
  DriverStream first;
  DriverStream second(CU_STREAM_DEFAULT);
  std::atomic<int> ran = 0;
  const auto count = [](void* counter) { ++*static_cast<std::atomic<int>*>(counter); };
  for (int i = 0; i < 20; ++i) {
    CU_OK(cuLaunchHostFunc(first, count, &ran));
    CU_OK(cuLaunchHostFunc(second, count, &ran));
  }
  CU_OK(cuCtxSynchronize());
  EXPECT_EQ(ran, 40);
}

TEST_F(DriverStreams, HostFunctionsRunInOrderWithTheData) {
  DriverStream stream;
  PinnedMemory host(4);
  DeviceMemory device(4);
  CU_OK(cuMemsetD32Async(device.address(), 7, 1, stream));
  CU_OK(cuMemcpyDtoHAsync(host.data(), device.address(), 4, stream));
  struct Seen {
    const unsigned char* data;
    uint32_t value;
  } seen{host.data(), 0};
  CU_OK(cuLaunchHostFunc(
      stream,
      [](void* argument) {
        auto* const what = static_cast<Seen*>(argument);
        std::memcpy(&what->value, what->data, 4);
      },
      &seen));
  CU_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(seen.value, 7u);
}

TEST_F(DriverStreams, CallbacksGetTheStreamAndItsStatus) {
  DriverStream stream;
  struct Called {
    CUstream stream = nullptr;
    CUresult status = CUDA_ERROR_UNKNOWN;
  } called;
  CU_OK(cuStreamAddCallback(
      stream,
      [](CUstream from, CUresult status, void* argument) {
        *static_cast<Called*>(argument) = {from, status};
      },
      &called, 0));
  CU_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(called.stream, static_cast<CUstream>(stream));
  EXPECT_EQ(called.status, CUDA_SUCCESS);
}

TEST_F(DriverStreams, PrioritiesAreClampedToTheRange) {
  int least = 0;
  int greatest = 0;
  CU_OK(cuCtxGetStreamPriorityRange(&least, &greatest));
  EXPECT_LE(greatest, least);  // a smaller number is a higher priority
  CUstream stream = nullptr;
  CU_OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest - 100));
  int priority = 0;
  CU_OK(cuStreamGetPriority(stream, &priority));
  EXPECT_EQ(priority, greatest);
  CU_OK(cuStreamDestroy(stream));
}

TEST_F(DriverStreams, SayWhatTheyAre) {
  DriverStream stream;
  DriverStream blocking(CU_STREAM_DEFAULT);
  unsigned flags = 9;
  CU_OK(cuStreamGetFlags(stream, &flags));
  EXPECT_EQ(flags, unsigned{CU_STREAM_NON_BLOCKING});
  CU_OK(cuStreamGetFlags(blocking, &flags));
  EXPECT_EQ(flags, unsigned{CU_STREAM_DEFAULT});
  CUcontext context = nullptr;
  CU_OK(cuStreamGetCtx(stream, &context));
  EXPECT_EQ(context, context_);
  unsigned long long id = 0;
  unsigned long long other_id = 0;
  CU_OK(cuStreamGetId(stream, &id));
  CU_OK(cuStreamGetId(blocking, &other_id));
  EXPECT_NE(id, other_id);
}

TEST_F(DriverStreams, DestroyingLetsPendingWorkFinish) {
  CUstream stream = nullptr;
  CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  DeviceMemory device(256);
  device.fill(0);
  Gate gate;
  CU_OK(cuLaunchHostFunc(stream, Gate::wait, gate.ticket()));
  CU_OK(cuMemsetD8Async(device.address(), 9, 256, stream));
  CU_OK(cuStreamDestroy(stream));
  gate.open();
  CU_OK(cuCtxSynchronize());
  EXPECT_EQ(device.read(), ByteVector(256, 9));
}

TEST_F(DriverEvents, NeverRecordedIsComplete) {
  DriverEvent event;
  CU_EXPECT_OK(cuEventQuery(event));
  CU_EXPECT_OK(cuEventSynchronize(event));
}

TEST_F(DriverEvents, CompleteWhenTheWorkBeforeThemIs) {
  DriverStream stream;
  DriverEvent event;
  Gate gate;
  CU_OK(cuLaunchHostFunc(stream, Gate::wait, gate.ticket()));
  CU_OK(cuEventRecord(event, stream));
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  gate.open();
  CU_OK(cuEventSynchronize(event));
  CU_EXPECT_OK(cuEventQuery(event));
}

TEST_F(DriverEvents, ElapsedTimeIsNotNegativeAndAddsUp) {
  DriverStream stream;
  DriverEvent a;
  DriverEvent b;
  DriverEvent c;
  DeviceMemory device(1 << 20);
  DeviceMemory another(1 << 20);  // nothing keeps a copy of another stream behind the filling
  CU_OK(cuEventRecord(a, stream));
  CU_OK(cuMemsetD8Async(device.address(), 1, 1 << 20, stream));
  CU_OK(cuEventRecord(b, stream));
  another.write(make_bytes(1 << 20, 1));
  CU_OK(cuEventRecord(c, stream));
  CU_OK(cuEventSynchronize(c));
  float ab = -1;
  float bc = -1;
  float ac = -1;
  CU_OK(cuEventElapsedTime(&ab, a, b));
  CU_OK(cuEventElapsedTime(&bc, b, c));
  CU_OK(cuEventElapsedTime(&ac, a, c));
  EXPECT_GE(ab, 0);
  EXPECT_GE(bc, 0);
  EXPECT_NEAR(ac, ab + bc, 0.01 + ac * 1e-3);
}

TEST_F(DriverEvents, ElapsedTimeNeedsTwoTimedFinishedRecords) {
  DriverStream stream;
  DriverEvent recorded;
  DriverEvent never;
  DriverEvent untimed(CU_EVENT_DISABLE_TIMING);
  DriverEvent pending;
  CU_OK(cuEventRecord(recorded, stream));
  CU_OK(cuEventRecord(untimed, stream));
  CU_OK(cuStreamSynchronize(stream));
  float ms = 0;
  EXPECT_EQ(cuEventElapsedTime(&ms, recorded, never), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventElapsedTime(&ms, recorded, untimed), CUDA_ERROR_INVALID_HANDLE);
  Gate gate;
  CU_OK(cuLaunchHostFunc(stream, Gate::wait, gate.ticket()));
  CU_OK(cuEventRecord(pending, stream));
  EXPECT_EQ(cuEventElapsedTime(&ms, recorded, pending), CUDA_ERROR_NOT_READY);
  gate.open();
}

TEST_F(DriverStreams, AttributesAreKeptAndTheirOwn) {
  constexpr int kSynchronizationPolicy = 3;
  constexpr int kPriority = 8;
  alignas(8) char value[64] = {};
  alignas(8) char told[64] = {};
  CUstream first = nullptr;
  CU_OK(cuStreamCreateWithPriority(&first, CU_STREAM_NON_BLOCKING, -2));
  DriverStream second;
  value[0] = 2;
  using Value = CUlaunchAttributeValue;
  const auto get = [&](CUstream stream, int which) {
    return cuStreamGetAttribute(stream, static_cast<CUlaunchAttributeID>(which),
                                reinterpret_cast<Value*>(told));
  };
  CU_OK(cuStreamSetAttribute(first, static_cast<CUlaunchAttributeID>(kSynchronizationPolicy),
                             reinterpret_cast<Value*>(value)));
  CU_OK(get(second, kSynchronizationPolicy));
  EXPECT_EQ(told[0], 0);
  CU_OK(cuStreamCopyAttributes(second, first));
  CU_OK(get(second, kSynchronizationPolicy));
  EXPECT_EQ(told[0], 2);
  CU_OK(get(first, kPriority));
  int priority = 0;
  std::memcpy(&priority, told, sizeof priority);
  EXPECT_EQ(priority, -2);
  EXPECT_EQ(get(first, 77), CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuStreamDestroy(first));
}

}  // namespace
}  // namespace sealane::test
