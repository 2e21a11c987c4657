// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Are races for shared memory and reads before writes told, and nothing else?

#include <algorithm>

#include "harness.h"

namespace sealane::ptx {
namespace {

// Thread i writes word i, thread i then reads word (i + 32) % 64 behind whatever `between` is.
std::string exchange(const std::string& between) {
  return R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<3>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<5>;
  .shared .align 8 .b8 words[256];
  .shared .align 8 .b64 object;
  .shared .align 4 .b32 flag;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, words;
  add.u32 %r4, %r3, %r2;
)" + between +
         R"(
  add.u32 %r5, %r1, 32;
  and.b32 %r5, %r5, 63;
  shl.b32 %r5, %r5, 2;
  add.u32 %r5, %r3, %r5;
  ld.shared.u32 %r6, [%r5];
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r6;
  ret;
}
)";
}

constexpr const char* kWrite = "  st.shared.u32 [%r4], %r1;\n";
constexpr const char* kObject =
    "  setp.ne.u32 %p1, %r1, 0;\n"
    "  @%p1 bra MADE;\n"
    "  mbarrier.init.shared.b64 [object], 64;\n"
    "MADE:\n"
    "  bar.sync 0;\n";
constexpr const char* kObjectMeets =
    "  mbarrier.arrive.shared.b64 %rd4, [object];\n"
    "WAIT:\n"
    "  mbarrier.test_wait.shared.b64 %p2, [object], %rd4;\n"
    "  @!%p2 bra WAIT;\n";

Launched run_checked(const std::string& text, Checks checks, std::vector<std::string>* reports) {
  Program program(text);
  EXPECT_EQ(program.error, "");
  auto kernel = program.kernel("k");
  if (!kernel) return {Fault::unsupported, kernel.error().message, {}, {}};
  Grid grid;
  grid.kernel = *kernel;
  grid.parameters.resize(8);
  const uint64_t out = program.device.add(256);
  std::memcpy(grid.parameters.data(), &out, 8);
  grid.checks = checks;
  const Launched done = program.finish(grid, {{1, 1, 1}, {64, 1, 1}, 0});
  *reports = grid.reports;
  return done;
}

struct Case {
  const char* what;
  std::string between;
  const char* told;  // nullptr: nothing
};

TEST(Checks, TellRacesAndReadsBeforeWritesAndNothingElse) {
  const std::string write = kWrite;
  const Case cases[] = {
      {"nothing between", write, "nothing orders the two"},
      {"a barrier", write + "  bar.sync 0;\n", nullptr},
      {"a named barrier", write + "  barrier.sync 3, 64;\n", nullptr},
      {"a barrier of each warp", write + "  bar.warp.sync 0xffffffff;\n", "nothing orders the two"},
      {"a barrier object", kObject + write + kObjectMeets, nullptr},
      {"nobody writes", "  bar.sync 0;\n", "which nobody has written"},
      {"an atomic counter",
       write + "  atom.shared.add.u32 %r7, [flag], 1;\n"
               "SPIN:\n"
               "  atom.shared.cas.b32 %r8, [flag], 64, 64;\n"
               "  setp.lt.u32 %p1, %r8, 64;\n"
               "  @%p1 bra SPIN;\n",
       nullptr},
  };
  for (const Case& one : cases) {
    std::vector<std::string> reports;
    const Launched done = run_checked(exchange(one.between), {true, true}, &reports);
    ASSERT_EQ(done.fault, Fault::none) << one.what << ": " << done.message;
    if (one.told == nullptr) {
      EXPECT_EQ(reports.size(), 0u) << one.what << ": " << reports.front();
    } else {
      const auto told = std::find_if(reports.begin(), reports.end(), [&](const std::string& line) {
        return line.find(one.told) != std::string::npos &&
               line.find("PTX line") != std::string::npos;
      });
      EXPECT_NE(told, reports.end()) << one.what;
    }
  }
}

TEST(Checks, AreOffUnlessAskedFor) {
  std::vector<std::string> reports;
  run_checked(exchange(kWrite), {}, &reports);
  EXPECT_TRUE(reports.empty());
  run_checked(exchange(kWrite), {true, false}, &reports);
  for (const std::string& line : reports) {
    EXPECT_EQ(line.find("nothing orders"), std::string::npos) << line;
  }
  run_checked(exchange(kWrite), {false, true}, &reports);
  for (const std::string& line : reports) {
    EXPECT_EQ(line.find("nobody has written"), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace sealane::ptx
