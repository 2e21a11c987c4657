// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "report/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <tuple>

#include "base/output_file.h"

namespace sealane::report {

size_t output_columns() {
  if (const char* given = std::getenv("COLUMNS")) {
    const std::string_view text = given;
    size_t columns = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), columns);
    if (failed == std::errc() && end == text.data() + text.size() && columns > 0) return columns;
  }
  winsize window{};
  if (isatty(STDOUT_FILENO) == 0) return kAnyWidth;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 ? window.ws_col : kAnyWidth;
}

void say(std::string_view text) { std::ignore = write_descriptor(STDERR_FILENO, text); }

}  // namespace sealane::report
