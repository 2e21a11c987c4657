// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Graphs built node by node through the runtime API: does each kind of node do its work, in the
// order its edges say?

#include <cstring>

#include "cuda/runtime.h"

namespace sealane::test {
namespace {

class RuntimeGraphs : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    CUDA_OK(cudaGraphCreate(&graph_, 0));
  }
  void TearDown() override {
    CUDA_EXPECT_OK(cudaGraphDestroy(graph_));
    RuntimeTest::TearDown();
  }
  void launch_once() {
    cudaGraphExec_t exec = nullptr;
    CUDA_OK(cudaGraphInstantiate(&exec, graph_, 0));
    RuntimeStream stream;
    CUDA_OK(cudaGraphLaunch(exec, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    CUDA_OK(cudaGraphExecDestroy(exec));
  }

  cudaGraph_t graph_ = nullptr;
};

TEST_F(RuntimeGraphs, FillThenCopyThenAHostFunction) {
  constexpr size_t kBytes = 4096;
  DeviceBytes device(kBytes);
  ByteVector seen(kBytes);
  cudaGraphNode_t fill = nullptr;
  cudaGraphNode_t copy = nullptr;
  cudaGraphNode_t call = nullptr;
  const cudaMemsetParams params = {device.data(), 0, 0x5a, 1, kBytes, 1};
  CUDA_OK(cudaGraphAddMemsetNode(&fill, graph_, nullptr, 0, &params));
  CUDA_OK(cudaGraphAddMemcpyNode1D(&copy, graph_, &fill, 1, seen.data(), device.data(), kBytes,
                                   cudaMemcpyDeviceToHost));
  int calls = 0;
  const cudaHostNodeParams host = {[](void* count) { ++*static_cast<int*>(count); }, &calls};
  CUDA_OK(cudaGraphAddHostNode(&call, graph_, &copy, 1, &host));
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  CUDA_OK(cudaGraphNodeGetType(copy, &type));
  EXPECT_EQ(type, cudaGraphNodeTypeMemcpy);
  cudaMemsetParams told{};
  CUDA_OK(cudaGraphMemsetNodeGetParams(fill, &told));
  EXPECT_EQ(told.dst, params.dst);
  EXPECT_EQ(told.value, params.value);
  launch_once();
  EXPECT_EQ(seen, ByteVector(kBytes, 0x5a));
  EXPECT_EQ(calls, 1);
}

TEST_F(RuntimeGraphs, AKernelByItsHostFunction) {
  constexpr uint32_t kWords = 256;
  DeviceBytes device(kWords * sizeof(uint32_t));
  device.fill(0);
  examples::KvAppend kernel{reinterpret_cast<uint32_t*>(device.data()), kWords, 1, 9, 0};
  void* arguments[] = {&kernel};
  cudaKernelNodeParams params{};
  params.func = reinterpret_cast<void*>(&sealane_kv_append);
  params.gridDim = dim3(2);
  params.blockDim = dim3(128);
  params.kernelParams = arguments;
  cudaGraphNode_t node = nullptr;
  CUDA_OK(cudaGraphAddKernelNode(&node, graph_, nullptr, 0, &params));
  kernel.owner = 1;  // the arguments were copied
  launch_once();
  const ByteVector bytes = device.read();
  const auto* words = reinterpret_cast<const uint32_t*>(bytes.data());
  for (uint32_t i = 0; i < kWords; ++i) ASSERT_EQ(words[i], filled_word(9, i)) << i;
}

TEST_F(RuntimeGraphs, EdgesChildrenAndClones) {
  DeviceBytes device(16);
  const cudaMemsetParams first = {device.data(), 0, 1, 1, 16, 1};
  const cudaMemsetParams second = {device.data(), 0, 2, 1, 16, 1};
  cudaGraph_t inner = nullptr;
  CUDA_OK(cudaGraphCreate(&inner, 0));
  cudaGraphNode_t nodes[3] = {};
  CUDA_OK(cudaGraphAddMemsetNode(&nodes[0], inner, nullptr, 0, &second));
  CUDA_OK(cudaGraphAddChildGraphNode(&nodes[0], graph_, nullptr, 0, inner));
  CUDA_OK(cudaGraphDestroy(inner));
  CUDA_OK(cudaGraphAddMemsetNode(&nodes[1], graph_, nullptr, 0, &first));
  CUDA_OK(cudaGraphAddEmptyNode(&nodes[2], graph_, &nodes[1], 1));
  // The child comes after the other fill, though it was added before.
  CUDA_OK(cudaGraphAddDependencies(graph_, &nodes[2], &nodes[0], nullptr, 1));
  cudaGraph_t child = nullptr;
  CUDA_OK(cudaGraphChildGraphNodeGetGraph(nodes[0], &child));
  size_t count = 0;
  CUDA_OK(cudaGraphGetNodes(child, nullptr, &count));
  EXPECT_EQ(count, 1u);
  launch_once();
  EXPECT_EQ(device.read(), ByteVector(16, 2));
  cudaGraph_t clone = nullptr;
  CUDA_OK(cudaGraphClone(&clone, graph_));
  cudaGraphExec_t exec = nullptr;
  cudaGraphInstantiateParams how{};
  CUDA_OK(cudaGraphInstantiateWithParams(&exec, clone, &how));
  EXPECT_EQ(how.result_out, 0);
  device.fill(0);
  CUDA_OK(cudaGraphLaunch(exec, nullptr));
  settle();
  EXPECT_EQ(device.read(), ByteVector(16, 2));
  CUDA_OK(cudaGraphExecDestroy(exec));
  CUDA_OK(cudaGraphDestroy(clone));
}

TEST_F(RuntimeGraphs, ACaptureTellsWhereItStands) {
  RuntimeStream stream;
  DeviceBytes device(16);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
  unsigned long long id = 0;
  cudaGraph_t capturing = nullptr;
  const cudaGraphNode_t* last = nullptr;
  size_t count = 0;
  CUDA_OK(cudaStreamGetCaptureInfo(stream, &status, &id, &capturing, &last, nullptr, &count));
  EXPECT_EQ(status, cudaStreamCaptureStatusNone);
  CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CUDA_OK(cudaMemsetAsync(device.data(), 4, 16, stream));
  CUDA_OK(cudaStreamGetCaptureInfo(stream, &status, &id, &capturing, &last, nullptr, &count));
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  EXPECT_NE(id, 0u);
  ASSERT_EQ(count, 1u);
  EXPECT_NE(last[0], nullptr);
  cudaGraph_t captured = nullptr;
  CUDA_OK(cudaStreamEndCapture(stream, &captured));
  EXPECT_EQ(captured, capturing);
  CUDA_OK(cudaGraphDestroy(captured));
}

// Engines capture a step again and put it into the graph they have.
TEST_F(RuntimeGraphs, AnExecutableTakesTheParametersOfAGraphOfTheSameShape) {
  DeviceBytes device(16);
  RuntimeStream stream;
  const auto captured = [&](int value, bool twice) {
    cudaGraph_t made = nullptr;
    CUDA_EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < (twice ? 2 : 1); ++i) {
      CUDA_EXPECT_OK(cudaMemsetAsync(device.data(), value, 16, stream));
    }
    CUDA_EXPECT_OK(cudaStreamEndCapture(stream, &made));
    return made;
  };
  const cudaGraph_t first = captured(1, false);
  const cudaGraph_t second = captured(2, false);
  const cudaGraph_t longer = captured(3, true);
  cudaGraphExec_t exec = nullptr;
  CUDA_OK(cudaGraphInstantiate(&exec, first, 0));
  cudaGraphExecUpdateResultInfo info{};
  CUDA_OK(cudaGraphExecUpdate(exec, second, &info));
  EXPECT_EQ(info.result, 0);
  CUDA_OK(cudaGraphLaunch(exec, stream));
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(device.read(), ByteVector(16, 2));
  EXPECT_EQ(cudaGraphExecUpdate(exec, longer, &info), cudaErrorGraphExecUpdateFailure);
  EXPECT_EQ(info.result, 2) << "the topology changed";
  EXPECT_EQ(cudaGetLastError(), cudaErrorGraphExecUpdateFailure);
  CUDA_OK(cudaGraphLaunch(exec, stream));
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(device.read(), ByteVector(16, 2)) << "a refused update changes nothing";
  CUDA_OK(cudaGraphExecDestroy(exec));
  for (const cudaGraph_t graph : {first, second, longer}) CUDA_OK(cudaGraphDestroy(graph));
}

TEST_F(RuntimeGraphs, OneNodeOfAnExecutableChanges) {
  constexpr uint32_t kWords = 128;
  DeviceBytes device(kWords * sizeof(uint32_t));
  DeviceBytes flag(4);
  examples::KvAppend kernel{reinterpret_cast<uint32_t*>(device.data()), kWords, 1, 5, 0};
  void* arguments[] = {&kernel};
  cudaKernelNodeParams params{};
  params.func = reinterpret_cast<void*>(&sealane_kv_append);
  params.gridDim = dim3(1);
  params.blockDim = dim3(128);
  params.kernelParams = arguments;
  cudaGraphNode_t node = nullptr;
  cudaGraphNode_t fill = nullptr;
  CUDA_OK(cudaGraphAddKernelNode(&node, graph_, nullptr, 0, &params));
  const cudaMemsetParams ones = {flag.data(), 0, 1, 1, 4, 1};
  CUDA_OK(cudaGraphAddMemsetNode(&fill, graph_, &node, 1, &ones));
  flag.fill(9);
  cudaGraphExec_t exec = nullptr;
  CUDA_OK(cudaGraphInstantiate(&exec, graph_, 0));
  cudaKernelNodeParams told{};
  CUDA_OK(cudaGraphKernelNodeGetParams(node, &told));
  EXPECT_EQ(told.func, params.func);
  EXPECT_EQ(told.blockDim.x, 128u);
  kernel.owner = 6;
  CUDA_OK(cudaGraphExecKernelNodeSetParams(exec, node, &params));
  CUDA_OK(cudaGraphNodeSetEnabled(exec, fill, 0));
  unsigned enabled = 1;
  CUDA_OK(cudaGraphNodeGetEnabled(exec, fill, &enabled));
  EXPECT_EQ(enabled, 0u);
  CUDA_OK(cudaGraphLaunch(exec, nullptr));
  settle();
  const ByteVector bytes = device.read();
  const auto* words = reinterpret_cast<const uint32_t*>(bytes.data());
  for (uint32_t i = 0; i < kWords; ++i) ASSERT_EQ(words[i], filled_word(6, i)) << i;
  EXPECT_EQ(flag.read(), ByteVector(4, 9)) << "the node was switched off";
  CUDA_OK(cudaGraphExecDestroy(exec));
}

TEST_F(RuntimeGraphs, NodesKnowTheirNeighbours) {
  cudaGraphNode_t nodes[3] = {};
  CUDA_OK(cudaGraphAddEmptyNode(&nodes[0], graph_, nullptr, 0));
  CUDA_OK(cudaGraphAddEmptyNode(&nodes[1], graph_, &nodes[0], 1));
  CUDA_OK(cudaGraphAddEmptyNode(&nodes[2], graph_, nodes, 2));
  size_t count = 0;
  CUDA_OK(cudaGraphGetEdges(graph_, nullptr, nullptr, nullptr, &count));
  EXPECT_EQ(count, 3u);
  cudaGraphNode_t root = nullptr;
  count = 1;
  CUDA_OK(cudaGraphGetRootNodes(graph_, &root, &count));
  EXPECT_EQ(root, nodes[0]);
  cudaGraph_t clone = nullptr;
  cudaGraphNode_t twin = nullptr;
  CUDA_OK(cudaGraphClone(&clone, graph_));
  CUDA_OK(cudaGraphNodeFindInClone(&twin, nodes[1], clone));
  EXPECT_NE(twin, nodes[1]);
  CUDA_OK(cudaGraphDestroyNode(nodes[1]));
  CUDA_OK(cudaGraphGetEdges(graph_, nullptr, nullptr, nullptr, &count));
  EXPECT_EQ(count, 1u);
  CUDA_OK(cudaGraphDestroy(clone));
}

// What communication libraries do to have their own nodes in somebody's capture.
TEST_F(RuntimeGraphs, ACaptureTakesNodesAndObjectsOfTheProgram) {
  RuntimeStream stream;
  DeviceBytes device(16);
  int destroyed = 0;
  int called = 0;
  CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CUDA_OK(cudaMemsetAsync(device.data(), 1, 16, stream));
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* last = nullptr;
  size_t count = 0;
  CUDA_OK(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &last, nullptr, &count));
  const auto add_one = [](void* number) { ++*static_cast<int*>(number); };
  const cudaHostNodeParams host = {add_one, &called};
  cudaGraphNode_t node = nullptr;
  CUDA_OK(cudaGraphAddHostNode(&node, graph, last, count, &host));
  CUDA_OK(cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1, 1));
  cudaUserObject_t object = nullptr;
  CUDA_OK(cudaUserObjectCreate(&object, &destroyed, add_one, 1, 1));
  CUDA_OK(cudaGraphRetainUserObject(graph, object, 1, 1));
  CUDA_OK(cudaMemsetAsync(device.data(), 2, 16, stream));
  CUDA_OK(cudaStreamEndCapture(stream, &graph));
  CUDA_OK(cudaGraphGetNodes(graph, nullptr, &count));
  EXPECT_EQ(count, 3u);
  cudaGraphExec_t exec = nullptr;
  CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
  CUDA_OK(cudaGraphDestroy(graph));
  EXPECT_EQ(destroyed, 0) << "the executable needs it";
  CUDA_OK(cudaGraphLaunch(exec, stream));
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(called, 1);
  EXPECT_EQ(device.read(), ByteVector(16, 2));
  CUDA_OK(cudaGraphExecDestroy(exec));
  EXPECT_EQ(destroyed, 1);
}

}  // namespace
}  // namespace sealane::test
