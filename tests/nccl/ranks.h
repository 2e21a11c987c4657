// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Ranks that have loaded a plugin, ours if no other is named, and a key they share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nccl/job.h"
#include "nccl/player.h"

namespace sealane::nccl {

// A key file of this test's own; another digit, another key.
std::string key_file(char digit);

// With a key, over loopback.
std::vector<std::string> sealed_environment();

struct Loaded {
  std::string path = SEALANE_NCCL_PLUGIN;
  int version = PluginTable::kNewest;
};

// `body` in every rank, with a communicator of the plugin.
std::vector<Outcome> play(int ranks, const std::vector<std::string>& environment,
                          const std::function<Status(Player&)>& body, const Loaded& loaded = {});

// The plugin's own word passes; the end of the player's patience does not.
Status heard(const Error& error);

}  // namespace sealane::nccl
