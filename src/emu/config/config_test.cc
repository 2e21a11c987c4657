// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/config/config.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace sealane::emu {
namespace {

std::map<std::string, std::string> environment;

Result<Config> read(std::map<std::string, std::string> variables) {
  environment = std::move(variables);
  return read_config([](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(Config, DefaultsAreOneGpuInConfidentialModeUnpaced) {
  const auto config = read({});
  ASSERT_TRUE(config);
  EXPECT_TRUE(config->cc);
  EXPECT_EQ(config->gpus, 1);
  EXPECT_FALSE(config->paced);
  EXPECT_EQ(config->message_bytes_max, 1u << 20);
  EXPECT_EQ(config->contexts_max, 18u);
  EXPECT_GE(config->memory_bytes, 64u << 20);
}

TEST(Config, ReadsTheModelOfAPlatform) {
  const auto config = read({{"SEALANE_EMU_MODEL",
                             "to_host.cc.toll_us=10.5 gpu.hardware_queues=3 cc.contexts_max=7 "
                             "host.fast_aead_library=ipsec-mb nonsense"}});
  ASSERT_TRUE(config);
  EXPECT_EQ(config->model.to_host.cc_toll_us, 10.5);
  EXPECT_EQ(config->queues, 3);
  EXPECT_EQ(config->contexts_max, 7u);
}

TEST(Config, ReadsAComputeCapabilityWithAndWithoutADot) {
  for (const char* text : {"8.6", "86"}) {
    const auto config = read({{"SEALANE_EMU_COMPUTE_CAPABILITY", text}});
    ASSERT_TRUE(config) << text;
    EXPECT_EQ(config->compute_capability, 86);
  }
  const auto newer = read({{"SEALANE_EMU_COMPUTE_CAPABILITY", "12.0"}});
  ASSERT_TRUE(newer);
  EXPECT_EQ(newer->compute_capability, 120);
  for (const char* text : {"9", "9.", "9.00", "13.0", ".90", "hopper"}) {
    EXPECT_FALSE(read({{"SEALANE_EMU_COMPUTE_CAPABILITY", text}})) << text;
  }
}

TEST(Config, ReadsAnAdversary) {
  const auto config = read({{"SEALANE_EMU_ADVERSARY", "swap@12:to_host"}});
  ASSERT_TRUE(config);
  EXPECT_EQ(config->adversary.attack, Attack::swap);
  EXPECT_EQ(config->adversary.message, 12u);
  EXPECT_EQ(config->adversary.direction, Direction::to_host);
}

TEST(Config, DilatesMoreWhereThereAreFewerCores) {
  EXPECT_GT(automatic_dilation(2), automatic_dilation(16));
  EXPECT_EQ(automatic_dilation(1000), 4);
  const auto config = read({{"SEALANE_EMU_PACING", "model"}, {"SEALANE_EMU_DILATION", "12.5"}});
  ASSERT_TRUE(config);
  EXPECT_EQ(config->dilation, 12.5);
}

TEST(Config, RefusesWhatItCannotMean) {
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"SEALANE_EMU_CC", "yes"},
           {"SEALANE_EMU_GPUS", "-1"},
           {"SEALANE_EMU_MEMORY", "12T"},
           {"SEALANE_EMU_MEMORY", "99999999999999999999G"},
           {"SEALANE_EMU_ADVERSARY", "flip"},
           {"SEALANE_EMU_ADVERSARY", "flip@0"},
           {"SEALANE_EMU_ADVERSARY", "flip@1:sideways"},
           {"SEALANE_EMU_PACING", "slow"},
           {"SEALANE_EMU_MODEL", "gpu.kernel_us=-3"},
           {"SEALANE_EMU_MODEL", "to_device.cc.link_gb_per_s=0"}}) {
    const auto config = read({{name, value}});
    ASSERT_FALSE(config) << name << "=" << value;
    EXPECT_NE(config.error().message.find(name), std::string::npos) << config.error().message;
  }
}

// CUDA's own variable, with CUDA's rules.
TEST(Config, ReadsWhichDevicesAreVisible) {
  const auto visible = [](const char* list) {
    const auto config = read({{"SEALANE_EMU_GPUS", "4"}, {"CUDA_VISIBLE_DEVICES", list}});
    return config ? config->visible : std::vector<int>{-2};
  };
  using List = std::vector<int>;
  const auto all = read({{"SEALANE_EMU_GPUS", "4"}});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->visible, (List{0, 1, 2, 3}));
  EXPECT_EQ(visible("2"), List{2});
  EXPECT_EQ(visible("3,1"), (List{3, 1}));
  EXPECT_EQ(visible("1, 0"), (List{1, 0}));
  EXPECT_EQ(visible(""), List{});
  EXPECT_EQ(visible("-1"), List{});
  EXPECT_EQ(visible("NoDevFiles"), List{});
  EXPECT_EQ(visible("0,7,1"), List{0}) << "what does not exist ends the list";
  EXPECT_EQ(visible("0,-1,1"), List{0});
  EXPECT_EQ(visible("1,1"), List{}) << "one named twice is none";
  EXPECT_EQ(visible("1gpu2,2ampere"), (List{1, 2})) << "a number ends where its digits do";
  EXPECT_EQ(visible("+1,01"), List{}) << "the same one";
  EXPECT_EQ(visible("0,+-1"), List{0});
  EXPECT_EQ(visible("0,99999999999999999999"), List{0});
  EXPECT_EQ(visible("GPU-7365616c-616e-6520-656d-756c61746532"), List{2});
  EXPECT_EQ(visible("GPU-7365"), List{}) << "the beginning of more than one";
}

}  // namespace
}  // namespace sealane::emu
