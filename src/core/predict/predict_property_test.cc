// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Whatever a program copies and frees: what may never be guessed, and on what may a guess depend?
// Programs are made of pieces that predictors react to (loops, swaps, runs through memory, frees),
// because copies drawn one by one would hardly ever be predictable.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "core/predict/interleaved.h"
#include "core/predict/markov.h"
#include "core/predict/paper.h"
#include "core/predict/repetition.h"
#include "core/predict/sequential.h"
#include "core/predict/swap_order.h"
#include "core/predict/tournament.h"

namespace sealane {
namespace {

constexpr size_t kKnown = 256;  // small, so that ranges are pushed out too
constexpr uint64_t kBuffers = 48;

struct Event {
  std::optional<Direction> copy;  // a free if empty
  uint64_t buffer = 0;
};
using Program = std::vector<Event>;
using Place = std::function<Range(uint64_t buffer)>;

// Buffers side by side in memory, two sizes.
Range side_by_side(uint64_t buffer) {
  return {1_GiB + buffer * 1_MiB, buffer % 8 == 7 ? 512_KiB : 1_MiB};
}

// The same buffers elsewhere and in another order.
Range elsewhere(uint64_t buffer) {
  return {77_GiB + buffer * 29 % kBuffers * 3_MiB, side_by_side(buffer).bytes};
}

void add_piece(Program& program, int kind, uint64_t first, uint64_t count) {
  const auto add = [&](std::optional<Direction> copy, uint64_t buffer) {
    program.push_back({copy, buffer % kBuffers});
  };
  const auto run = [&](Direction direction, uint64_t step) {
    for (uint64_t i = 0; i < count; ++i) add(direction, first + i * step);
  };
  switch (kind) {
    case 0:  // a loop
      for (int round = 0; round < 4; ++round) run(Direction::to_device, 5);
      break;
    case 1:  // there and back
      for (int round = 0; round < 3; ++round) {
        run(Direction::to_device, 1);
        for (uint64_t i = count; i-- > 0;) add(Direction::to_device, first + i);
      }
      break;
    case 2:  // out and back in the same order
      run(Direction::to_host, 7);
      run(Direction::to_device, 7);
      break;
    case 3:  // out and back in reverse
      run(Direction::to_host, 7);
      for (uint64_t i = count; i-- > 0;) add(Direction::to_device, first + i * 7);
      break;
    case 4:  // through memory
      run(Direction::to_device, 1);
      break;
    default:  // a few frees
      for (uint64_t i = 0; i < count % 4 + 1; ++i) add(std::nullopt, first + i * 11);
  }
}

Program any_program() {
  using Piece = std::tuple<int, uint64_t, uint64_t>;
  const auto piece = rc::gen::tuple(rc::gen::inRange(0, 6), rc::gen::inRange<uint64_t>(0, kBuffers),
                                    rc::gen::inRange<uint64_t>(1, 16));
  Program program;
  for (const auto& [kind, first, count] : *rc::gen::container<std::vector<Piece>>(piece)) {
    add_piece(program, kind, first, count);
  }
  return program;
}

// Anything that observes, forgets and predicts, with the table it needs. allow() is for those that
// guess memory no copy has touched.
struct Subject {
  std::string name;
  std::shared_ptr<void> owner;
  std::function<void(const Transfer&)> observe;
  std::function<void(const Range&)> allow;
  std::function<void(const Range&)> forget;
  std::function<size_t(std::span<Guess>)> predict;
  bool sequential = false;  // may guess what was never seen
};

template <typename Source>
Subject subject(std::string name, std::shared_ptr<Source> source, bool sequential = false) {
  Source* raw = source.get();
  return {std::move(name),
          std::move(source),
          [raw](const Transfer& transfer) { raw->observe(transfer); },
          [raw](const Range& mapped) {
            if constexpr (requires { raw->allow(mapped); }) raw->allow(mapped);
          },
          [raw](const Range& freed) { raw->forget(freed); },
          [raw](std::span<Guess> next) { return raw->predict(next); },
          sequential};
}

template <typename Contestant, typename... Args>
Subject contestant(Args... args) {
  auto table = std::make_shared<BufferTable>(kKnown);
  auto predictor = std::make_shared<Contestant>(*table, args...);
  Subject made = subject(std::string(predictor->name()), predictor);
  made.owner = std::make_shared<std::pair<decltype(table), decltype(predictor)>>(table, predictor);
  return made;
}

std::vector<Subject> subjects() {
  return {contestant<Repetition>(kKnown),
          contestant<Repetition>(kKnown, Repetition::Split::by_size),
          contestant<Interleaved>(kKnown),
          contestant<SwapOrder>(SwapOrder::Order::fifo),
          contestant<SwapOrder>(SwapOrder::Order::lifo),
          contestant<SwapOrder>(SwapOrder::Order::lifo_grouped),
          contestant<Markov>(kKnown),
          subject("sequential", std::make_shared<Sequential>(), true),
          subject("tournament", std::make_shared<Tournament>(PredictLimits{kKnown}), true),
          subject("paper", std::make_shared<PaperPredictor>(kKnown))};
}

using Guesses = std::vector<Range>;

Guesses next_of(const Subject& who) {
  std::array<Guess, 8> next;
  const size_t count = who.predict(next);
  RC_ASSERT(count <= next.size());
  Guesses ranges;
  for (size_t i = 0; i < count; ++i) ranges.push_back(next[i].host);
  return ranges;
}

// Plays the program and calls check(event number, guesses) after each event. All memory is mapped
// but what was freed and not copied again.
void play(const Program& program, const Subject& who, const Place& place,
          const std::function<void(size_t, const Guesses&)>& check) {
  who.allow({0, UINT64_MAX});
  for (size_t i = 0; i < program.size(); ++i) {
    const Range range = place(program[i].buffer);
    if (program[i].copy) {
      who.allow(range);
      who.observe({*program[i].copy, range});
    } else {
      who.forget(range);
    }
    check(i, next_of(who));
  }
}

RC_GTEST_PROP(PredictProperty, NeverGuessesFreedMemoryNorWhatWasNeverSeen, ()) {
  const Program program = any_program();
  for (const Subject& who : subjects()) {
    std::map<Range, bool> usable;  // false once freed, true when seen again
    play(program, who, side_by_side, [&](size_t i, const Guesses& guesses) {
      usable[side_by_side(program[i].buffer)] = program[i].copy.has_value();
      for (const Range& guess : guesses) {
        const auto exact = usable.find(guess);
        if (who.sequential) {  // touches no freed buffer, whether or not it is one itself
          for (const auto& [range, alive] : usable) {
            if (!alive && guess.overlaps(range)) RC_FAIL(who.name + " guessed freed memory");
          }
        } else if (exact == usable.end() || !exact->second) {
          RC_FAIL(who.name + " guessed a range that is not in use");
        }
      }
    });
  }
}

RC_GTEST_PROP(PredictProperty, SameProgramSameGuesses, ()) {
  const Program program = any_program();
  auto first = subjects();
  auto second = subjects();
  for (size_t s = 0; s < first.size(); ++s) {
    std::vector<Guesses> seen;
    play(program, first[s], side_by_side, [&](size_t, const Guesses& g) { seen.push_back(g); });
    play(program, second[s], side_by_side,
         [&](size_t i, const Guesses& guesses) { RC_ASSERT(guesses == seen[i]); });
  }
}

RC_GTEST_PROP(PredictProperty, AddressesDoNotMatter, ()) {
  const Program program = any_program();
  std::map<Range, Range> moved;
  for (uint64_t b = 0; b < kBuffers; ++b) moved[side_by_side(b)] = elsewhere(b);
  auto here = subjects();
  auto there = subjects();
  for (size_t s = 0; s < here.size(); ++s) {
    if (here[s].sequential) continue;
    std::vector<Guesses> expected;
    play(program, here[s], side_by_side, [&](size_t, Guesses guesses) {
      for (Range& range : guesses) range = moved.at(range);
      expected.push_back(std::move(guesses));
    });
    play(program, there[s], elsewhere,
         [&](size_t i, const Guesses& guesses) { RC_ASSERT(guesses == expected[i]); });
  }
}

// The programs above do make predictors speak; without that the properties would be empty.
TEST(PredictProperty, EverySubjectSpeaksOnItsPiece) {
  for (const Subject& who : subjects()) {
    size_t guesses = 0;
    for (int kind = 0; kind < 5; ++kind) {
      Program program;
      for (int i = 0; i < 4; ++i) add_piece(program, kind, 1, 6);
      play(program, who, side_by_side, [&](size_t, const Guesses& g) { guesses += g.size(); });
    }
    EXPECT_GT(guesses, 20u) << who.name;
  }
}

RC_GTEST_PROP(PredictProperty, AnyRangeIsSurvived, ()) {
  const auto number = rc::gen::oneOf(
      rc::gen::arbitrary<uint64_t>(),
      rc::gen::element<uint64_t>(0, 1, 2, UINT64_MAX, UINT64_MAX - 1, uint64_t{1} << 63));
  using Step = std::tuple<int, uint64_t, uint64_t>;
  const auto steps = *rc::gen::container<std::vector<Step>>(
      rc::gen::tuple(rc::gen::inRange(0, 5), number, number));
  for (const Subject& who : subjects()) {
    for (int round = 0; round < 3; ++round) {
      for (const auto& [kind, address, bytes] : steps) {
        const Range range{address, bytes};
        if (kind == 0) {
          who.forget(range);
        } else {
          who.allow(range);
          who.observe({kind == 1 ? Direction::to_host : Direction::to_device, range});
        }
        for (const Range& guess : next_of(who)) RC_ASSERT(carries_bytes(guess));
      }
    }
  }
}

}  // namespace
}  // namespace sealane
