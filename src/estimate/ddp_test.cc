// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Training: the published points, the laws the model must obey, and what Sealane promises.

#include "estimate/ddp.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "platform/reader.h"

namespace sealane::estimate {
namespace {

using workload::find_training_model;
using workload::training_models;

const std::vector<std::string> kAll{"off", "study", "buckets", "stock", "sealane"};

Platform platform(const char* name) {
  auto found = find_platform(name);
  if (!found) ADD_FAILURE() << found.error().message;
  return found ? *found : Platform{};
}

DdpRow row(std::string_view policy, const char* model, const DdpOptions& options) {
  const auto rows =
      estimate_ddp(*find_training_model(model), platform("h100-nvl-tdx"), options, kAll);
  if (!rows) ADD_FAILURE() << rows.error().message;
  for (const DdpRow& each : *rows) {
    if (each.policy == policy) return each;
  }
  ADD_FAILURE() << policy;
  return {};
}

TEST(Ddp, TheStudyIsCalibratedOnOnePointAndNearAnother) {
  EXPECT_NEAR(row("study", "gpt2-xl", {}).slowdown, kStudyPoint, 0.01);
  EXPECT_NEAR(row("buckets", "gpt2-xl", {}).slowdown, 3.03, 0.75);
}

// 2(N-1) messages of each bucket, 2(N-1)/N of its bytes, on every GPU.
TEST(Ddp, MessagesOfARing) {
  const DdpRow study = row("study", "gpt2-xl", {});
  EXPECT_EQ(study.buckets, 145u);
  EXPECT_EQ(study.messages, 145u * 6);
  const auto bytes = static_cast<double>(find_training_model("gpt2-xl")->gradient_bytes());
  EXPECT_NEAR(static_cast<double>(study.sealed_bytes) / (1.5 * bytes), 1, 1e-6);
}

// Physical costs explain 3 to 9 times of the 41.6.
TEST(Ddp, TodaysPathIsSlowButNotThatSlow) {
  const double stock = row("stock", "gpt2-xl", {}).slowdown;
  EXPECT_GT(stock, 3);
  EXPECT_LT(stock, 10);
}

TEST(Ddp, SealaneIsNearOffOnFourGpus) {
  for (const auto& model : training_models()) {
    const DdpRow sealane = row("sealane", std::string(model.name).c_str(), {});
    EXPECT_LE(sealane.slowdown, 1.15) << model.name;
    EXPECT_GE(sealane.slowdown, 1) << model.name;
  }
}

TEST(Ddp, OneGpuHasNobodyToTalkTo) {
  DdpOptions options;
  options.gpus = 1;
  for (const std::string& policy : kAll) {
    const DdpRow one = row(policy, "gpt2", options);
    EXPECT_DOUBLE_EQ(one.slowdown, 1) << policy;
    EXPECT_EQ(one.messages, 0u) << policy;
  }
}

TEST(Ddp, EncryptedNvlinkNeedsNoHelp) {
  DdpOptions options;
  options.link = Link::nvlink_encrypted;
  EXPECT_DOUBLE_EQ(row("sealane", "gpt2-xl", options).time_s,
                   row("stock", "gpt2-xl", options).time_s);
}

// A B200 computes so fast that a step waits for its all-reduce and for launches: CC shows in both.
TEST(Ddp, CcShowsWhereComputingIsFast) {
  const auto slowdown = [](const DdpOptions& options) {
    const auto rows = estimate_ddp(*find_training_model("gpt2-xl"), platform("b200-tdx"), options,
                                   std::vector<std::string>{"stock"});
    return rows ? rows->back().slowdown : 0;
  };
  DdpOptions options;
  options.link = Link::nvlink_encrypted;
  const double usual = slowdown(options);
  EXPECT_GT(usual, 1.1);
  EXPECT_LT(usual, 1.5);
  DdpOptions slow = options;
  slow.compute_tflops = 25.6;
  EXPECT_NEAR(slowdown(slow), 1, 0.01) << "all of it hides behind the backward pass";
  DdpOptions graphs = options;
  graphs.constants.launches_per_tensor = 0;
  EXPECT_LT(slowdown(graphs), usual);
  EXPECT_GT(slowdown(graphs), 1.05) << "the links are slower too";
  DdpOptions alone = options;
  alone.gpus = 1;
  EXPECT_NEAR(slowdown(alone), (9 + 15.7) / (9 + 3.45), 0.01) << "launches, and nothing else";
}

TEST(Ddp, TheNeededRateIsEnoughAndNotMoreThanThat) {
  const Platform where = platform("h100-nvl-tdx");
  for (const Sealer sealer : {Sealer::cpu, Sealer::copy_engine, Sealer::gpu_kernel}) {
    DdpOptions options;
    options.sealer = sealer;
    const auto& model = *find_training_model("gpt2-xl");
    const auto rate = needed_seal_rate(model, where, options, 1.2);
    ASSERT_TRUE(rate) << to_string(sealer);
    options.seal_gb_per_s = *rate;
    EXPECT_NEAR((*estimate_ddp(model, where, options, kAll))[4].slowdown, 1.2, 1e-3);
  }
}

DdpOptions nccl(uint32_t machines) {
  DdpOptions options;
  options.fabric = Fabric::nccl;
  options.gpus = machines * options.gpus_per_machine;
  return options;
}

const std::vector<std::string> kNccl{"off", "plain", "tls", "wireguard", "sealane"};

std::vector<DdpRow> nccl_rows(uint32_t machines) {
  const auto rows = estimate_ddp(*find_training_model("gpt2-xl"), platform("h100-nvl-tdx"),
                                 nccl(machines), kNccl);
  if (!rows) ADD_FAILURE() << rows.error().message;
  return *rows;
}

// 2 (m-1)/m of the gradients leave a machine, whatever number of GPUs it has.
TEST(NcclFabric, SealsWhatLeavesAMachineAndNothingElse) {
  for (const DdpRow& row : nccl_rows(1)) {
    EXPECT_DOUBLE_EQ(row.slowdown, 1) << row.policy;
    EXPECT_EQ(row.sealed_bytes, 0u) << row.policy;
  }
  const auto all = static_cast<double>(find_training_model("gpt2-xl")->gradient_bytes());
  for (const DdpRow& row : nccl_rows(8)) {
    const bool seals = row.policy != "off" && row.policy != "plain";
    const double sealed = static_cast<double>(row.sealed_bytes) * 8;  // of one GPU
    EXPECT_NEAR(sealed / all, seals ? 2 * 7.0 / 8 : 0, 1e-3) << row.policy;
  }
}

// Work per machine does not grow with their number, and hops only with its logarithm: with buckets
// that outlast the hops 20 cores of this platform are enough for 8 machines and for 1,024.
TEST(NcclFabric, SealaneIsNearNoEncryptionFromEightTo1024Machines) {
  const auto& model = *find_training_model("gpt2-xl");
  for (const uint32_t machines : {8u, 64u, 512u, 1024u}) {
    const auto rows = nccl_rows(machines);
    EXPECT_LE(rows[1].time_s, rows[2].time_s) << machines;
    EXPECT_LE(rows[4].time_s, rows[2].time_s) << machines;
    EXPECT_LE(rows[4].time_s, rows[3].time_s) << machines;
    DdpOptions large = nccl(machines);
    large.bucket_bytes = 256_MiB;
    const auto needed = needed_workers(model, platform("h100-nvl-tdx"), large, 1.15);
    ASSERT_TRUE(needed) << machines;
    EXPECT_LE(*needed, 20u) << machines;
    // Cores that seal 11 GB/s: 16.
    large.bucket_bytes = 100_MiB;
    const auto fewer = needed_workers(model, platform("h100-tdx"), large, 1.15);
    ASSERT_TRUE(fewer) << machines;
    EXPECT_LE(*fewer, 16u) << machines;
  }
}

// A ring's hops grow with the machines, a tree's with their logarithm: NCCL changes over, so twice
// as many machines add two hops to each bucket and nothing else.
TEST(NcclFabric, ManyMachinesAreATreeAndNotARing) {
  const double at_256 = nccl_rows(256)[4].time_s;
  const double at_512 = nccl_rows(512)[4].time_s;
  const double at_1024 = nccl_rows(1024)[4].time_s;
  EXPECT_GT(at_512, at_256);
  EXPECT_NEAR(at_1024 - at_512, at_512 - at_256, 0.01 * at_256);
}

// For a planner with buckets as PyTorch has them, which no number of cores makes fast enough where
// there are many machines.
TEST(NcclFabric, WhatIsNeededIsKnownForAnyNumberOfMachines) {
  const auto& model = *find_training_model("gpt2-xl");
  for (const char* where : {"h100-nvl-tdx", "h100-tdx"}) {
    for (const uint32_t machines : {8u, 64u, 1024u}) {
      DdpOptions options = nccl(machines);
      const auto needed = needed_bucket(model, platform(where), options, 1.15);
      ASSERT_TRUE(needed) << where << " " << machines;
      const double off_s = (*estimate_ddp(model, platform(where), options, kNccl))[0].time_s;
      options.bucket_bytes = needed->bytes;
      options.workers = needed->workers;
      EXPECT_LE((*estimate_ddp(model, platform(where), options, kNccl))[4].time_s, 1.15 * off_s);
      const auto as_asked = needed_workers(model, platform(where), nccl(machines), 1.15);
      EXPECT_TRUE(!as_asked || *as_asked >= needed->workers) << where << " " << machines;
    }
  }
}

TEST(NcclFabric, TheNeededCoresAreEnoughAndOneLessIsNot) {
  const Platform where = platform("h100-nvl-tdx");
  const auto& model = *find_training_model("gpt2-xl");
  DdpOptions options = nccl(64);
  options.bucket_bytes = 256_MiB;
  const auto needed = needed_workers(model, where, options, 1.15);
  ASSERT_TRUE(needed);
  options.workers = *needed;
  EXPECT_LE((*estimate_ddp(model, where, options, kNccl))[4].slowdown, 1.15);
  ASSERT_GT(*needed, 1u);
  --options.workers;
  EXPECT_GT((*estimate_ddp(model, where, options, kNccl))[4].slowdown, 1.15);
}

TEST(Ddp, WrongOptionsAreUsageErrors) {
  const Platform where = platform("h100-nvl-tdx");
  const auto& model = *find_training_model("gpt2");
  DdpOptions options;
  options.gpus = 0;
  EXPECT_EQ(estimate_ddp(model, where, options, kAll).error().message,
            "--gpus: 0 is not from 1 to 1024");
  options.gpus = 4;
  options.gpus_per_machine = 0;
  EXPECT_FALSE(estimate_ddp(model, where, options, kAll));
}

// More GPUs never make an iteration shorter, and a faster sealer never makes it longer.
RC_GTEST_PROP(Ddp, IsMonotonous, ()) {
  const auto& model = training_models()[*rc::gen::inRange<size_t>(0, training_models().size())];
  static const Platform where = platform("h100-sxm");
  DdpOptions options;
  options.gpus = *rc::gen::element(1u, 2u, 4u, 8u, 16u, 64u, 256u, 512u);
  options.sealer = *rc::gen::element(Sealer::cpu, Sealer::copy_engine, Sealer::gpu_kernel);
  options.link = *rc::gen::element(Link::pcie, Link::nvlink, Link::nvlink_encrypted);
  options.overlap = *rc::gen::arbitrary<bool>();
  const auto before = *estimate_ddp(model, where, options, kAll);
  for (const DdpRow& each : before) {
    RC_ASSERT(each.time_s >= each.compute_s);
    RC_ASSERT(each.wait_s >= 0);
  }
  DdpOptions faster = options;
  faster.seal_gb_per_s = 2 * default_seal_rate(where, options.sealer).gb_per_s;
  RC_ASSERT((*estimate_ddp(model, where, faster, kAll))[4].time_s <= before[4].time_s + 1e-12);
  DdpOptions more = options;
  more.gpus = 2 * options.gpus;
  const auto after = *estimate_ddp(model, where, more, kAll);
  for (size_t i = 0; i < 2; ++i) RC_ASSERT(after[i].time_s >= before[i].time_s - 1e-12);
}

}  // namespace
}  // namespace sealane::estimate
