// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Do the small things everything stands on do what they say?

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cerrno>
#include <cmath>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/log.h"
#include "base/random.h"
#include "base/range.h"
#include "base/registers_for_tests.h"
#include "base/result.h"
#include "base/text.h"
#include "base/time.h"

namespace sealane {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return usage_error(concat(value, " is odd"));
  return value / 2;
}

TEST(Result, HoldsAValueOrAnError) {
  EXPECT_EQ(*half(4), 2);
  const auto error = half(3);
  ASSERT_FALSE(error.ok());
  EXPECT_EQ(error.error().kind, ErrorKind::usage);
  EXPECT_EQ(error.error().message, "3 is odd");
  EXPECT_TRUE(Status().ok());
  EXPECT_FALSE(Status(io_error("x")).ok());
}

TEST(Result, IoErrorsSayWhy) {
  EXPECT_EQ(io_error("cannot open f", ENOENT).message, "cannot open f: No such file or directory");
}

TEST(ResultDeathTest, TakingWhatIsNotThereIsABrokenInvariant) {
  EXPECT_DEATH(static_cast<void>(*half(3)), "value of a Result that holds an error");
  EXPECT_DEATH(static_cast<void>(half(4).error()), "holds a value");
}

TEST(Check, HandlerMayThrowToStepAside) {
  set_check_handler([](const char*, int, const char* what) { throw std::string(what); });
  EXPECT_THROW(SEALANE_CHECK(1 + 1 == 3, "sums"), std::string);
  set_check_handler(nullptr);
}

RC_GTEST_PROP(Bytes, LittleEndianRoundTrips, (uint64_t value)) {
  uint8_t memory[9];
  store_le(memory + 1, value);
  RC_ASSERT(load_le<uint64_t>(memory + 1) == value);
  RC_ASSERT(memory[1] == static_cast<uint8_t>(value));
}

RC_GTEST_PROP(Bytes, ConstantTimeEqualIsEquality,
              (std::vector<uint8_t> a, std::vector<uint8_t> b)) {
  RC_ASSERT(constant_time_equal(a, b) == (a == b));
  RC_ASSERT(constant_time_equal(a, std::vector<uint8_t>(a)));
}

TEST(Bytes, WipeLeavesZeros) {
  std::vector<uint8_t> secret(100, 7);
  wipe(secret);
  EXPECT_EQ(secret, std::vector<uint8_t>(100, 0));
  wipe({});
}

#ifdef __x86_64__
// libc copies through whichever registers it likes best, by the size.
TEST(Bytes, WipeLeavesNothingInVectorRegisters) {
  const auto read = VectorRegisters::way_to_read();
  VectorRegisters before, after;
  for (size_t bytes = 16; bytes <= 4096; bytes *= 2) {
    const std::vector<uint8_t> source(bytes, 7);
    std::vector<uint8_t> secret(bytes);
    std::memcpy(secret.data(), source.data(), bytes);
    (before.*read)();
    wipe(secret);
    (after.*read)();
    EXPECT_GT(before.used(), 0u) << bytes << ": nothing was there to be cleared";
    EXPECT_EQ(after.used(), 0u) << bytes;
  }
}
#endif

TEST(SeededRandom, OneSeedOneSequence) {
  SeededRandom a(42);
  SeededRandom b(42);
  SeededRandom c(43);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const uint64_t value = a.next();
    EXPECT_EQ(value, b.next());
    differs |= value != c.next();
  }
  EXPECT_TRUE(differs);
}

TEST(SeededRandom, BelowIsFairAndInRange) {
  SeededRandom random(1);
  std::vector<int> counts(10);
  for (int i = 0; i < 100'000; ++i) ++counts.at(random.below(10));
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);  // five standard deviations
}

TEST(SystemRandom, FillsDifferently) {
  std::vector<uint8_t> a(64);
  std::vector<uint8_t> b(64);
  SystemRandom random;
  random.fill(a);
  random.fill(b);
  EXPECT_NE(a, b);
}

TEST(SteadyClock, DoesNotGoBack) {
  const SteadyClock clock;
  const Instant earlier = clock.now();
  EXPECT_LE(earlier, clock.now());
}

std::string logged;

TEST(Log, IsSilentUnlessAskedAndOneLinePerCall) {
  set_log_sink([](LogLevel, std::string_view line) { logged += line; });
  set_log_level(LogLevel::warn);
  SEALANE_LOG(info, "not %s", "shown");
  EXPECT_EQ(logged, "");
  SEALANE_LOG(warn, "lane %d", 3);
  EXPECT_TRUE(logged.starts_with("sealane["));
  EXPECT_TRUE(logged.ends_with(" WARN lane 3\n"));
  logged.clear();
  SEALANE_LOG(warn, "%s", std::string(5000, 'x').c_str());
  EXPECT_TRUE(logged.ends_with("x\n")) << "a long line is cut, not lost";
  EXPECT_EQ(std::count(logged.begin(), logged.end(), '\n'), 1);
  set_log_sink(nullptr);
  set_log_level(LogLevel::silent);
}

// Lengths are a program's, and may be whatever it computed.
TEST(Range, KnowsWhereItEndsAlsoIfThatIsBeyondAllAddresses) {
  const Range block{0x7000, 0x1000};
  EXPECT_TRUE(block.contains({0x7000, 0x1000}));
  EXPECT_TRUE(block.contains({0x7fff, 1}));
  EXPECT_FALSE(block.contains({0x7fff, 2}));
  EXPECT_FALSE(block.contains({0x6fff, 2}));
  for (const uint64_t less : {uint64_t{1}, uint64_t{0x40}, uint64_t{1} << 63}) {
    const Range endless{0x7040, uint64_t{0} - less};
    EXPECT_FALSE(block.contains(endless)) << less;
    EXPECT_TRUE(block.overlaps(endless)) << less;
    EXPECT_TRUE(endless.overlaps(block)) << less;
  }
  EXPECT_TRUE(block.overlaps({0x6000, 0x1001}));
  EXPECT_FALSE(block.overlaps({0x6000, 0x1000}));
  EXPECT_FALSE(block.overlaps({0x8000, 1}));
  EXPECT_TRUE(block.overlaps({0x7fff, 1}));
}

}  // namespace
}  // namespace sealane
