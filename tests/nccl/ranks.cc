// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "nccl/ranks.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/text.h"

namespace sealane::nccl {

namespace {

// Those of the first process; a rank that calls exit() leaves them to it.
struct Files {
  pid_t owner = getpid();
  std::vector<std::string> paths;
  ~Files() {
    if (getpid() != owner) return;
    for (const std::string& path : paths) unlink(path.c_str());
  }
};

}  // namespace

std::string key_file(char digit) {
  static Files files;
  const std::string path =
      concat(::testing::TempDir(), "sealane-nccl-", getpid(), "-", std::string(1, digit), ".key");
  const mode_t before = umask(077);
  std::ofstream(path) << std::string(64, digit) << "\n";
  umask(before);
  files.paths.push_back(path);
  return path;
}

std::vector<std::string> sealed_environment() {
  static const std::string path = key_file('a');
  return {"SEALANE_KEY_FILE=" + path, "NCCL_SOCKET_IFNAME=lo"};
}

std::vector<Outcome> play(int ranks, const std::vector<std::string>& environment,
                          const std::function<Status(Player&)>& body, const Loaded& loaded) {
  return run_job(ranks, patience(), environment, [&](Seat& seat) -> Status {
    auto plugin = PluginTable::load(loaded.path, loaded.version);
    if (!plugin) return plugin.error();
    auto player = Player::start(**plugin, seat);
    if (!player) return player.error();
    return body(**player);
  });
}

Status heard(const Error& error) {
  return error.message.find("returned") != std::string::npos ? Status() : Status(error);
}

}  // namespace sealane::nccl
