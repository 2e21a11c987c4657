// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Are instructions that SEALANE_CPU hides really not executed? A child seals and opens with every
// engine that is left, and is followed instruction by instruction (ptrace): each is looked at, in
// our code and in ipsec-mb's, before it runs. libc and libcrypto choose for themselves and are not
// looked at.

#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "seal/delivery.h"
#include "seal/engine.h"
#include "seal/openssl.h"
#include "seal/stream_copy.h"

#ifdef __x86_64__

namespace sealane {
namespace {

struct Seen {
  uint64_t steps = 0;
  uint64_t avx512 = 0;    // EVEX
  uint64_t wide_aes = 0;  // VAES or VPCLMULQDQ on 256 bits or more
  uint64_t any_aes = 0;   // on whatever width
  bool finished = false;
};

// Prefixes of VEX and EVEX mean nothing else in 64-bit mode.
void look_at(const uint8_t* code, Seen& seen) {
  const bool evex = code[0] == 0x62;
  if (evex) ++seen.avx512;
  if (!evex && code[0] != 0xc4) return;  // the short VEX has no AES
  const unsigned map = code[1] & (evex ? 0x07 : 0x1f);
  const bool wide = evex ? (code[3] & 0x60) != 0 : (code[2] & 0x04) != 0;
  const uint8_t opcode = code[evex ? 4 : 3];
  const bool aes = map == 2 && opcode >= 0xdc && opcode <= 0xdf;
  const bool product = map == 3 && opcode == 0x44;
  if (!aes && !product) return;
  ++seen.any_aes;
  if (wide) ++seen.wide_aes;
}

// Where code lies that chooses by itself.
bool of_others(const std::string& path) {
  for (const char* name : {"/libc.so", "/ld-linux", "/libcrypto", "/libm.so", "/libstdc++",
                           "/libasan", "/libtsan", "[vdso]"}) {
    if (path.find(name) != std::string::npos) return true;
  }
  return false;
}

struct Area {
  uint64_t begin, end;
};

std::vector<Area> areas_of_others(pid_t child) {
  std::vector<Area> areas;
  std::ifstream maps("/proc/" + std::to_string(child) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    if (!of_others(line)) continue;
    Area area{};
    std::sscanf(line.c_str(), "%lx-%lx", &area.begin, &area.end);
    areas.push_back(area);
  }
  return areas;
}

bool stops(pid_t child, int signal) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFSTOPPED(status) && WSTOPSIG(status) == signal;
}

// From where it stops itself to where it does so again.
Seen follow(pid_t child) {
  Seen seen;
  if (!stops(child, SIGTRAP)) return seen;  // it has become another program
  ptrace(PTRACE_CONT, child, nullptr, nullptr);
  if (!stops(child, SIGSTOP)) return seen;
  const std::vector<Area> others = areas_of_others(child);
  constexpr uint64_t kStepsMax = 3'000'000;
  while (seen.steps < kStepsMax) {
    user_regs_struct registers{};
    if (ptrace(PTRACE_GETREGS, child, nullptr, &registers) != 0) return seen;
    bool ours = true;
    for (const Area& area : others) ours &= registers.rip < area.begin || registers.rip >= area.end;
    if (ours) {
      const long word = ptrace(PTRACE_PEEKTEXT, child, registers.rip, nullptr);
      look_at(reinterpret_cast<const uint8_t*>(&word), seen);
    }
    ++seen.steps;
    if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0) return seen;
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return seen;
    seen.finished = WSTOPSIG(status) == SIGSTOP;
    if (seen.finished) break;
  }
  return seen;
}

// Everything of this room that depends on the CPU, once. Short: every instruction is a stop.
void use_everything() {
  constexpr size_t kBytes = 700;
  const std::array<uint8_t, Key::kBytes> secret{};
  std::vector<uint8_t> plain(kBytes), sealed(kBytes), sum(kBytes);
  Tag tag;
  for (const Engine* engine : all_engines()) {
    if (!engine->available() || engine == &openssl_engine()) continue;
    const auto aead = engine->make(*Key::from_bytes(secret));
    aead->seal(Iv{}, {}, plain, sealed, tag);
    const Delivery delivery = {Bytes(plain).first(512),      Bytes(sealed).first(512),
                               ElementType::float32,         ReduceOperator::sum,
                               MutableBytes(sum).first(512), true};
    if (!aead->open(Iv{}, {}, sealed, tag, plain, delivery)) _exit(1);
  }
  stream_copy(plain, sealed);
}

// The features are read once, so the child is a program of its own: this one, at the test below.
Seen look(const char* hidden) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("SEALANE_CPU", hidden, 1);
    unsetenv("GTEST_TOTAL_SHARDS");  // the child runs one test, whatever share its parent has
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    execl("/proc/self/exe", "seal_test", "--gtest_filter=HiddenInstructions.DISABLED_Child",
          "--gtest_also_run_disabled_tests", nullptr);
    _exit(1);
  }
  const Seen seen = follow(child);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(seen.finished) << "the child did not come through '" << hidden << "'";
  EXPECT_GT(seen.steps, 1000u);
  return seen;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

TEST(HiddenInstructions, DISABLED_Child) {
  for (const Engine* engine : all_engines()) static_cast<void>(engine->available());
  raise(SIGSTOP);
  use_everything();
  raise(SIGSTOP);
  _exit(0);
}

struct Allowed {
  bool avx512, wide_aes, any_aes;
};

void look_without(const char* hidden, Allowed allowed) {
  const Seen seen = look(hidden);
  EXPECT_TRUE(allowed.avx512 || seen.avx512 == 0) << hidden;
  EXPECT_TRUE(allowed.wide_aes || seen.wide_aes == 0) << hidden;
  EXPECT_TRUE(allowed.any_aes || seen.any_aes == 0) << hidden;
}

TEST(HiddenInstructions, AreNotExecuted) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own code would be stepped through";
  look_without("-avx512", {false, true, true});
  look_without("-avx512,-vaes", {false, false, true});
  look_without("-avx2", {false, false, true});
  look_without("-aes", {true, false, false});  // copies may stay wide
}

// The test above can fail.
TEST(HiddenInstructions, AreSeenWhereTheyAreNotHidden) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own code would be stepped through";
  const Seen seen = look("");
  const auto present = [](CpuFeature feature) {
    return cpu_features()[static_cast<size_t>(feature)].present;
  };
  EXPECT_TRUE(seen.any_aes > 0 || !present(CpuFeature::aes));
  EXPECT_TRUE(seen.wide_aes > 0 || !present(CpuFeature::vaes));
  EXPECT_TRUE(seen.avx512 > 0 || !present(CpuFeature::avx512));
}

}  // namespace
}  // namespace sealane

#endif
