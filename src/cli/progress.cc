// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "report/terminal.h"

namespace sealane::cli {

Progress::Progress() : watched_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { show(""); }

void Progress::show(const std::string& text) const {
  if (watched_) report::say(fmt::format("\r\033[K{}", text));
}

std::string progress_bar(uint64_t done, uint64_t all) {
  constexpr uint64_t kWidth = 20;
  const uint64_t share = all == 0 ? kWidth : std::min(done * kWidth / all, kWidth);
  const uint64_t percent = all == 0 ? 100 : std::min<uint64_t>(done * 100 / all, 100);
  return fmt::format("[{}{}] {:3} %", std::string(share, '#'), std::string(kWidth - share, '.'),
                     percent);
}

}  // namespace sealane::cli
