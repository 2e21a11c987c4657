// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Has a scenario played on the emulated GPU, by a process of its own (player/): a driver reads its
// configuration once. Unpaced: nothing is timed. May be called from any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "scenario/scenario.h"

namespace sealane::test {

struct PlayOptions {
  std::vector<std::string> environment;  // "NAME=value", besides what the scenario asks for
  unsigned waits_percent = 0;            // kernels and thinking really take this part of their time
};

struct Played {
  std::string violation;  // empty if none
  std::string error;      // of the first call that failed; empty if none did
};

// An error if the player itself came to grief.
Result<Played> play_on_emulator(const Scenario& scenario, const PlayOptions& options);

// A file somebody else writes, gone with this.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& name);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  const std::string& path() const { return path_; }
  std::string text() const;  // empty if there is none

 private:
  std::string path_;
};

}  // namespace sealane::test
