// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do modules, libraries, launches, graphs, captures and stream memory operations work?

#include <cstring>

#include "cuda/driver.h"
#include "cuda/gate.h"

namespace sealane::test {
namespace {

constexpr uint32_t kWords = 1000;

std::vector<uint32_t> words_of(const DeviceMemory& device) {
  const ByteVector bytes = device.read();
  std::vector<uint32_t> words(bytes.size() / 4);
  std::memcpy(words.data(), bytes.data(), words.size() * 4);
  return words;
}

void expect_filled(const DeviceMemory& device, uint32_t owner) {
  const std::vector<uint32_t> words = words_of(device);
  for (uint32_t i = 0; i < kWords; ++i) ASSERT_EQ(words[i], filled_word(owner, i)) << i;
}

class DriverKernels : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    examples::register_emulated_kernels();
  }
};

TEST_F(DriverKernels, Run) {
  KernelModule kernels;
  DeviceMemory device(kWords * 4);
  kernels.launch(fill_kernel(device.address(), kWords, 3), nullptr);
  expect_filled(device, 3);
}

TEST_F(DriverKernels, ArgumentsAreCopiedAtLaunch) {
  KernelModule kernels;
  DriverStream stream;
  DeviceMemory device(kWords * 4);
  Gate gate;
  CU_OK(cuLaunchHostFunc(stream, Gate::wait, gate.ticket()));
  auto kernel = fill_kernel(device.address(), kWords, 5);
  kernels.launch(kernel, stream);
  std::memset(&kernel, 0xff, sizeof kernel);
  gate.open();
  CU_OK(cuStreamSynchronize(stream));
  expect_filled(device, 5);
}

TEST_F(DriverKernels, ArgumentsMayComeInABuffer) {
  KernelModule kernels;
  DeviceMemory device(kWords * 4);
  auto kernel = fill_kernel(device.address(), kWords, 7);
  size_t bytes = sizeof kernel;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &kernel, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  CU_OK(cuLaunchKernel(kernels.function("sealane_kv_append"), 8, 1, 1, 128, 1, 1, 0, nullptr,
                       nullptr, extra));
  expect_filled(device, 7);
}

TEST_F(DriverKernels, AreFoundInLibraries) {
  CUlibrary library = nullptr;
  CU_OK(cuLibraryLoadData(&library, examples::kernel_image(), nullptr, nullptr, 0, nullptr, nullptr,
                          0));
  CUkernel kernel = nullptr;
  CU_OK(cuLibraryGetKernel(&kernel, library, "sealane_kv_append"));
  CUfunction function = nullptr;
  CU_OK(cuKernelGetFunction(&function, kernel));
  DeviceMemory device(kWords * 4);
  auto parameters = fill_kernel(device.address(), kWords, 9);
  void* arguments[] = {&parameters};
  CU_OK(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr));
  expect_filled(device, 9);
  CU_OK(cuLibraryUnload(library));
}

TEST_F(DriverKernels, UnknownNamesAndImagesAreErrors) {
  KernelModule kernels;
  CUfunction function = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&function, kernels.handle(), "no_such_kernel"),
            CUDA_ERROR_NOT_FOUND);
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoadData(&module, "this is not an image for any GPU, and long enough to read"),
            CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(cuModuleLoad(&module, "/no/such/file.cubin"), CUDA_ERROR_FILE_NOT_FOUND);
}

TEST_F(DriverKernels, ImpossibleLaunchesAreErrors) {
  KernelModule kernels;
  const CUfunction function = kernels.function("sealane_kv_append");
  DeviceMemory device(kWords * 4);
  auto parameters = fill_kernel(device.address(), kWords, 1);
  void* arguments[] = {&parameters};
  EXPECT_EQ(cuLaunchKernel(function, 0, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 4096, 1, 1, 0, nullptr, arguments, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchKernel(nullptr, 1, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr),
            CUDA_ERROR_INVALID_HANDLE);
}

class DriverGraphs : public DriverKernels {};

// in -> device -> (fill second half) -> kernel -> out -> host function
TEST_F(DriverGraphs, OfCopiesFillsKernelsAndHostFunctions) {
  KernelModule kernels;
  DeviceMemory device(kWords * 4);
  PinnedMemory in(kWords * 4);
  PinnedMemory out(kWords * 4);
  CUgraph graph = nullptr;
  CU_OK(cuGraphCreate(&graph, 0));
  const auto copy = [](CUmemorytype from_type, CUmemorytype to_type) {
    CUDA_MEMCPY3D params{};
    params.srcMemoryType = from_type;
    params.dstMemoryType = to_type;
    params.WidthInBytes = kWords * 4;
    params.Height = params.Depth = 1;
    return params;
  };
  CUDA_MEMCPY3D to_device = copy(CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE);
  to_device.srcHost = in.data();
  to_device.dstDevice = device.address();
  CUgraphNode first = nullptr;
  CU_OK(cuGraphAddMemcpyNode(&first, graph, nullptr, 0, &to_device, context_));
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.dst = device.address() + kWords * 2;
  fill.value = 0xab;
  fill.elementSize = 1;
  fill.width = 400;
  fill.height = 1;
  CUgraphNode second = nullptr;
  CU_OK(cuGraphAddMemsetNode(&second, graph, &first, 1, &fill, context_));
  auto parameters = fill_kernel(device.address() + kWords * 3, 10, 4);
  void* arguments[] = {&parameters};
  CUDA_KERNEL_NODE_PARAMS launch{};
  launch.func = kernels.function("sealane_kv_append");
  launch.gridDimX = launch.gridDimY = launch.gridDimZ = 1;
  launch.blockDimX = 128;
  launch.blockDimY = launch.blockDimZ = 1;
  launch.kernelParams = arguments;
  CUgraphNode third = nullptr;
  CU_OK(cuGraphAddKernelNode(&third, graph, &second, 1, &launch));
  CUDA_MEMCPY3D to_host = copy(CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST);
  to_host.srcDevice = device.address();
  to_host.dstHost = out.data();
  CUgraphNode fourth = nullptr;
  CU_OK(cuGraphAddMemcpyNode(&fourth, graph, &third, 1, &to_host, context_));
  int ran = 0;
  CUDA_HOST_NODE_PARAMS host{};
  host.fn = [](void* counter) { ++*static_cast<int*>(counter); };
  host.userData = &ran;
  CUgraphNode fifth = nullptr;
  CU_OK(cuGraphAddHostNode(&fifth, graph, &fourth, 1, &host));
  CUgraphExec exec = nullptr;
  CU_OK(cuGraphInstantiate(&exec, graph, 0));
  CU_OK(cuGraphDestroy(graph));

  DriverStream stream;
  for (uint32_t round = 1; round <= 3; ++round) {  // the source is read at every launch
    const ByteVector sent = make_bytes(kWords * 4, round);
    std::memcpy(in.data(), sent.data(), sent.size());
    CU_OK(cuGraphLaunch(exec, stream));
    CU_OK(cuStreamSynchronize(stream));
    EXPECT_EQ(ran, static_cast<int>(round));
    ByteVector expected = sent;
    std::memset(&expected[kWords * 2], 0xab, 400);
    for (uint32_t i = 0; i < 10; ++i) {
      const uint32_t word = filled_word(4, i);
      std::memcpy(&expected[kWords * 3 + i * 4], &word, 4);
    }
    EXPECT_EQ(ByteVector(out.data(), out.data() + kWords * 4), expected);
  }
  CU_OK(cuGraphExecDestroy(exec));
}

TEST_F(DriverGraphs, CapturedWorkRunsWhenLaunched) {
  KernelModule kernels;
  DriverStream stream;
  DeviceMemory device(kWords * 4);
  PinnedMemory out(kWords * 4);
  device.fill(0);
  CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CUstreamCaptureStatus status{};
  CU_OK(cuStreamIsCapturing(stream, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  kernels.launch(fill_kernel(device.address(), kWords, 6), stream);
  CU_OK(cuMemcpyDtoHAsync(out.data(), device.address(), kWords * 4, stream));
  CUgraph graph = nullptr;
  CU_OK(cuStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  CU_OK(cuGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 2u);
  EXPECT_EQ(device.read(), ByteVector(kWords * 4));  // nothing ran yet
  CUgraphExec exec = nullptr;
  CU_OK(cuGraphInstantiate(&exec, graph, 0));
  CU_OK(cuGraphLaunch(exec, stream));
  CU_OK(cuStreamSynchronize(stream));
  expect_filled(device, 6);
  EXPECT_EQ(std::memcmp(out.data(), device.read().data(), kWords * 4), 0);
  CU_OK(cuGraphExecDestroy(exec));
  CU_OK(cuGraphDestroy(graph));
}

TEST_F(DriverGraphs, SynchronisingACapturingStreamBreaksTheCapture) {
  DriverStream stream;
  DeviceMemory device(16);
  CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CU_OK(cuMemsetD8Async(device.address(), 1, 16, stream));
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CU_EXPECT_OK(cuStreamSynchronize(stream));
}

class DriverStreamValues : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    int supported = 0;
    CU_OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
                               device_));
    if (supported == 0) GTEST_SKIP() << "this device has no stream memory operations";
  }
};

// As in DriverConcurrency: the writer must not be queued behind the waiter.
class DriverStreamValuesConcurrency : public DriverStreamValues {};

TEST_F(DriverStreamValuesConcurrency, AWaitEndsWithTheWrite) {
  DriverStream waiting;
  DriverStream writing;
  DeviceMemory word(4);
  DeviceMemory data(256);
  word.fill(0);
  data.fill(0);
  CU_OK(cuStreamWaitValue32(waiting, word.address(), 3, CU_STREAM_WAIT_VALUE_GEQ));
  CU_OK(cuMemsetD8Async(data.address(), 8, 256, waiting));
  CU_OK(cuStreamWriteValue32(writing, word.address(), 2, 0));
  CU_OK(cuStreamSynchronize(writing));
  EXPECT_EQ(cuStreamQuery(waiting), CUDA_ERROR_NOT_READY);
  CU_OK(cuStreamWriteValue32(writing, word.address(), 3, 0));
  CU_OK(cuStreamSynchronize(waiting));
  EXPECT_EQ(data.read(), ByteVector(256, 8));
}

TEST_F(DriverStreamValues, AllConditions) {
  DriverStream stream;
  DeviceMemory word(8);
  CU_OK(cuStreamWriteValue64(stream, word.address(), 0x100000005, 0));
  CU_OK(cuStreamWaitValue64(stream, word.address(), 0x100000005, CU_STREAM_WAIT_VALUE_EQ));
  CU_OK(cuStreamWaitValue32(stream, word.address(), 4, CU_STREAM_WAIT_VALUE_AND));
  CU_OK(cuStreamWaitValue32(stream, word.address(), 3, CU_STREAM_WAIT_VALUE_GEQ));
  CU_EXPECT_OK(cuStreamSynchronize(stream));
}

TEST_F(DriverStreamValuesConcurrency, ADeviceCopyReleasesAWait) {
  DriverStream waiting;
  DriverStream copying;
  DeviceMemory word(4);
  DeviceMemory one(4);
  word.fill(0);
  CU_OK(cuMemsetD32(one.address(), 1, 1));
  settle();
  CU_OK(cuStreamWaitValue32(waiting, word.address(), 1, CU_STREAM_WAIT_VALUE_EQ));
  EXPECT_EQ(cuStreamQuery(waiting), CUDA_ERROR_NOT_READY);
  CU_OK(cuMemcpyDtoDAsync(word.address(), one.address(), 4, copying));
  CU_EXPECT_OK(cuStreamSynchronize(waiting));
}

TEST_F(DriverStreamValues, InABatch) {
  DriverStream stream;
  DeviceMemory words(8);
  words.fill(0);
  CUstreamBatchMemOpParams operations[2] = {};
  operations[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operations[0].writeValue.address = words.address();
  operations[0].writeValue.value = 11;
  operations[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  operations[1].waitValue.address = words.address();
  operations[1].waitValue.value = 11;
  operations[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  CU_OK(cuStreamBatchMemOp(stream, 2, operations, 0));
  CU_EXPECT_OK(cuStreamSynchronize(stream));
}

}  // namespace
}  // namespace sealane::test
