// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Does device code that nvcc made give what the same sources give on the host, and fail as on a
// GPU?

#include <cmath>

#include "formulas.h"
#include "harness.h"
#include "ptx/ops/half.h"

namespace sealane::ptx {
namespace {

LaunchShape shape(uint32_t blocks, uint32_t threads) {
  return {{blocks, 1, 1}, {threads, 1, 1}, 0};
}

class DeviceCode : public ::testing::Test {
 protected:
  DeviceCode() : program(Program::read(SEALANE_SOURCE_DIR "/tests/ptx/kernels.ptx")) {}
  void SetUp() override { ASSERT_EQ(program.error, ""); }
  Program program;
};

std::vector<int32_t> some_integers(size_t count) {
  std::vector<int32_t> out(count);
  for (size_t i = 0; i < count; ++i)
    out[i] = static_cast<int32_t>(formulas::mixed(static_cast<uint32_t>(i)));
  out[0] = INT32_MIN + 1, out[1] = -1, out[2] = 0, out[3] = INT32_MAX;
  return out;
}

TEST_F(DeviceCode, EveryKernelOfTheFileIsDecoded) {
  for (const FunctionText& function : program.module->functions) {
    if (!function.entry) continue;
    const auto kernel = program.kernel(function.name);
    EXPECT_TRUE(kernel.ok()) << function.name << ": "
                             << (kernel.ok() ? "" : kernel.error().message);
  }
}

TEST_F(DeviceCode, VectorsAreAdded) {
  constexpr int kCount = 1000;
  std::vector<float> a(kCount), b(kCount);
  for (int i = 0; i < kCount; ++i) a[i] = static_cast<float>(i), b[i] = static_cast<float>(2 * i);
  const uint64_t pa = program.buffer(a), pb = program.buffer(b), pc = program.buffer(a);
  const Launched done = program.run("vector_add", shape(8, 128), pa, pb, pc, kCount);
  ASSERT_EQ(done.fault, Fault::none) << done.message;
  const auto c = program.values<float>(pc, kCount);
  for (int i = 0; i < kCount; ++i)
    ASSERT_EQ(c[i], a[i] + b[i] * static_cast<float>(1 + (i & 3))) << i;
}

TEST_F(DeviceCode, FormulasGiveWhatTheHostGives) {
  constexpr int kCount = 3000;
  const auto a = some_integers(kCount);
  const uint64_t pa = program.buffer(a), pi = program.device.add(8 * kCount),
                 pd = program.device.add(8 * kCount), ps = program.device.add(4 * kCount),
                 pf = program.device.add(4 * kCount);
  const Launched done = program.run("all_formulas", shape(24, 128), pa, pi, pd, ps, pf, kCount);
  ASSERT_EQ(done.fault, Fault::none) << done.message;
  const auto integers = program.values<int64_t>(pi, kCount);
  const auto doubles = program.values<double>(pd, kCount);
  const auto steps = program.values<uint32_t>(ps, kCount);
  const auto sorted = program.values<float>(pf, kCount);
  for (int i = 0; i < kCount; ++i) {
    const int32_t b = a[(i + 1) % kCount];
    ASSERT_EQ(integers[i], formulas::integers(a[i], b)) << i;
    const double wanted = formulas::doubles(a[i] * 1e-3, b * 1e-6);
    ASSERT_NEAR(doubles[i], wanted, std::fabs(wanted) * 1e-12 + 1e-9) << i;  // nvcc fuses
    ASSERT_EQ(steps[i], formulas::collatz(static_cast<uint32_t>(a[i]) & 0xffff)) << i;
    ASSERT_EQ(sorted[i], formulas::local_array(a[i])) << i;
  }
}

TEST_F(DeviceCode, SumsOverWarpsBlocksAndGrid) {
  std::vector<int> values(100'000);
  int wanted = 0;
  for (size_t i = 0; i < values.size(); ++i) wanted += values[i] = static_cast<int>(i % 17);
  const uint64_t pv = program.buffer(values), po = program.device.add(4);
  const Launched done =
      program.run("sum_all", shape(20, 256), pv, static_cast<int>(values.size()), po);
  ASSERT_EQ(done.fault, Fault::none) << done.message;
  EXPECT_EQ(program.values<int>(po, 1)[0], wanted);
}

TEST_F(DeviceCode, MatricesAreMultipliedThroughSharedMemory) {
  constexpr int kSide = 48;
  std::vector<float> a(kSide * kSide), b(kSide * kSide);
  for (int i = 0; i < kSide * kSide; ++i)
    a[i] = static_cast<float>(i % 7), b[i] = static_cast<float>(i % 5);
  const uint64_t pa = program.buffer(a), pb = program.buffer(b),
                 pc = program.device.add(4 * kSide * kSide);
  const Launched done =
      program.run("matrix_product", {{3, 3, 1}, {16, 16, 1}, 0}, pa, pb, pc, kSide);
  ASSERT_EQ(done.fault, Fault::none) << done.message;
  const auto c = program.values<float>(pc, kSide * kSide);
  for (int row = 0; row < kSide; ++row) {
    for (int column = 0; column < kSide; ++column) {
      float sum = 0;
      for (int k = 0; k < kSide; ++k) sum += a[row * kSide + k] * b[k * kSide + column];
      ASSERT_EQ(c[row * kSide + column], sum);
    }
  }
}

TEST_F(DeviceCode, LanesThatWaitForEachOtherEnd) {
  const uint64_t lock = program.device.add(4), value = program.device.add(4);
  Launched done = program.run("locked", shape(3, 96), lock, value);
  ASSERT_EQ(done.fault, Fault::none) << done.message;
  EXPECT_EQ(program.values<int>(value, 1)[0], 3 * 96);
  const uint64_t turn = program.device.add(4), order = program.device.add(4 * 64);
  done = program.run("relay", shape(1, 64), turn, order);
  ASSERT_EQ(done.fault, Fault::none) << done.message;
  for (int i = 0; i < 64; ++i) EXPECT_EQ(program.values<int>(order, 64)[i], i * i);
}

TEST_F(DeviceCode, FunctionsRecurseAndAreCalledThroughTables) {
  const uint64_t out = program.device.add(4 * 64);
  Launched done = program.run("recursive", shape(1, 64), out);
  ASSERT_EQ(done.fault, Fault::none) << done.message;
  const auto fibonacci = program.values<int>(out, 64);
  constexpr int kWanted[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144};
  for (int i = 0; i < 64; ++i) EXPECT_EQ(fibonacci[i], kWanted[i % 13]);
  done = program.run("virtual_calls", shape(1, 64), out);
  ASSERT_EQ(done.fault, Fault::none) << done.message;
  const auto areas = program.values<int>(out, 64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(areas[i], i % 3 == 0 ? i : i * i);
}

TEST_F(DeviceCode, LanesVoteAndMatch) {
  const uint64_t out = program.device.add(4 * 32);
  const Launched done = program.run("votes", shape(1, 32), out);
  ASSERT_EQ(done.fault, Fault::none) << done.message;
  const auto got = program.values<uint32_t>(out, 32);
  std::vector<uint32_t> wanted(32);
  for (uint32_t i = 0; i < 32; ++i) {
    uint32_t ballot = 0, match = 0, reversed = 0;
    for (uint32_t k = 0; k < 32; ++k) {
      ballot |= uint32_t{k % 3 == 0} << k;
      match |= uint32_t{k / 5 == i / 5} << k;
      reversed |= (i >> k & 1) << (31 - k);
    }
    uint32_t value = (ballot + 3) ^ match;
    value += static_cast<uint32_t>(std::popcount(value) + std::countl_zero(value | 1)) + reversed +
             (i == 0 ? 0 : static_cast<uint32_t>(std::countr_zero(i)) + 1);
    wanted[i] = value;
  }
  const auto before = wanted;
  for (uint32_t i = 0; i < 32; i += 2) wanted[i] ^= before[(i + 2) % 32];
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(got[i], wanted[i] + 496 + 16) << i;
}

TEST_F(DeviceCode, HalvesRoundAsTheyShould) {
  std::vector<float> in(32);
  for (int i = 0; i < 32; ++i) in[i] = static_cast<float>(i) * 0.37f - 3;
  const uint64_t pi = program.buffer(in), po = program.device.add(4 * 32);
  const Launched done = program.run("halves", shape(1, 32), pi, po, 32);
  ASSERT_EQ(done.fault, Fault::none) << done.message;
  const auto out = program.values<float>(po, 32);
  const auto half = [](double v) { return half_to_float(float_to_half(double_to_odd_float(v))); };
  for (int i = 0; i < 32; ++i) {
    const float a = half(in[i]), b = half(in[i] * 0.3f);
    const float pair = half(static_cast<double>(a) * b + 1.5);
    const float c = bf16_to_float(float_to_bf16(in[i]));
    const float wanted =
        half(a + b) + pair - pair + bf16_to_float(float_to_bf16(c * c)) + (a > b ? 1.0f : 2.0f);
    EXPECT_NEAR(out[i], wanted, 1e-5) << i;
  }
}

TEST_F(DeviceCode, TensorCoresMultiply) {
  std::vector<uint16_t> a(256), b(128);
  for (int i = 0; i < 256; ++i) a[i] = float_to_half(static_cast<float>(i % 11) - 5);
  for (int i = 0; i < 128; ++i) b[i] = float_to_half(static_cast<float>(i % 7) - 3);
  const uint64_t pa = program.buffer(a), pb = program.buffer(b), pc = program.device.add(4 * 128);
  const Launched done = program.run("tensor", shape(1, 32), pa, pb, pc);
  ASSERT_EQ(done.fault, Fault::none) << done.message;
  const auto c = program.values<float>(pc, 128);
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      float sum = 0;
      for (int k = 0; k < 16; ++k)
        sum += half_to_float(a[row * 16 + k]) * half_to_float(b[k * 8 + column]);
      EXPECT_EQ(c[row * 8 + column], sum);
    }
  }
}

TEST_F(DeviceCode, BlocksOfAGridMeet) {
  for (const unsigned workers : {1u, 3u}) {
    program.workers = workers;
    const uint64_t sums = program.device.add(4 * 4);
    const Launched done = program.run("grid_phases", shape(24, 32), sums, 3);
    ASSERT_EQ(done.fault, Fault::none) << done.message;
    const auto got = program.values<int>(sums, 3);
    const int first = 24 * 23 / 2 * 32;
    EXPECT_EQ(got[0], first);
    EXPECT_EQ(got[1], first + 24 * 32 * first);
  }
}

TEST_F(DeviceCode, PrintsAssertsTrapsAndAllocates) {
  Launched done = program.run("prints", shape(1, 2), 3);
  EXPECT_EQ(done.printed,
            "thread 3 of many:  1.50 1099511627776\nthread 3 of many:  1.50 1099511627776\n");
  done = program.run("asserts", shape(1, 2), 0);
  EXPECT_EQ(done.fault, Fault::assertion);
  EXPECT_NE(done.message.find("thread (1,0,0)"), std::string::npos) << done.message;
  EXPECT_NE(done.message.find("x == threadIdx.x"), std::string::npos) << done.message;
  done = program.run("traps", shape(1, 1));
  EXPECT_EQ(done.fault, Fault::trap);
  const uint64_t ok = program.device.add(4 * 32);
  done = program.run("device_heap", shape(1, 32), ok);
  ASSERT_EQ(done.fault, Fault::none) << done.message;
  for (int i = 0; i < 32; ++i) EXPECT_EQ(program.values<int>(ok, 32)[i], 16 * i + 120);
  done = program.run("counts", shape(1, 32));
  ASSERT_EQ(done.fault, Fault::none) << done.message;
  EXPECT_EQ(program.values<unsigned>(program.variables.at("counter"), 1)[0], 16u * 2 + 16 * 4);
}

TEST_F(DeviceCode, WildAndMisalignedAccessesAreFaultsWithAPlace) {
  const uint64_t at = program.device.add(64);
  Launched done = program.run("writes", shape(1, 2), at, 16);
  EXPECT_EQ(done.fault, Fault::illegal_address);
  EXPECT_NE(done.message.find("kernel writes, block (0,0,0), thread (0,0,0), PTX line"),
            std::string::npos)
      << done.message;
  done = program.run("writes", shape(1, 1), at + 2, 0);
  EXPECT_EQ(done.fault, Fault::misaligned_address);
  done = program.run("writes", shape(1, 1), uint64_t{0}, 0);
  EXPECT_EQ(done.fault, Fault::illegal_address);
}

// Of the module or of the function, in shared or in global memory.
TEST(Names, WithAnOffsetAreThatPlaceInEverySpace) {
  Program program(R"(.version 8.0
.target sm_80
.address_size 64
.shared .align 8 .b8 outer[64];
.visible .global .align 8 .b8 bytes[64];
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<12>;
  .reg .b64 %rd<3>;
  .shared .align 8 .b8 inner[64];
  ld.param.u64 %rd1, [out];
  st.shared.u32 [outer], 1;
  st.shared.u32 [outer+32], 2;
  st.shared.u32 [inner], 3;
  st.shared.u32 [inner+32], 4;
  st.global.u32 [bytes], 5;
  st.global.u32 [bytes+32], 6;
  mov.u32 %r7, outer+32;
  ld.shared.u32 %r8, [%r7];
  ld.shared.u32 %r1, [outer];
  ld.shared.u32 %r2, [outer+32];
  ld.shared.u32 %r3, [inner];
  ld.shared.u32 %r4, [inner+32];
  ld.global.u32 %r5, [bytes];
  ld.global.u32 %r6, [bytes+32];
  st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};
  st.global.v4.u32 [%rd1+16], {%r5, %r6, %r8, %r8};
  ret;
}
)");
  ASSERT_EQ(program.error, "");
  const uint64_t out = program.device.add(32);
  const Launched done = program.run("k", shape(1, 1), out);
  ASSERT_EQ(done.fault, Fault::none) << done.message;
  EXPECT_EQ(program.values<uint32_t>(out, 8), (std::vector<uint32_t>{1, 2, 3, 4, 5, 6, 2, 2}));
}

// A block that waits for itself keeps its worker; one that waits for others gives it up.
TEST(Turns, AreGivenUpForOthersNotForTheBlocksOwnBarriers) {
  Program program(R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry meets()
{
  .reg .pred %p<2>;
  .reg .b32 %r<2>;
  mov.u32 %r1, 0;
LOOP:
  bar.sync 0;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, 10;
  @%p1 bra LOOP;
  ret;
}
.visible .entry waits(.param .u64 word)
{
  .reg .pred %p<3>;
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [word];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra DONE;
LOOP:
  ld.volatile.global.u32 %r2, [%rd1];
  setp.eq.u32 %p2, %r2, 0;
  @%p2 bra LOOP;
DONE:
  bar.sync 0;
  ret;
}
)");
  ASSERT_EQ(program.error, "");
  const uint64_t word = program.device.add(4);
  for (const char* name : {"meets", "waits"}) {
    const auto kernel = program.kernel(name);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    Grid grid;
    grid.kernel = *kernel;
    grid.shape.block[0] = 128;
    grid.parameters.resize((*kernel)->parameter_bytes);
    if (!grid.parameters.empty()) std::memcpy(grid.parameters.data(), &word, sizeof(word));
    grid.device = &program.device;
    grid.blocks = 1;
    const std::atomic<uint64_t> forgotten{1};
    Lookups lookups;
    lookups.forgotten = &forgotten;
    Block block;
    block.lookups = &lookups;
    block.begin(grid, 0);
    if (name == std::string("meets")) {
      EXPECT_EQ(block.run(), Block::Outcome::ended);
      continue;
    }
    Block::Outcome outcome = block.run();
    EXPECT_EQ(outcome, Block::Outcome::spun);
    *program.device.at(word) = 1;
    for (int turn = 0; turn < 100 && outcome != Block::Outcome::ended; ++turn)
      outcome = block.run();
    EXPECT_EQ(outcome, Block::Outcome::ended);
  }
}

// A warp that waits for another one's write, with what takes the lanes elsewhere inside its loop.
constexpr const char* kWaiting = R"(.version 8.0
.target sm_80
.address_size 64
.func (.param .b32 back) look(.param .b64 at)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [at];
  ld.volatile.global.u32 %r1, [%rd1];
  st.param.b32 [back+0], %r1;
  ret;
}
.visible .entry by_a_call(.param .u64 word)
{
  .reg .pred %p<3>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [word];
  mov.u32 %r1, %tid.x;
  setp.ge.u32 %p1, %r1, 32;
  @%p1 bra WRITE;
LOOP:
  { .param .b64 a; st.param.b64 [a+0], %rd1; .param .b32 b; call.uni (b), look, (a); ld.param.b32 %r2, [b+0]; }
  setp.eq.u32 %p2, %r2, 0;
  @%p2 bra LOOP;
  ret;
WRITE:
  mov.u32 %r3, 1;
  st.volatile.global.u32 [%rd1], %r3;
  ret;
}
.visible .entry by_going_apart(.param .u64 word)
{
  .reg .pred %p<4>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [word];
  mov.u32 %r1, %tid.x;
  setp.ge.u32 %p1, %r1, 32;
  @%p1 bra WRITE;
  and.b32 %r2, %r1, 1;
  setp.eq.u32 %p2, %r2, 0;
LOOP:
  @%p2 bra EVEN;
  ld.volatile.global.u32 %r3, [%rd1];
  bra MEET;
EVEN:
  ld.volatile.global.u32 %r3, [%rd1];
MEET:
  setp.eq.u32 %p3, %r3, 0;
  @%p3 bra LOOP;
  ret;
WRITE:
  mov.u32 %r4, 1;
  st.volatile.global.u32 [%rd1], %r4;
  ret;
}
)";

TEST(Turns, AreGivenUpByLoopsThatCallOrGoApart) {
  for (const char* kernel : {"by_a_call", "by_going_apart"}) {
    Program program(kWaiting);
    ASSERT_EQ(program.error, "");
    program.workers = 1;
    const uint64_t word = program.buffer(std::vector<uint32_t>{0});
    const Launched done = program.run(kernel, {{1, 1, 1}, {64, 1, 1}, 0}, word);
    EXPECT_EQ(done.fault, Fault::none) << kernel << ": " << done.message;
    EXPECT_EQ(program.values<uint32_t>(word, 1)[0], 1u) << kernel;
  }
}

// Each thread's tid, the warp's size and the device's clock, in registers of 2, 4 and 8 bytes with
// others beside them, for all lanes and for some.
constexpr const char* kSpecials = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 from)
{
  .reg .pred %p<2>;
  .reg .b16 %h<4>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [from];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd2, %r2, 48;
  add.u64 %rd1, %rd1, %rd2;
  setp.lt.u32 %p1, %r2, %r1;
  @%p1 bra DONE;
  mov.u16 %h3, 7;
  mov.u16 %h1, WARP_SZ;
  mov.u16 %h2, %tid.y;
  mov.u64 %rd3, %laneid;
  mov.u64 %rd4, WARP_SZ;
  mov.u64 %rd5, %clock64;
  mov.u32 %r3, %clock_hi;
  mov.u32 %r4, %lanemask_lt;
  st.global.v4.u16 [%rd1], {%h1, %h2, %h3, %h3};
  st.global.v2.u32 [%rd1+8], {%r3, %r4};
  st.global.v2.u64 [%rd1+16], {%rd3, %rd4};
  st.global.u64 [%rd1+32], %rd5;
DONE:
  ret;
}
)";

TEST(SpecialRegisters, FillRegistersOfEveryWidth) {
  struct Seen {
    uint16_t size, tid_y, beside[2];
    uint32_t clock_hi, below;
    uint64_t lane, wide_size, clock, unused;
  };
  Program program(kSpecials);
  ASSERT_EQ(program.error, "");
  program.device.clock_value = 0x1234567890abcdef;
  for (const uint32_t from : {0u, 5u}) {
    const uint64_t out = program.device.add(64 * sizeof(Seen));
    const Launched done = program.run("k", LaunchShape{{1, 1, 1}, {64, 1, 1}, 0}, out, from);
    ASSERT_EQ(done.fault, Fault::none) << done.message;
    const auto seen = program.values<Seen>(out, 64);
    for (uint32_t i = from; i < seen.size(); ++i) {
      SCOPED_TRACE(i);
      EXPECT_EQ(seen[i].size, 32);
      EXPECT_EQ(seen[i].tid_y, 0);
      EXPECT_EQ(seen[i].beside[0], 7);
      EXPECT_EQ(seen[i].lane, i % 32);
      EXPECT_EQ(seen[i].below, (1u << i % 32) - 1);
      EXPECT_EQ(seen[i].wide_size, 32u);
      EXPECT_EQ(seen[i].clock, 0x1234567890abcdefu);
      EXPECT_EQ(seen[i].clock_hi, 0x12345678u);
    }
  }
}

// As they are for elements: all lanes or some, one behind the other or not.
TEST(Vectors, AreLoadedAndStoredWholeInEveryWidth) {
  for (const char* form : {"v2.b32", "v4.b32", "v2.b64", "v4.b16"}) {
    SCOPED_TRACE(form);
    const std::string type = std::string(form).substr(2);  // .b32
    const bool four = form[1] == '4';
    const uint32_t bytes = (four ? 4 : 2) * (type == ".b64" ? 8u : type == ".b32" ? 4u : 2u);
    const std::string names = four ? "{%a, %b, %c, %d}" : "{%a, %b}";
    const std::string swapped = four ? "{%d, %c, %b, %a}" : "{%b, %a}";
    Program program(
        ".version 8.0\n.target sm_80\n.address_size 64\n"
        ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 stride, .param .u32 n)\n{\n"
        ".reg .pred %p;\n.reg .b32 %t, %s, %n;\n.reg .b64 %i, %o, %at;\n.reg " +
        type + " %a, %b, %c, %d;\n" +
        "ld.param.u64 %i, [in];\nld.param.u64 %o, [out];\nld.param.u32 %s, [stride];\n"
        "ld.param.u32 %n, [n];\nmov.u32 %t, %tid.x;\nsetp.ge.u32 %p, %t, %n;\n@%p bra DONE;\n"
        "mul.wide.u32 %at, %t, %s;\nadd.u64 %i, %i, %at;\nadd.u64 %o, %o, %at;\nld.global." +
        form + " " + names + ", [%i];\nst.global." + form + " [%o], " + swapped +
        ";\nDONE:\nret;\n}\n");
    ASSERT_EQ(program.error, "");
    for (const uint32_t n : {32u, 19u}) {
      for (const uint32_t stride : {bytes, 2 * bytes}) {
        std::vector<uint8_t> in(32 * 64);
        for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(i * 7 + i / 256);
        const uint64_t from = program.buffer(in);
        const uint64_t out = program.device.add(in.size());
        const Launched done = program.run("k", shape(1, 32), from, out, stride, n);
        ASSERT_EQ(done.fault, Fault::none) << done.message;
        std::vector<uint8_t> wanted(in.size());
        const uint32_t part = bytes / (four ? 4 : 2);
        for (uint32_t lane = 0; lane < n; ++lane) {
          for (uint32_t k = 0; k < bytes; k += part) {
            std::memcpy(&wanted[lane * stride + bytes - part - k], &in[lane * stride + k], part);
          }
        }
        EXPECT_EQ(program.values<uint8_t>(out, in.size()), wanted) << n << " " << stride;
      }
    }
  }
}

}  // namespace
}  // namespace sealane::ptx
