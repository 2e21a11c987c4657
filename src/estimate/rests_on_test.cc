// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does what a prediction rests on come first, and what it does not rest on not at all?

#include "estimate/rests_on.h"

#include <gtest/gtest.h>

#include "estimate/ddp.h"
#include "platform/reader.h"
#include "platform/spread.h"

namespace sealane::estimate {
namespace {

Unknown moves(std::string name, double first, double second) {
  return {std::move(name), Knowledge::assumed, 0.3, [=](int direction) -> Values {
            return std::vector<double>{10 + direction * first, 20 - direction * second};
          }};
}

TEST(RestsOn, WhatMovesItMostComesFirstAndWhatDoesNotIsLeftOut) {
  const std::vector<double> predicted{10, 20};
  std::vector<Unknown> unknowns{moves("little", 0.1, 0), moves("nothing", 0, 0),
                                moves("much", 0, 3), moves("known", 5, 5)};
  unknowns.back().spread = 0;
  const auto found = rests_on(predicted, unknowns, {});
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].name, "much");
  EXPECT_DOUBLE_EQ((*found)[0].between[1].low, 17);
  EXPECT_DOUBLE_EQ((*found)[0].between[1].high, 23);
  EXPECT_DOUBLE_EQ((*found)[0].between[0].low, 10);
  EXPECT_EQ((*found)[1].name, "little");
}

// The kernel that nobody has published is what a ring sealed by one rests on; cores are not.
TEST(RestsOn, TrainingSealedByAKernelRestsOnThatKernel) {
  DdpOptions options;
  options.sealer = Sealer::gpu_kernel;
  const Platform platform = *find_platform("h100-tdx");
  const std::vector<std::string> policies{"sealane"};
  const auto& model = *workload::find_training_model("gpt2-xl");
  const auto unknowns = ddp_unknowns(model, platform, options, policies);
  const auto rows = *estimate_ddp(model, platform, options, policies);
  const auto found =
      rests_on(std::vector<double>{rows[0].slowdown, rows[1].slowdown}, unknowns, {});
  ASSERT_TRUE(found);
  bool kernel = false;
  for (const Leaning& each : *found) {
    kernel = kernel || each.name == "gpu_kernel_gb_per_s";
    EXPECT_NE(each.name, "host.fast_aead_gb_per_s");
    EXPECT_EQ(each.between[0].low, each.between[0].high) << "off is not slower than itself";
  }
  EXPECT_TRUE(kernel);
}

}  // namespace
}  // namespace sealane::estimate
