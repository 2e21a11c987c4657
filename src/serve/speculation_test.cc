// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/speculation.h"

#include <gtest/gtest.h>

#include "serve/costs.h"

namespace sealane::serve {
namespace {

using Why = SpeculationChoice::Why;

TEST(Speculation, WhatIsExcludedIsNotDecided) {
  Options options;
  options.speculate = Speculate::off;
  EXPECT_EQ(choose_speculation(options, 8).why, Why::excluded);
  options = {};
  options.parallel = false;
  EXPECT_EQ(choose_speculation(options, 8).why, Why::excluded) << "it stands on the other parts";
}

TEST(Speculation, NobodyToSealAheadIsAReason) {
  const auto choice = choose_speculation({}, 1);
  EXPECT_EQ(choice.why, Why::no_worker);
  EXPECT_EQ(choice.policy, nullptr);
}

TEST(Speculation, WhoAsksForItIsNotAskedWhatItCosts) {
  Options options;
  options.speculate = Speculate::on;
  const auto choice = choose_speculation(options, 4);
  EXPECT_EQ(choice.why, Why::asked);
  ASSERT_NE(choice.policy, nullptr);
  EXPECT_EQ(choice.policy->name, "speculate");
}

TEST(Speculation, ByDefaultTheCostsDecide) {
  const auto choice = choose_speculation({}, 4);
  EXPECT_EQ(choice.policy != nullptr, choice.outlook.pays_if_waited());
  EXPECT_EQ(choice.why == Why::pays, choice.outlook.pays());
  EXPECT_EQ(choice.why == Why::no_gain, !choice.outlook.pays_if_waited());
  EXPECT_TRUE(choice.digests) << "memory of the driver's cannot be guarded";
  Options ours;
  ours.pinned = true;
  EXPECT_EQ(choose_speculation(ours, 4).digests, !can_guard_pages());
  EXPECT_NE(describe(choice).find("(4 threads)"), std::string::npos) << describe(choice);
}

TEST(Speculation, TellsWhatWasDecidedAndWhy) {
  SpeculationChoice choice;
  choice.threads = 8;
  choice.outlook = {Duration(46'300), Duration(24'600)};
  EXPECT_EQ(describe(choice), "off: not among the parts that are switched on");
  choice.why = Why::pays;
  EXPECT_EQ(describe(choice),
            "on: a MiB takes 24.6 us from a slot, 46.3 us sealed when it is asked for (8 threads)");
  choice.why = Why::if_waited;
  EXPECT_EQ(describe(choice),
            "while the program waits for each copy: a MiB takes 24.6 us from a slot, 46.3 us "
            "sealed when it is asked for (8 threads)");
  choice.digests = true;
  choice.why = Why::no_gain;
  EXPECT_EQ(describe(choice),
            "off, too little to gain: a MiB takes 24.6 us from a slot, its digest compared, 46.3 "
            "us sealed when it is asked for (8 threads)");
}

}  // namespace
}  // namespace sealane::serve
