// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does PTX run: arguments, variables, faults that stay, refusals?

#include <elf.h>
#include <sys/mman.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "cuda/driver.h"

namespace sealane::test {
namespace {

constexpr unsigned kCount = 1000;

// out[i] = 3 * i + bias, for i below n.
constexpr const char* kText = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 bias = 5;
.visible .entry triple(.param .u64 out, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  ld.global.u32 %r6, [bias];
  mad.lo.s32 %r7, %r5, 3, %r6;
  cvta.to.global.u64 %rd1, %rd1;
  mul.wide.u32 %rd2, %r5, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r7;
DONE:
  ret;
}
)";

class DriverDeviceCode : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    CU_OK(cuModuleLoadData(&module_, kText));
    CU_OK(cuModuleGetFunction(&triple_, module_, "triple"));
  }
  CUresult launch(CUdeviceptr out, unsigned n) {
    void* arguments[] = {&out, &n};
    return cuLaunchKernel(triple_, (n + 127) / 128, 1, 1, 128, 1, 1, 0, nullptr, arguments,
                          nullptr);
  }
  CUmodule module_ = nullptr;
  CUfunction triple_ = nullptr;
};

TEST_F(DriverDeviceCode, RunsWithItsArgumentsAndVariables) {
  DeviceMemory device(kCount * 4);
  CUdeviceptr bias = 0;
  size_t bytes = 0;
  CU_OK(cuModuleGetGlobal(&bias, &bytes, module_, "bias"));
  EXPECT_EQ(bytes, 4u);
  uint32_t first = 0;
  CU_OK(cuMemcpyDtoH(&first, bias, 4));
  EXPECT_EQ(first, 5u);
  for (const uint32_t wanted : {5u, 70u}) {
    CU_OK(cuMemcpyHtoD(bias, &wanted, 4));
    CU_OK(launch(device.address(), kCount));
    const ByteVector got = device.read();
    for (uint32_t i = 0; i < kCount; ++i) {
      uint32_t word = 0;
      std::memcpy(&word, got.data() + 4 * i, 4);
      ASSERT_EQ(word, 3 * i + wanted) << i;
    }
  }
}

// Benchmarks limit how long a kernel spins by the device's clock and the rate the driver tells.
TEST_F(DriverDeviceCode, ItsClockRunsAtTheRateTheDriverTells) {
  using Clock = std::chrono::steady_clock;
  CUmodule module = nullptr;
  CUfunction reads = nullptr;
  CU_OK(cuModuleLoadData(&module, R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry reads(.param .u64 out)
{
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  mov.u64 %rd2, %clock64;
  st.global.u64 [%rd1], %rd2;
  ret;
}
)"));
  CU_OK(cuModuleGetFunction(&reads, module, "reads"));
  CUdevice device = 0;
  CU_OK(cuCtxGetDevice(&device));
  int khz = 0;
  CU_OK(cuDeviceGetAttribute(&khz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, device));
  DeviceMemory memory(8);
  CUdeviceptr out = memory.address();
  void* arguments[] = {&out};
  Clock::time_point before[2], after[2];
  uint64_t seen[2] = {};
  for (int i = 0; i < 2; ++i) {
    before[i] = Clock::now();
    CU_OK(cuLaunchKernel(reads, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
    CU_OK(cuCtxSynchronize());
    after[i] = Clock::now();
    std::memcpy(&seen[i], memory.read().data(), 8);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  // The two readings are at least as far apart as the launches, at most as their outer ends.
  const double ticks = static_cast<double>(seen[1] - seen[0]);
  const auto ms = [](Clock::duration d) {
    return std::chrono::duration<double, std::milli>(d).count();
  };
  EXPECT_GE(ticks, ms(before[1] - after[0]) * khz - 1);
  EXPECT_LE(ticks, ms(after[1] - before[0]) * khz + 1);
  CU_OK(cuModuleUnload(module));
}

// Collective libraries declare 4 KiB of parameters and hand over what they use.
TEST_F(DriverDeviceCode, ABufferOfArgumentsMayBeShorterThanTheParameters) {
  DeviceMemory device(4);
  device.fill(0xff);
  CUdeviceptr out = device.address();
  size_t bytes = sizeof out;  // without n: it is 0, nothing is written
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &out, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 32;
  config.blockDimY = config.blockDimZ = 1;
  CU_OK(cuLaunchKernelEx(&config, triple_, nullptr, extra));
  CU_OK(cuCtxSynchronize());
  EXPECT_EQ(device.read(), ByteVector(4, 0xff));
}

// As on a GPU, where memory is given out in granules: NCCL loads 16 bytes of a buffer of 4.
TEST_F(DriverDeviceCode, ABufferCanBeAccessedToTheEndOfItsGranule) {
  if (std::getenv("SEALANE_EMU_CHECK") != nullptr) GTEST_SKIP() << "not where memory is checked";
  CUdeviceptr small = 0;
  CU_OK(cuMemAlloc(&small, 4));
  CU_OK(launch(small, 128));
  CU_OK(cuCtxSynchronize());
  unsigned word = 0;
  CU_OK(cuMemcpyDtoH(&word, small, 4));
  EXPECT_EQ(word, 5u);
  CU_OK(cuMemFree(small));
}

TEST_F(DriverDeviceCode, WhereMemoryIsCheckedABufferEndsWhereItEnds) {
  if (std::getenv("SEALANE_EMU_CHECK") == nullptr) GTEST_SKIP() << "memory is not checked";
  CUcontext own = nullptr;
  CU_OK(cuCtxCreate(&own, nullptr, 0, device_));
  CU_OK(cuModuleLoadData(&module_, kText));
  CU_OK(cuModuleGetFunction(&triple_, module_, "triple"));
  CUdeviceptr small = 0;
  CU_OK(cuMemAlloc(&small, 4));
  CU_OK(launch(small, 1));
  CU_OK(cuCtxSynchronize());
  CU_OK(launch(small, 2));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  CU_OK(cuCtxDestroy(own));
}

TEST_F(DriverDeviceCode, AWildAccessFailsItsContextForGood) {
  CUcontext own = nullptr;
  CU_OK(cuCtxCreate(&own, nullptr, 0, device_));  // also makes it current
  CU_OK(cuModuleLoadData(&module_, kText));
  CU_OK(cuModuleGetFunction(&triple_, module_, "triple"));
  CUdeviceptr small = 0;
  CU_OK(cuMemAlloc(&small, 400));
  CU_OK(launch(small, kCount));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(launch(small, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
  CU_OK(cuCtxDestroy(own));
}

// Says that it runs, then reads a word until it is not zero.
constexpr const char* kWaits = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry waits(.param .u64 word, .param .u64 runs)
{
  .reg .pred %p<2>;
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [word];
  ld.param.u64 %rd2, [runs];
  st.volatile.global.u32 [%rd2], 1;
LOOP:
  ld.volatile.global.u32 %r1, [%rd1];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra LOOP;
  ret;
}
)";

// A kernel of a context of its own that waits for a word; `word` is taken away meanwhile, from
// another context.
class DriverMemoryTakenAway : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    CU_OK(cuCtxCreate(&own_, nullptr, 0, device_));
    CU_OK(cuModuleLoadData(&module_, kWaits));
    CU_OK(cuModuleGetFunction(&waits_, module_, "waits"));
    CU_OK(cuMemAlloc(&runs_, 4));
    CU_OK(cuMemsetD32(runs_, 0, 1));
    CU_OK(cuCtxSynchronize());
  }
  void launch(CUdeviceptr word) {
    void* arguments[] = {&word, &runs_};
    CU_OK(cuLaunchKernel(waits_, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
    CU_OK(cuCtxSetCurrent(context_));
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    uint32_t runs = 0;
    while (runs == 0 && std::chrono::steady_clock::now() < until) {
      CU_OK(cuMemcpyDtoH(&runs, runs_, 4));
    }
    ASSERT_EQ(runs, 1u);
  }
  void expect_illegal_address() {
    CU_OK(cuCtxSetCurrent(own_));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    CU_OK(cuCtxDestroy(own_));
    CU_OK(cuCtxSetCurrent(context_));
  }
  CUcontext own_ = nullptr;
  CUmodule module_ = nullptr;
  CUfunction waits_ = nullptr;
  CUdeviceptr runs_ = 0;
};

TEST_F(DriverMemoryTakenAway, FreedUnderAKernelItIsAnIllegalAddressNotACrash) {
  void* word = nullptr;
  CU_OK(cuMemHostAlloc(&word, 4, 0));
  *static_cast<uint32_t*>(word) = 0;
  launch(reinterpret_cast<CUdeviceptr>(word));
  CU_OK(cuMemFreeHost(word));
  expect_illegal_address();
}

TEST_F(DriverMemoryTakenAway, UnregisteredAndUnmappedUnderAKernelItIsAnIllegalAddressNotACrash) {
  void* word = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(word, MAP_FAILED);
  if (cuMemHostRegister(word, 4096, CU_MEMHOSTREGISTER_DEVICEMAP) == CUDA_ERROR_NOT_SUPPORTED) {
    munmap(word, 4096);
    CU_OK(cuCtxDestroy(own_));
    GTEST_SKIP() << "memory cannot be registered in CC mode";
  }
  launch(reinterpret_cast<CUdeviceptr>(word));
  CU_OK(cuMemHostUnregister(word));
  munmap(word, 4096);
  expect_illegal_address();
}

// All streams share one hardware queue.
bool one_queue() {
  const char* const queues = std::getenv("SEALANE_EMU_QUEUES");
  return queues != nullptr && std::strcmp(queues, "1") == 0;
}

// Benchmarks hold a stream back with such a kernel.
TEST_F(DriverDeviceCode, AKernelThatWaitsForTheHostSeesItsWordWhenTheHostSynchronises) {
  if (one_queue()) GTEST_SKIP() << "a copy would wait behind the kernel";
  CUmodule module = nullptr;
  CUfunction waits = nullptr;
  CU_OK(cuModuleLoadData(&module, kWaits));
  CU_OK(cuModuleGetFunction(&waits, module, "waits"));
  PinnedMemory word(4);
  PinnedMemory seen(4);
  std::memset(word.data(), 0, 4);
  std::memset(seen.data(), 0, 4);
  DeviceMemory runs(4);
  runs.fill(0);
  {
    DriverStream kernels, copies;
    CUdeviceptr from = reinterpret_cast<CUdeviceptr>(word.data());
    CUdeviceptr state = runs.address();
    void* arguments[] = {&from, &state};
    CU_OK(cuLaunchKernel(waits, 1, 1, 1, 32, 1, 1, 0, kernels, arguments, nullptr));
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    while (*seen.data() == 0 && std::chrono::steady_clock::now() < until) {
      CU_OK(cuMemcpyDtoHAsync(seen.data(), runs.address(), 4, copies));
      CU_OK(cuStreamSynchronize(copies));
    }
    *reinterpret_cast<volatile uint32_t*>(word.data()) = 1;
    CU_OK(cuStreamSynchronize(kernels));
  }
  CU_OK(cuModuleUnload(module));
}

// Writes a word, says that it runs, waits until it may go on, writes the next word.
constexpr const char* kTwice = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry twice(.param .u64 words, .param .u64 runs)
{
  .reg .pred %p<2>;
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [words];
  ld.param.u64 %rd2, [runs];
  st.global.u32 [%rd1], 1;
  st.volatile.global.u32 [%rd2], 1;
LOOP:
  ld.volatile.global.u32 %r1, [%rd2+4];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra LOOP;
  st.global.u32 [%rd1+4], 2;
  ret;
}
)";

// Whether kernels see mapped memory itself or a copy of it.
TEST_F(DriverDeviceCode, WhatAKernelWritesToMappedMemoryOutlivesASynchronisationOfAnotherStream) {
  if (one_queue()) GTEST_SKIP() << "a copy would wait behind the kernel";
  CUmodule module = nullptr;
  CUfunction twice = nullptr;
  CU_OK(cuModuleLoadData(&module, kTwice));
  CU_OK(cuModuleGetFunction(&twice, module, "twice"));
  PinnedMemory words(8);
  PinnedMemory seen(4);
  std::memset(words.data(), 0, 8);
  std::memset(seen.data(), 0, 4);
  DeviceMemory runs(8);
  runs.fill(0);
  {
    DriverStream kernels, copies;
    CUdeviceptr to = reinterpret_cast<CUdeviceptr>(words.data());
    CUdeviceptr state = runs.address();
    void* arguments[] = {&to, &state};
    CU_OK(cuLaunchKernel(twice, 1, 1, 1, 1, 1, 1, 0, kernels, arguments, nullptr));
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    while (*seen.data() == 0 && std::chrono::steady_clock::now() < until) {
      CU_OK(cuMemcpyDtoHAsync(seen.data(), runs.address(), 4, copies));
      CU_OK(cuStreamSynchronize(copies));
    }
    CU_OK(cuMemcpyHtoDAsync(runs.address() + 4, seen.data(), 4, copies));
    CU_OK(cuStreamSynchronize(copies));
    CU_OK(cuStreamSynchronize(kernels));
  }
  uint32_t got[2];
  std::memcpy(got, words.data(), 8);
  EXPECT_EQ(got[0], 1u);
  EXPECT_EQ(got[1], 2u);
  CU_OK(cuModuleUnload(module));
}

TEST_F(DriverDeviceCode, TheBlockThatKeepsAnSmBusyIsKnown) {
  int grid = 0;
  int block = 0;
  CU_OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, triple_, nullptr, 0, 0));
  EXPECT_EQ(block, 1024);
  EXPECT_EQ(grid % 2, 0);
  CU_OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, triple_, nullptr, 0, 100));
  EXPECT_EQ(block, 64);  // 32 blocks of 64 fill an SM; 16 of 100 (as 128) do not
  // As much shared memory as fits twice: two blocks of the largest.
  const auto shared = [](int size) { return size_t{100} << 10 | static_cast<size_t>(size); };
  CU_OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, triple_, shared, 0, 0));
  EXPECT_EQ(block, 1024);
}

// Two texts: each has a local `step` and a local `$str`, and needs what the other has.
constexpr const char* kFirst = R"(
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) other(.param .b32 x);
.visible .global .align 4 .u32 common = 1000;
.global .align 4 .u32 $str = 7;
.func (.param .b32 r) step(.param .b32 x)
{
  .reg .b32 %r<4>;
  ld.param.b32 %r1, [x];
  ld.global.u32 %r2, [$str];
  add.u32 %r3, %r1, %r2;
  st.param.b32 [r], %r3;
  ret;
}
.visible .entry both(.param .u64 out)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), step, (a); ld.param.b32 %r2, [b]; }
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call (b), other, (a); ld.param.b32 %r3, [b]; }
  st.global.u32 [%rd1], %r3;
  ret;
}
)";
constexpr const char* kSecond = R"(
.version 8.0
.target sm_80
.address_size 64
.extern .global .align 4 .u32 common;
.global .align 4 .u32 $str = 30;
.func (.param .b32 r) step(.param .b32 x)
{
  .reg .b32 %r<4>;
  ld.param.b32 %r1, [x];
  ld.global.u32 %r2, [$str];
  mul.lo.u32 %r3, %r1, %r2;
  st.param.b32 [r], %r3;
  ret;
}
.visible .func (.param .b32 r) other(.param .b32 x)
{
  .reg .b32 %r<5>;
  ld.param.b32 %r1, [x];
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), step, (a); ld.param.b32 %r2, [b]; }
  ld.global.u32 %r3, [common];
  add.u32 %r4, %r2, %r3;
  st.param.b32 [r], %r4;
  ret;
}
)";

CUresult add_text(CUlinkState link, const char* text) {
  return cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(text), std::strlen(text) + 1,
                       "text", 0, nullptr, nullptr);
}

TEST_F(DriverDeviceCode, TextsAreLinkedAndWhatIsLocalStaysSo) {
  CUlinkState link = nullptr;
  CU_OK(cuLinkCreate(0, nullptr, nullptr, &link));
  CU_OK(add_text(link, kFirst));
  CU_OK(add_text(link, kSecond));
  void* cubin = nullptr;
  size_t bytes = 0;
  CU_OK(cuLinkComplete(link, &cubin, &bytes));
  const std::string kept(static_cast<const char*>(cubin), bytes);  // a program may write it to disk
  CU_OK(cuLinkDestroy(link));
  CUmodule module = nullptr;
  CU_OK(cuModuleLoadData(&module, kept.data()));
  CUfunction both = nullptr;
  CU_OK(cuModuleGetFunction(&both, module, "both"));
  DeviceMemory out(4);
  CUdeviceptr address = out.address();
  void* arguments[] = {&address};
  CU_OK(cuLaunchKernel(both, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  uint32_t got = 0;
  CU_OK(cuMemcpyDtoH(&got, out.address(), 4));
  EXPECT_EQ(got, (0u + 7u) * 30u + 1000u);
  CU_OK(cuModuleUnload(module));
}

TEST_F(DriverDeviceCode, WhatCannotBeLinkedIsToldInTheProgramsBuffer) {
  char log[200] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUlinkState link = nullptr;
  CU_OK(cuLinkCreate(2, options, values, &link));
  CU_OK(add_text(link, kFirst));
  CU_OK(add_text(link, kFirst));
  void* cubin = nullptr;
  EXPECT_EQ(cuLinkComplete(link, &cubin, nullptr), CUDA_ERROR_INVALID_PTX);
  EXPECT_NE(std::string(log).find("is defined twice"), std::string::npos) << log;
  EXPECT_EQ(reinterpret_cast<size_t>(values[1]), std::strlen(log));
  EXPECT_EQ(add_text(link, ".version 8.0\n.target sm_80\n.entry broken( {"),
            CUDA_ERROR_INVALID_PTX);
  CU_OK(cuLinkDestroy(link));
}

// An ELF file with a name in it and no PTX.
TEST_F(DriverDeviceCode, AKernelThatIsMachineCodeIsRefusedWhenItIsLaunched) {
  const std::string name = "only_machine_code";
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_shoff = sizeof header + name.size();
  std::string cubin(reinterpret_cast<const char*>(&header), sizeof header);
  cubin += name;
  CUmodule module = nullptr;
  CU_OK(cuModuleLoadData(&module, cubin.data()));
  CUfunction function = nullptr;
  CU_OK(cuModuleGetFunction(&function, module, name.c_str()));
  EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
  CU_OK(cuModuleUnload(module));
}

TEST_F(DriverDeviceCode, WhatIsNotPtxIsRefused) {
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoadData(&module, ".version 8.0\n.target sm_80\n.entry broken( {"),
            CUDA_ERROR_INVALID_PTX);
}

}  // namespace
}  // namespace sealane::test
