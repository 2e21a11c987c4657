// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Platform files from anywhere: read or refused in one line that names the file, and what was read
// gives finite costs.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "platform/cost.h"
#include "platform/reader.h"

using namespace sealane;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto platform =
      parse_platform(std::string_view(reinterpret_cast<const char*>(data), size), "x.toml");
  if (!platform) {
    const std::string& message = platform.error().message;
    SEALANE_CHECK(message.starts_with("x.toml:"), "an error without its file");
    SEALANE_CHECK(message.find('\n') == std::string::npos, "an error of several lines");
    return 0;
  }
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 20, uint64_t{1} << 40}) {
    const Duration time =
        stock_copy_time(*platform, platform->to_device, HostMemory::pageable, bytes);
    SEALANE_CHECK(time >= Duration(0), "a copy that takes less than no time");
  }
  return 0;
}
