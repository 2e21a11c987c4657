// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do the models have the buckets that PyTorch makes of them?

#include "workload/training.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

namespace sealane::workload {
namespace {

TEST(Training, BucketCountsAreThoseOfPyTorch) {
  const std::vector<std::pair<const char*, size_t>> counts{
      {"resnet-50", 5},    {"vgg-16", 6},       {"vit-l", 38},
      {"bert-base", 14},   {"bert-large", 38},  {"gpt2", 13},
      {"gpt2-medium", 37}, {"gpt2-large", 109}, {"gpt2-xl", 145}};
  EXPECT_EQ(counts.size(), training_models().size());
  for (const auto& [name, count] : counts) {
    const TrainingModel* model = find_training_model(name);
    ASSERT_NE(model, nullptr) << name;
    EXPECT_EQ(gradient_buckets(*model, kBucketBytesDefault).size(), count) << name;
  }
}

RC_GTEST_PROP(Training, BucketsHoldEveryGradientOnce, ()) {
  const auto& model = training_models()[*rc::gen::inRange<size_t>(0, training_models().size())];
  const auto cap = *rc::gen::inRange<uint64_t>(1, uint64_t{4} << 30);
  const std::vector<uint64_t> buckets = gradient_buckets(model, cap);
  RC_ASSERT(std::accumulate(buckets.begin(), buckets.end(), uint64_t{0}) == model.gradient_bytes());
  for (size_t i = 1; i + 1 < buckets.size(); ++i) RC_ASSERT(buckets[i] >= cap);
}

}  // namespace
}  // namespace sealane::workload
