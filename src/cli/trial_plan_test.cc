// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Does a trial run what it should, in the right order, stop where it must and say why?

#include "cli/trial_plan.h"

#include <gtest/gtest.h>

#include <functional>

namespace sealane::cli {
namespace {

using Answer = std::function<TrialOutcome(const TrialStep&)>;

TrialOutcome good(double seconds = 10) {
  TrialOutcome out;
  out.seconds = seconds;
  out.output = "same";
  out.page = true;
  out.sight = Sight::all;
  return out;
}

TrialOutcome with(Ending ending, int code) {
  TrialOutcome out = good();
  out.ending = ending;
  out.code = code;
  return out;
}

TrialOutcome saying(const char* output) {
  TrialOutcome out = good();
  out.output = output;
  return out;
}

struct Played {
  TrialPlan plan;
  std::vector<std::string> names;
};

Played play(const Answer& answer, const TrialLimits& limits = {.rounds = 2}) {
  Played played{TrialPlan(limits), {}};
  while (const auto step = played.plan.next()) {
    played.names.push_back(name_of(*step));
    played.plan.handle(answer(*step));
    if (played.names.size() > 1000) break;
  }
  return played;
}

bool is_part(const TrialStep& step, const std::string& name) {
  return step.kind == StepKind::part && trial_parts()[step.part].name == name;
}

TEST(TrialPlan, RunsEverythingInOrderWhenAllIsFine) {
  const Played played = play([](const TrialStep&) { return good(); });
  EXPECT_EQ(played.names,
            (std::vector<std::string>{
                "doctor", "alone-1", "alone-2", "observe", "engine-verify", "plain-1", "engine-1",
                "parallel-1", "async-1", "coalesce-1", "register-1", "default-1", "plain-2",
                "engine-2", "parallel-2", "async-2", "coalesce-2", "register-2", "default-2"}));
  EXPECT_EQ(played.plan.verdict(), TrialVerdict::fine);
  EXPECT_FALSE(played.plan.broken());
  EXPECT_EQ(*played.plan.recommended(), 5u);
}

TEST(TrialPlan, CountsDownToNothing) {
  TrialPlan plan({.rounds = 2});
  size_t left = plan.runs_left();
  EXPECT_EQ(left, 19u);
  while (plan.next()) {
    EXPECT_EQ(plan.runs_left(), left);
    plan.handle(good());
    --left;
    if (plan.runs_done() == 3) {
      EXPECT_DOUBLE_EQ(plan.seconds_left(), 160);
    }
  }
  EXPECT_EQ(left, 0u);
  EXPECT_EQ(plan.seconds_left(), 0);
}

TEST(TrialPlan, StopsAtTheFirstPartThatChangesTheOutput) {
  const Played played =
      play([](const TrialStep& step) { return is_part(step, "async") ? saying("else") : good(); });
  EXPECT_EQ(played.plan.verdict(), TrialVerdict::part_breaks);
  EXPECT_EQ(name_of(*played.plan.broken()), "async-1");
  EXPECT_EQ(played.names.back(), "control-2");
  EXPECT_EQ(*played.plan.recommended(), 1u);  // parallel
  EXPECT_TRUE(played.plan.passed(1));
  EXPECT_FALSE(played.plan.passed(2));
}

TEST(TrialPlan, APartThatCrashesOrHangsIsToBlame) {
  for (const TrialOutcome& bad :
       {with(Ending::crashed, 11), with(Ending::hung, 0), with(Ending::failed, 1)}) {
    const Played played = play([&](const TrialStep& step) {
      return is_part(step, "parallel") && step.round == 2 ? bad : good();
    });
    EXPECT_EQ(played.plan.verdict(), TrialVerdict::part_breaks);
    EXPECT_EQ(name_of(*played.plan.broken()), "parallel-2");
    EXPECT_EQ(played.plan.broken_outcome().ending, bad.ending);
    EXPECT_FALSE(played.plan.passed(1));
    EXPECT_NE(*played.plan.recommended(), 1u);
  }
}

// The part was not to blame: the program itself does that now and then.
TEST(TrialPlan, AsksThePlainProgramBeforeItBlamesAPart) {
  const Played played = play([](const TrialStep& step) {
    const bool odd = is_part(step, "engine") || name_of(step) == "control-2";
    return odd ? saying("else") : good();
  });
  EXPECT_EQ(played.plan.verdict(), TrialVerdict::not_reproducible);
  EXPECT_EQ(name_of(*played.plan.broken()), "control-2");
  const Played crashing = play([](const TrialStep& step) {
    const bool odd = is_part(step, "engine") || step.kind == StepKind::control;
    return odd ? with(Ending::crashed, 6) : good();
  });
  EXPECT_EQ(crashing.plan.verdict(), TrialVerdict::program_fails);
}

TEST(TrialPlan, AWrongAnswerEndsItAtOnce) {
  const Played played = play([](const TrialStep& step) {
    TrialOutcome out = good();
    out.wrong_answer = step.kind == StepKind::verify;
    return out;
  });
  EXPECT_EQ(played.plan.verdict(), TrialVerdict::part_breaks);
  EXPECT_EQ(played.names.back(), "engine-verify");
  EXPECT_FALSE(played.plan.recommended());
}

TEST(TrialPlan, AProgramThatIsNotReproducibleIsNotTriedFurther) {
  const Played played = play(
      [](const TrialStep& step) { return name_of(step) == "alone-2" ? saying("else") : good(); });
  EXPECT_EQ(played.plan.verdict(), TrialVerdict::not_reproducible);
  EXPECT_EQ(played.names.back(), "alone-2");
  EXPECT_FALSE(played.plan.recommended());
}

TEST(TrialPlan, AProgramThatFailsByItselfSaysNothingAboutSealane) {
  const auto at_first = [](const TrialOutcome& bad) {
    return play(
        [bad](const TrialStep& step) { return step.kind == StepKind::alone ? bad : good(); });
  };
  EXPECT_EQ(at_first(with(Ending::failed, 3)).plan.verdict(), TrialVerdict::program_fails);
  EXPECT_EQ(at_first(with(Ending::crashed, 11)).plan.verdict(), TrialVerdict::program_fails);
  EXPECT_EQ(at_first(with(Ending::hung, 0)).plan.verdict(), TrialVerdict::program_hangs);
  EXPECT_EQ(at_first(with(Ending::hung, 0)).names.back(), "alone-1");
}

TEST(TrialPlan, LeavesOutWhatCannotWorkWhereTheDriverSealsOutOfSight) {
  const Played played = play([](const TrialStep& step) {
    TrialOutcome out = good();
    if (step.kind == StepKind::observe) out.sight = Sight::nothing;
    return out;
  });
  EXPECT_EQ(played.names,
            (std::vector<std::string>{"doctor", "alone-1", "alone-2", "observe", "plain-1",
                                      "async-1", "coalesce-1", "register-1", "plain-2", "async-2",
                                      "coalesce-2", "register-2"}));
  EXPECT_EQ(played.plan.verdict(), TrialVerdict::limited);
  EXPECT_FALSE(played.plan.passed(0));
  EXPECT_STREQ(played.plan.enable_of(*played.plan.recommended()), "async,coalesce,register");
}

TEST(TrialPlan, ObservingEndsItWhereThereIsNothingToWin) {
  const auto seen = [](bool page, bool confidential) {
    return play([=](const TrialStep& step) {
             TrialOutcome out = good();
             if (step.kind == StepKind::observe) out.page = page;
             out.confidential = confidential;
             return out;
           })
        .plan.verdict();
  };
  EXPECT_EQ(seen(false, true), TrialVerdict::gpu_unused);
  EXPECT_EQ(seen(true, false), TrialVerdict::not_confidential);
  const Played breaks = play([](const TrialStep& step) {
    return step.kind == StepKind::observe ? with(Ending::crashed, 11) : good();
  });
  EXPECT_EQ(breaks.plan.verdict(), TrialVerdict::observe_breaks);
  const Played unfit = play([](const TrialStep&) { return with(Ending::failed, 1); });
  EXPECT_EQ(unfit.plan.verdict(), TrialVerdict::machine_unfit);
}

TEST(TrialPlan, TimesAreRatiosWithinTheirRound) {
  // Round 2 is on a machine twice as slow.
  const Played played = play([](const TrialStep& step) {
    const double slow = step.round == 2 ? 2 : 1;
    return good(slow * (is_part(step, "async") ? 4 : is_part(step, "default") ? 6 : 10));
  });
  const TrialTimes async = played.plan.times_of(2);
  EXPECT_EQ(async.rounds, 2u);
  EXPECT_DOUBLE_EQ(async.ratio, 0.4);
  EXPECT_DOUBLE_EQ(async.least, 0.4);
  EXPECT_DOUBLE_EQ(async.most, 0.4);
  EXPECT_DOUBLE_EQ(async.seconds, 6);
  EXPECT_EQ(*played.plan.recommended(), 2u);  // clearly faster than the default
}

// On a busy machine every part takes now 0.5, now 1.1 of the plain program's time: none of them is
// better than what everybody uses.
TEST(TrialPlan, LuckIsNotARecommendation) {
  const Played played = play(
      [](const TrialStep& step) {
        if (step.kind != StepKind::part) return good(10);
        const bool lucky = is_part(step, "coalesce");
        return good(step.round == 1 ? 5 : step.round == 2 && lucky ? 7 : 11);
      },
      {.rounds = 3});
  EXPECT_DOUBLE_EQ(played.plan.times_of(3).ratio, 0.7);
  EXPECT_DOUBLE_EQ(played.plan.times_of(5).ratio, 1.1);
  EXPECT_EQ(*played.plan.recommended(), 5u);
}

TEST(TrialPlan, GivesAProgramTimeByWhatItTookAlone) {
  TrialPlan plan({});
  plan.handle(good());
  EXPECT_EQ(plan.limit_s(), 3600);
  plan.handle(good(100));
  plan.handle(good(80));
  EXPECT_EQ(plan.limit_s(), 560);
  TrialPlan given({.rounds = 1, .limit_s = 7});
  given.handle(good());
  EXPECT_EQ(given.limit_s(), 7);
}

TEST(TrialPlan, TheSameOutcomesLeadToTheSamePlace) {
  const Played whole = play([](const TrialStep& step) { return good(step.round + 1.0); });
  TrialPlan resumed({.rounds = 2});
  for (size_t run = 0; run < 9; ++run) resumed.handle(good(resumed.next()->round + 1.0));
  EXPECT_EQ(name_of(*resumed.next()), whole.names[9]);
}

}  // namespace
}  // namespace sealane::cli
