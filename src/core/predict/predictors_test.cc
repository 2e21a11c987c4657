// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What does each contestant guess after a short story? Ranges are written as letters of one size;
// capitals are copies to the host.
#include <gtest/gtest.h>

#include <cctype>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "core/predict/interleaved.h"
#include "core/predict/markov.h"
#include "core/predict/repetition.h"
#include "core/predict/sequential.h"
#include "core/predict/swap_order.h"

namespace sealane {
namespace {

constexpr uint64_t kBlock = 1_MiB;

// Letters lie far apart and in no order of memory.
Range place_of(char letter) {
  const auto number = static_cast<uint64_t>(letter - 'a');
  return {(number * 7 % 26 + 1) * 1_GiB, kBlock};
}

char letter_at(const Range& range) {
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    if (place_of(letter) == range) return letter;
  }
  return '?';
}

class Story : public ::testing::Test {
 protected:
  // Blanks are for the reader.
  void tell(Predictor& predictor, std::string_view story) {
    for (const char c : story) {
      if (c == ' ') continue;
      const bool out = std::isupper(static_cast<unsigned char>(c)) != 0;
      const char letter = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      predictor.observe({out ? Direction::to_host : Direction::to_device, place_of(letter)});
    }
  }

  std::string next(const Predictor& predictor, size_t count) {
    std::vector<Guess> guesses(count);
    guesses.resize(predictor.predict(guesses));
    std::string letters;
    for (const Guess& guess : guesses) letters += letter_at(guess.host);
    return letters;
  }

  BufferTable buffers_{1024};
};

TEST_F(Story, RepetitionTrustsALoopFromItsThirdRound) {
  Repetition predictor(buffers_, 1024);
  tell(predictor, "abcd");
  EXPECT_EQ(next(predictor, 4), "");
  tell(predictor, "abcd ab");
  EXPECT_EQ(next(predictor, 6), "cdabcd") << "around the end, as often as asked";
}

TEST_F(Story, RepetitionKnowsTheWayBack) {
  Repetition predictor(buffers_, 1024);
  tell(predictor, "abcd dcba abcd dcba abc");
  EXPECT_EQ(next(predictor, 8), "ddcbaabc");
  tell(predictor, "dd");
  EXPECT_EQ(next(predictor, 4), "cbaa");
}

TEST_F(Story, RepetitionCountsTheRoundsOfAnInnerLoop) {
  Repetition predictor(buffers_, 1024);
  tell(predictor, "x ababab y  x ababab y  x ababab y  x abab");
  EXPECT_EQ(next(predictor, 4), "abyx");
  tell(predictor, "ab");
  EXPECT_EQ(next(predictor, 2), "yx");
}

TEST_F(Story, RepetitionDoesNotHearWhatNeverRecurs) {
  Repetition predictor(buffers_, 1024);
  tell(predictor, "ab m c n d  o abc p d q  a r b");
  EXPECT_EQ(next(predictor, 4), "cdab");
}

TEST_F(Story, RepetitionIncludesCopiesToTheHostButDoesNotGuessThem) {
  Repetition predictor(buffers_, 1024);
  tell(predictor, "abXcY abXcY abXcY a");
  EXPECT_EQ(next(predictor, 4), "bcab");
}

TEST_F(Story, RepetitionBySizeIgnoresControlBuffersThatRecurAtRandom) {
  Repetition joint(buffers_, 1024), by_size(buffers_, 1024, Repetition::Split::by_size);
  SeededRandom random(1);
  for (const char letter : std::string("abcdabcdabcdabcdabcdabcdab")) {
    for (int i = 0; i < 3; ++i) {
      const Transfer control{Direction::to_device, {64_GiB + random.below(16) * 4_KiB, 4_KiB}};
      joint.observe(control);
      by_size.observe(control);
    }
    tell(joint, {&letter, 1});
    tell(by_size, {&letter, 1});
  }
  EXPECT_EQ(next(by_size, 4), "cdab");
  EXPECT_NE(next(joint, 4), "cdab");
}

TEST_F(Story, InterleavedFollowsEachLoopAtItsPace) {
  const std::string first = "abcdefghijklmnop", second = "qrstuvwxyz";
  Interleaved predictor(buffers_, 1024);
  SeededRandom random(1);
  size_t in_first = 0, in_second = 0;
  const auto step = [&] {
    return random.chance(0.6) ? first[in_first++ % 16] : second[in_second++ % 10];
  };
  for (int i = 0; i < 2000; ++i) tell(predictor, std::string(1, step()));
  std::string of_first, of_second;
  for (const char letter : next(predictor, 8)) (letter < 'q' ? of_first : of_second) += letter;
  EXPECT_GE(of_first.size(), 3u);
  EXPECT_GE(of_second.size(), 2u);
  for (const char letter : of_first) EXPECT_EQ(letter, first[in_first++ % 16]);
  for (const char letter : of_second) EXPECT_EQ(letter, second[in_second++ % 10]);
}

TEST(TurnOrder, LearnsWhoFollowsWhom) {
  TurnOrder order;
  EXPECT_EQ(order.expected(order.context()), TurnOrder::kNumbers);
  constexpr uint32_t kTurns[] = {0, 0, 0, 1, 1};
  for (size_t i = 0; i < 200; ++i) order.observe(kTurns[i % 5]);
  TurnOrder::Context context = order.context();
  for (size_t i = 200; i < 210; ++i) {
    EXPECT_EQ(order.expected(context), kTurns[i % 5]);
    context = TurnOrder::push(context, kTurns[i % 5]);
  }
  order.observe(5);
  EXPECT_EQ(order.expected(order.context()), TurnOrder::kNumbers);
}

TEST_F(Story, FifoReturnsTheOldest) {
  SwapOrder predictor(buffers_, SwapOrder::Order::fifo);
  tell(predictor, "ABCD a");
  EXPECT_EQ(next(predictor, 8), "bcd");
}

TEST_F(Story, LifoReturnsTheNewest) {
  SwapOrder predictor(buffers_, SwapOrder::Order::lifo);
  tell(predictor, "ABCD d E");
  EXPECT_EQ(next(predictor, 8), "ecba");
}

TEST_F(Story, LifoGroupedReturnsTheNewestRequestInItsOrder) {
  SwapOrder predictor(buffers_, SwapOrder::Order::lifo_grouped);
  tell(predictor, "ABC vwxyz DEF");  // five others between two requests
  EXPECT_EQ(next(predictor, 8), "defabc");
  tell(predictor, "d");
  EXPECT_EQ(next(predictor, 8), "efabc");
  tell(predictor, "ef");
  EXPECT_EQ(next(predictor, 8), "abc");
}

TEST_F(Story, LifoGroupedCutsARunWhereAReturnBegins) {
  SwapOrder predictor(buffers_, SwapOrder::Order::lifo_grouped);
  tell(predictor, "ABCDEF d");  // one run, but the return shows that it was two requests
  EXPECT_EQ(next(predictor, 8), "efabc");
}

TEST_F(Story, SwapsDoNotWaitForWhatNeverReturns) {
  SwapOrder predictor(buffers_, SwapOrder::Order::lifo);
  const Transfer tokens{Direction::to_host, {90_GiB, 4_KiB}};
  for (const char letter : std::string("ABCDEFGHhgfed")) {
    tell(predictor, {&letter, 1});
    predictor.observe(tokens);
  }
  EXPECT_EQ(next(predictor, 8), "cba");
}

TEST_F(Story, MarkovLearnsFromTheFirstRound) {
  Markov predictor(buffers_, 1024);
  tell(predictor, "abcd ab");
  EXPECT_EQ(next(predictor, 3), "cda");
}

TEST_F(Story, MarkovUsesUpToThreeCopiesOfContext) {
  Markov predictor(buffers_, 1024);
  tell(predictor, "abcx dbcy abcx dbcy abc");
  EXPECT_EQ(next(predictor, 1), "x");
}

TEST_F(Story, NobodyGuessesWhatWasFreed) {
  const std::string story = "abcd abcd abcd ABCD";
  std::vector<std::unique_ptr<Predictor>> predictors;
  predictors.push_back(std::make_unique<Repetition>(buffers_, 1024));
  predictors.push_back(std::make_unique<Interleaved>(buffers_, 1024));
  predictors.push_back(std::make_unique<SwapOrder>(buffers_, SwapOrder::Order::fifo));
  predictors.push_back(std::make_unique<SwapOrder>(buffers_, SwapOrder::Order::lifo_grouped));
  predictors.push_back(std::make_unique<Markov>(buffers_, 1024));
  for (const auto& predictor : predictors) {
    tell(*predictor, story);
    predictor->forget({place_of('c').address + 5, 1});
    EXPECT_EQ(next(*predictor, 8).find('c'), std::string::npos) << predictor->name();
  }
}

std::vector<Range> next_ranges(const Predictor& predictor, size_t count) {
  std::vector<Guess> guesses(count);
  guesses.resize(predictor.predict(guesses));
  std::vector<Range> ranges;
  for (const Guess& guess : guesses) ranges.push_back(guess.host);
  return ranges;
}

constexpr Range kAllMemory{0, UINT64_MAX};

TEST(Sequential, GoesOnBehindTheLast) {
  Sequential predictor;
  predictor.allow(kAllMemory);
  predictor.observe({Direction::to_device, {1000, 100}});
  EXPECT_EQ(next_ranges(predictor, 2), std::vector<Range>{});
  predictor.observe({Direction::to_device, {1100, 100}});
  EXPECT_EQ(next_ranges(predictor, 2), (std::vector<Range>{{1200, 100}, {1300, 100}}));
  predictor.observe({Direction::to_device, {1200, 40}});
  EXPECT_EQ(next_ranges(predictor, 1), (std::vector<Range>{{1240, 40}}));
}

TEST(Sequential, NeverLeavesTheAllocation) {
  Sequential predictor;
  for (uint64_t i = 0; i < 4; ++i) predictor.observe({Direction::to_device, {1000 + 100 * i, 100}});
  EXPECT_EQ(next_ranges(predictor, 8), std::vector<Range>{});
  predictor.allow({1000, 650});
  EXPECT_EQ(next_ranges(predictor, 8), (std::vector<Range>{{1400, 100}, {1500, 100}}));
  predictor.forget({1599, 1});
  EXPECT_EQ(next_ranges(predictor, 8), (std::vector<Range>{{1400, 100}}));
}

TEST(Sequential, LearnsStridesUpAndDown) {
  Sequential predictor;
  predictor.allow(kAllMemory);
  for (uint64_t i = 0; i < 3; ++i) predictor.observe({Direction::to_device, {9000 - 300 * i, 100}});
  EXPECT_EQ(next_ranges(predictor, 2), (std::vector<Range>{{8100, 100}, {7800, 100}}));
}

TEST(Sequential, EndsWithTheAddressSpaceAndAtFreedMemory) {
  Sequential up, down, freed;
  for (Sequential* each : {&up, &down, &freed}) each->allow(kAllMemory);
  const uint64_t last = UINT64_MAX - 250;
  for (uint64_t i = 0; i < 2; ++i) up.observe({Direction::to_device, {last + 100 * (i - 1), 100}});
  EXPECT_EQ(next_ranges(up, 8), (std::vector<Range>{{last + 100, 100}}));
  for (uint64_t i = 0; i < 3; ++i) down.observe({Direction::to_device, {350 - 100 * i, 100}});
  EXPECT_EQ(next_ranges(down, 8), (std::vector<Range>{{50, 100}}));
  for (uint64_t i = 0; i < 3; ++i) freed.observe({Direction::to_device, {100 * i, 100}});
  freed.forget({450, 10});
  EXPECT_EQ(next_ranges(freed, 8), (std::vector<Range>{{300, 100}}));
}

TEST(Sequential, KeepsSeveralStreamsApart) {
  Sequential predictor;
  predictor.allow(kAllMemory);
  for (uint64_t i = 0; i < 4; ++i) {
    predictor.observe({Direction::to_device, {1_GiB + i * 1_MiB, 1_MiB}});
    predictor.observe({Direction::to_device, {2_GiB + i * 4_KiB, 4_KiB}});
  }
  EXPECT_EQ(next_ranges(predictor, 3),
            (std::vector<Range>{
                {1_GiB + 4_MiB, 1_MiB}, {2_GiB + 16_KiB, 4_KiB}, {1_GiB + 5_MiB, 1_MiB}}));
}

}  // namespace
}  // namespace sealane
