// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The logging facade. Silent unless SEALANE_DEBUG is WARN, INFO or TRACE. One line per call, made
// in one buffer and handed over whole, so lines of several threads do not mix. The core does not
// log: it returns actions.
#pragma once

#include <string_view>

namespace sealane {

enum class LogLevel { silent, warn, info, trace };

// Read from SEALANE_DEBUG at first use; an unknown word counts as WARN.
LogLevel log_level();
void set_log_level(LogLevel level);

// Where lines go; nullptr restores stderr. Not synchronised: set it before other threads start.
using LogSink = void (*)(LogLevel level, std::string_view line);
void set_log_sink(LogSink sink);

inline bool log_enabled(LogLevel level) { return level <= log_level(); }

// printf rules; the caller has checked log_enabled() (use the macro).
[[gnu::format(printf, 2, 3)]] void log_line(LogLevel level, const char* format, ...);

}  // namespace sealane

#define SEALANE_LOG(level, ...)                                     \
  do {                                                              \
    if (::sealane::log_enabled(::sealane::LogLevel::level))         \
      ::sealane::log_line(::sealane::LogLevel::level, __VA_ARGS__); \
  } while (false)
