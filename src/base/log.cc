// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "base/log.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace sealane {
namespace {

constexpr int kUnread = -1;
std::atomic<int> current_level = kUnread;

LogLevel level_from_environment() {
  const char* word = std::getenv("SEALANE_DEBUG");
  if (word == nullptr || *word == '\0') return LogLevel::silent;
  const std::string_view name = word;
  if (name == "TRACE") return LogLevel::trace;
  if (name == "INFO") return LogLevel::info;
  return LogLevel::warn;
}

void write_to_stderr(LogLevel, std::string_view line) {
  // A log line that cannot be written is lost; there is nobody left to tell.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

std::atomic<LogSink> log_sink{write_to_stderr};  // a plugin's host may set it again and again

const char* word_of(LogLevel level) {
  switch (level) {
    case LogLevel::warn:
      return "WARN";
    case LogLevel::info:
      return "INFO";
    default:
      return "TRACE";
  }
}

}  // namespace

LogLevel log_level() {
  int level = current_level.load(std::memory_order_relaxed);
  if (level == kUnread) {
    level = static_cast<int>(level_from_environment());
    current_level.store(level, std::memory_order_relaxed);
  }
  return static_cast<LogLevel>(level);
}

void set_log_level(LogLevel level) {
  current_level.store(static_cast<int>(level), std::memory_order_relaxed);
}

void set_log_sink(LogSink sink) { log_sink = sink != nullptr ? sink : write_to_stderr; }

void log_line(LogLevel level, const char* format, ...) {
  char line[1024];
  int length = std::snprintf(line, sizeof line, "sealane[%d] %s ", getpid(), word_of(level));
  va_list arguments;
  va_start(arguments, format);
  length +=
      std::vsnprintf(line + length, sizeof line - static_cast<size_t>(length), format, arguments);
  va_end(arguments);
  const size_t end = std::min<size_t>(static_cast<size_t>(length), sizeof line - 2);
  line[end] = '\n';
  log_sink.load(std::memory_order_relaxed)(level, {line, end + 1});
}

}  // namespace sealane
