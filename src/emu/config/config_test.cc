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

}  // namespace
}  // namespace sealane::emu
