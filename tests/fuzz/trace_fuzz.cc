// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Traces from anywhere: read or refused in one line that names the file; what was read and written
// again is the same program.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "workload/trace.h"

using namespace sealane;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto program = workload::parse_trace(text, "x.trace");
  if (!program) {
    const std::string& message = program.error().message;
    SEALANE_CHECK(message.starts_with("x.trace:"), "an error without its file");
    SEALANE_CHECK(message.find('\n') == std::string::npos, "an error of several lines");
    return 0;
  }
  const auto again = workload::parse_trace(workload::format_trace(*program), "x.trace");
  SEALANE_CHECK(again.ok() && *again == *program, "a program changed on its way through a trace");
  return 0;
}
