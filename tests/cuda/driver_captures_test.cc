// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a capture when something of it goes before it ends: a stream's context, or a node
// of the graph that it captures into?

#include <algorithm>
#include <vector>

#include "cuda/driver.h"

namespace sealane::test {
namespace {

class DriverCaptures : public DriverTest {};

// Another context with a stream that can join captures. The test's own stays current.
class OtherContext {
 public:
  explicit OtherContext(CUdevice device) {
    CU_EXPECT_OK(cuCtxCreate(&context_, nullptr, 0, device));
    CU_EXPECT_OK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    CU_EXPECT_OK(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING));
    CU_EXPECT_OK(cuCtxPopCurrent(nullptr));
  }
  ~OtherContext() { end(); }
  OtherContext(const OtherContext&) = delete;
  OtherContext& operator=(const OtherContext&) = delete;

  void end() {
    if (context_ != nullptr) {
      CU_EXPECT_OK(cuCtxDestroy(context_));
    }
    context_ = nullptr;
  }
  CUcontext context() const { return context_; }
  CUstream stream() const { return stream_; }
  CUevent event() const { return event_; }

 private:
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  CUevent event_ = nullptr;
};

CUstreamCaptureStatus status_of(CUstream stream) {
  CUstreamCaptureStatus status{};
  CU_EXPECT_OK(cuStreamIsCapturing(stream, &status));
  return status;
}

// `stream` joins the capture that `origin` is in.
void join(CUstream stream, CUstream origin, CUevent event) {
  CU_EXPECT_OK(cuEventRecord(event, origin));
  CU_EXPECT_OK(cuStreamWaitEvent(stream, event, 0));
}

std::vector<CUgraphNode> nodes_of(CUgraph graph) {
  size_t count = 0;
  CU_EXPECT_OK(cuGraphGetNodes(graph, nullptr, &count));
  std::vector<CUgraphNode> nodes(count);
  CU_EXPECT_OK(cuGraphGetNodes(graph, nodes.data(), &count));
  return nodes;
}

size_t dependencies_of(CUgraphNode node) {
  size_t count = 0;
  CU_EXPECT_OK(cuGraphNodeGetDependencies(node, nullptr, nullptr, &count));
  return count;
}

CUresult capture_to(CUgraph graph, CUstream stream) {
  return cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0,
                                     CU_STREAM_CAPTURE_MODE_RELAXED);
}

// Its stream's memory is the next stream's: what the capture still listed was that one.
TEST_F(DriverCaptures, ASideWhoseContextEndedIsUnjoinedAndNoOtherStreamIsTakenForIt) {
  OtherContext other(device_);
  DeviceMemory memory(64);
  const DriverStream stream;
  const DriverEvent begun(CU_EVENT_DISABLE_TIMING);
  CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CU_OK(cuMemsetD8Async(memory.address(), 1, 64, stream));
  join(other.stream(), stream, begun);
  CU_OK(cuMemsetD8Async(memory.address(), 2, 64, other.stream()));
  other.end();
  const DriverStream next;
  CU_OK(cuStreamBeginCapture(next, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(status_of(next), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CU_OK(cuStreamEndCapture(next, &graph));
  CU_OK(cuGraphDestroy(graph));
}

TEST_F(DriverCaptures, ThatBeganInAContextThatEndedHoldNoStreamOfAnother) {
  OtherContext other(device_);
  DeviceMemory memory(64);
  memory.fill(1);
  const DriverStream stream;
  const DriverEvent event(CU_EVENT_DISABLE_TIMING);
  CU_OK(cuStreamBeginCapture(other.stream(), CU_STREAM_CAPTURE_MODE_RELAXED));
  join(stream, other.stream(), other.event());
  CU_OK(cuEventRecord(event, stream));
  EXPECT_EQ(status_of(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  other.end();
  EXPECT_EQ(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
  CU_OK(cuMemsetD8Async(memory.address(), 2, 64, stream));
  CU_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(memory.read(), ByteVector(64, 2));
  // Neither can anybody join it any more, by an event that was recorded in it.
  const DriverStream next;
  CU_OK(cuStreamBeginCapture(next, CU_STREAM_CAPTURE_MODE_RELAXED));
  CU_OK(cuStreamWaitEvent(stream, event, 0));
  EXPECT_EQ(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
  CUgraph graph = nullptr;
  CU_OK(cuStreamEndCapture(next, &graph));
  CU_OK(cuGraphDestroy(graph));
}

TEST_F(DriverCaptures, WaitForNoNodeThatIsGone) {
  DeviceMemory memory(64);
  const DriverStream stream;
  const DriverEvent begun(CU_EVENT_DISABLE_TIMING);
  CUgraph graph = nullptr;
  CU_OK(cuGraphCreate(&graph, 0));
  CU_OK(capture_to(graph, stream));
  CU_OK(cuMemsetD8Async(memory.address(), 1, 64, stream));
  {
    const DriverStream gone;
    join(gone, stream, begun);
    CU_OK(cuMemsetD8Async(memory.address(), 2, 64, gone));
  }
  for (CUgraphNode node : nodes_of(graph)) CU_OK(cuGraphDestroyNode(node));
  CUgraph captured = nullptr;
  CU_OK(cuStreamEndCapture(stream, &captured));
  EXPECT_EQ(captured, graph);
  EXPECT_TRUE(nodes_of(graph).empty());
  CU_OK(cuGraphDestroy(graph));
}

TEST_F(DriverCaptures, GoOnBehindANodeThatIsGone) {
  DeviceMemory memory(64);
  const DriverStream stream;
  const DriverStream side;
  const DriverEvent begun(CU_EVENT_DISABLE_TIMING);
  const DriverEvent done(CU_EVENT_DISABLE_TIMING);
  CUgraph graph = nullptr;
  CU_OK(cuGraphCreate(&graph, 0));
  CU_OK(capture_to(graph, stream));
  CU_OK(cuMemsetD8Async(memory.address(), 1, 64, stream));
  CU_OK(cuEventRecord(begun, stream));
  for (CUgraphNode node : nodes_of(graph)) CU_OK(cuGraphDestroyNode(node));
  CU_OK(cuStreamWaitEvent(side, begun, 0));
  CU_OK(cuMemsetD8Async(memory.address(), 2, 32, side));
  CU_OK(cuMemsetD8Async(memory.address() + 32, 3, 32, stream));
  for (CUgraphNode node : nodes_of(graph)) EXPECT_EQ(dependencies_of(node), 0u);
  join(stream, side, done);
  CU_OK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = nullptr;
  CU_OK(cuGraphInstantiate(&exec, graph, 0));
  CU_OK(cuGraphLaunch(exec, stream));
  CU_OK(cuStreamSynchronize(stream));
  ByteVector expected(64, 2);
  std::fill(expected.begin() + 32, expected.end(), 3);
  EXPECT_EQ(memory.read(), expected);
  CU_OK(cuGraphExecDestroy(exec));
  CU_OK(cuGraphDestroy(graph));
}

}  // namespace
}  // namespace sealane::test
