// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "workload/patterns.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "workload/program_checker.h"

namespace sealane::workload {
namespace {

constexpr uint64_t kBulk = 128_KiB;

std::vector<Range> bulk(const Program& program, Direction direction) {
  std::vector<Range> ranges;
  for (const Operation& operation : program) {
    const auto* copy = std::get_if<Copy>(&operation.action);
    if (copy != nullptr && copy->direction == direction && copy->host.bytes >= kBulk) {
      ranges.push_back(copy->host);
    }
  }
  return ranges;
}

template <typename Kind>
size_t count(const Program& program) {
  return static_cast<size_t>(std::count_if(program.begin(), program.end(), [](const Operation& o) {
    return std::holds_alternative<Kind>(o.action);
  }));
}

RC_GTEST_PROP(Patterns, AreProgramsAndDependOnTheSeedAlone, (uint64_t seed)) {
  PatternOptions options;
  options.seed = seed;
  options.steps = *rc::gen::inRange(1u, 5u);
  options.buffers = *rc::gen::inRange(1u, 9u);
  options.buffer_bytes = 4096 * *rc::gen::inRange<uint64_t>(1, 300);
  for (const Pattern pattern : patterns()) {
    const Program program = make_pattern(pattern, options);
    RC_ASSERT(program == make_pattern(pattern, options));
    ProgramChecker checker;
    for (const Operation& operation : program) {
      const Status status = checker.check(operation);
      if (!status) RC_FAIL(status.error().message);
    }
    RC_ASSERT(count<Launch>(program) > 0u);
  }
}

TEST(Patterns, RepetitionRepeats) {
  const auto copies = bulk(make_pattern(Pattern::repetition, {}), Direction::to_device);
  ASSERT_EQ(copies.size(), 160u);
  for (size_t i = 16; i < copies.size(); ++i) EXPECT_EQ(copies[i], copies[i - 16]);
  EXPECT_EQ(std::set(copies.begin(), copies.end()).size(), 16u);
}

TEST(Patterns, ForwardThenBackward) {
  const auto copies = bulk(make_pattern(Pattern::forward_backward, {}), Direction::to_device);
  ASSERT_EQ(copies.size(), 320u);
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(copies[i], copies[31 - i]);
}

TEST(Patterns, TwoLoopsTakeTurns) {
  const auto copies = bulk(make_pattern(Pattern::interleaved, {}), Direction::to_device);
  for (size_t i = 32; i < copies.size(); i += 2) EXPECT_EQ(copies[i], copies[i - 32]);
  for (size_t i = 23; i < copies.size(); i += 2) EXPECT_EQ(copies[i], copies[i - 22]);
}

// What a step swapped out, and what it brought back.
TEST(Patterns, SwapsComeBackInOrderOrReversed) {
  for (const Pattern pattern : {Pattern::fifo, Pattern::lifo}) {
    PatternOptions options;
    options.steps = 1;
    const Program program = make_pattern(pattern, options);
    const auto out = bulk(program, Direction::to_host);
    auto in = bulk(program, Direction::to_device);
    if (pattern == Pattern::lifo) std::reverse(in.begin(), in.end());
    EXPECT_GE(out.size(), 8u);
    EXPECT_EQ(out, in) << to_string(pattern);
  }
}

TEST(Patterns, ControlCopiesComeInBetween) {
  PatternOptions options;
  const Program program = make_pattern(Pattern::control, options);
  EXPECT_EQ(bulk(program, Direction::to_device),
            bulk(make_pattern(Pattern::repetition, options), Direction::to_device));
  EXPECT_EQ(count<Copy>(program), 160u * 4);
  options.seed = 2;
  EXPECT_NE(program, make_pattern(Pattern::control, options));
}

// As CUDA asks of programs with pinned memory: else what arrives is nobody's fault but theirs.
TEST(Patterns, ControlCopiesAreDoneBeforeTheirSourceIsWrittenAgain) {
  std::vector<Range> unfinished;
  PatternOptions options;
  options.steps = 200;
  for (const Operation& operation : make_pattern(Pattern::control, options)) {
    if (std::holds_alternative<SyncStream>(operation.action)) unfinished.clear();
    if (const auto* copy = std::get_if<Copy>(&operation.action)) unfinished.push_back(copy->host);
    const auto* write = std::get_if<WriteHost>(&operation.action);
    if (write == nullptr) continue;
    for (const Range& source : unfinished) {
      ASSERT_FALSE(source.overlaps(write->range)) << source.address;
    }
  }
}

TEST(Patterns, SequentialIsOneRange) {
  const auto copies = bulk(make_pattern(Pattern::sequential, {}), Direction::to_device);
  for (size_t i = 1; i < copies.size(); ++i) EXPECT_EQ(copies[i].address, copies[i - 1].end());
}

TEST(Patterns, RewritingWritesWhatItCopiesNext) {
  const Program program = make_pattern(Pattern::rewriting, {});
  Range written;
  for (const Operation& operation : program) {
    if (const auto* write = std::get_if<WriteHost>(&operation.action)) written = write->range;
    const auto* copy = std::get_if<Copy>(&operation.action);
    if (copy != nullptr) {
      EXPECT_EQ(copy->host, written);
    }
  }
}

TEST(Patterns, EachHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const Pattern pattern : patterns()) names.insert(to_string(pattern));
  EXPECT_EQ(names.size(), patterns().size());
  EXPECT_FALSE(names.contains("unknown"));
}

}  // namespace
}  // namespace sealane::workload
