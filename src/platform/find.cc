// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Where platform files are looked for.

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "platform/reader.h"

namespace sealane {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExtension = ".toml";

std::vector<fs::path> directories() {
  std::vector<fs::path> result;
  if (const char* given = std::getenv("SEALANE_PLATFORMS")) {
    if (*given != '\0') result.emplace_back(given);
  }
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  if (!failed) result.push_back(program.parent_path() / ".." / "share" / "sealane" / "platforms");
  return result;
}

}  // namespace

std::vector<std::string> platform_names() {
  std::vector<std::string> names;
  for (const fs::path& directory : directories()) {
    std::error_code failed;  // a directory that is not there has no files
    for (fs::directory_iterator at(directory, failed), end; !failed && at != end;
         at.increment(failed)) {
      if (at->path().extension() == kExtension) names.push_back(at->path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string platform_file(const std::string& name) {
  if (name.find('/') != std::string::npos || name.ends_with(kExtension)) return name;
  for (const fs::path& directory : directories()) {
    const fs::path path = directory / (name + kExtension);
    std::error_code failed;
    if (!name.empty() && fs::exists(path, failed)) return path.string();
  }
  return {};
}

Result<Platform> find_platform(const std::string& name) {
  if (const std::string file = platform_file(name); !file.empty()) return load_platform(file);
  const auto names = platform_names();
  if (names.empty()) {
    return usage_error(
        fmt::format("unknown platform '{}': no platform files found; set SEALANE_PLATFORMS to "
                    "their directory",
                    name));
  }
  return usage_error(
      fmt::format("unknown platform '{}'; there are: {}", name, fmt::join(names, ", ")));
}

}  // namespace sealane
