// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is memory that graphs allocate and free there when it should be, captured or built?

#include <cstring>

#include "cuda/driver.h"

namespace sealane::test {
namespace {

constexpr size_t kBytes = 4096;
constexpr int kUsedNow = 0;
constexpr int kReservedNow = 2;

class DriverGraphMemory : public DriverTest {
 protected:
  uint64_t level(int attribute) {
    uint64_t value = ~uint64_t{0};
    EXPECT_EQ(CUDA_SUCCESS, cuDeviceGetGraphMemAttribute(device_, attribute, &value));
    return value;
  }
  void launch(CUgraphExec exec, CUstream stream) {
    CU_OK(cuGraphLaunch(exec, stream));
    CU_OK(cuStreamSynchronize(stream));
  }
};

TEST_F(DriverGraphMemory, IsAllocatedAndFreedByEveryLaunchOfACapture) {
  PinnedMemory host(kBytes);
  DriverStream stream;
  CUgraph graph = nullptr;
  CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUdeviceptr memory = 0;
  CU_OK(cuMemAllocAsync(&memory, kBytes, stream));
  CU_OK(cuMemsetD8Async(memory, 9, kBytes, stream));
  CU_OK(cuMemcpyDtoHAsync(host.data(), memory, kBytes, stream));
  CU_OK(cuMemFreeAsync(memory, stream));
  CU_OK(cuStreamEndCapture(stream, &graph));
  size_t count = 0;
  CU_OK(cuGraphGetNodes(graph, nullptr, &count));
  EXPECT_EQ(count, 4u);
  CUgraphExec exec = nullptr;
  CU_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  CU_OK(cuGraphDestroy(graph));
  EXPECT_EQ(level(kUsedNow), 0u);
  EXPECT_EQ(level(kReservedNow), kBytes);
  for (int i = 0; i < 2; ++i) {
    std::memset(host.data(), 0, kBytes);
    launch(exec, stream);
    EXPECT_EQ(host.data()[kBytes - 1], 9);
    EXPECT_EQ(level(kUsedNow), 0u);
  }
  CU_OK(cuGraphExecDestroy(exec));
  EXPECT_EQ(level(kReservedNow), 0u);
}

// What was allocated before the capture is freed by the launch, not by the capture.
TEST_F(DriverGraphMemory, AFreeThatIsCapturedHappensWhenTheGraphIsLaunched) {
  DriverStream stream;
  CUdeviceptr memory = 0;
  CU_OK(cuMemAllocAsync(&memory, kBytes, stream));
  CU_OK(cuStreamSynchronize(stream));
  CUgraph graph = nullptr;
  CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CU_OK(cuMemFreeAsync(memory, stream));
  CU_OK(cuStreamEndCapture(stream, &graph));
  CU_OK(cuMemsetD8(memory, 1, kBytes));
  CUgraphExec exec = nullptr;
  CU_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  launch(exec, stream);
  EXPECT_EQ(cuMemsetD8(memory, 1, kBytes), CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuGraphExecDestroy(exec));
  CU_OK(cuGraphDestroy(graph));
}

TEST_F(DriverGraphMemory, OfANodeIsTheProgramsUntilItFreesIt) {
  DriverStream stream;
  CUgraph graph = nullptr;
  CU_OK(cuGraphCreate(&graph, 0));
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
  params.bytesize = kBytes;
  CUgraphNode node = nullptr;
  CU_OK(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
  CUDA_MEM_ALLOC_NODE_PARAMS again{};
  CU_OK(cuGraphMemAllocNodeGetParams(node, &again));
  EXPECT_EQ(again.dptr, params.dptr);
  EXPECT_EQ(again.bytesize, kBytes);
  CUgraphExec exec = nullptr;
  CU_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  launch(exec, stream);
  EXPECT_EQ(level(kUsedNow), kBytes);
  CU_OK(cuGraphExecDestroy(exec));
  CU_OK(cuGraphDestroy(graph));
  CU_OK(cuMemsetD8(params.dptr, 3, kBytes));
  unsigned char last = 0;
  CU_OK(cuMemcpyDtoH(&last, params.dptr + kBytes - 1, 1));
  EXPECT_EQ(last, 3);
  CU_OK(cuMemFree(params.dptr));
  EXPECT_EQ(cuMemsetD8(params.dptr, 3, kBytes), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(level(kUsedNow), 0u);
}

}  // namespace
}  // namespace sealane::test
