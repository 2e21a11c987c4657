// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Platform files. Every parameter is [value, "source"], or [value, "source", spread] where the
// usual spread of such a source (spread.h) is not the right one:
//
//   [to_device.cc]
//   toll_us = [21.9, "64-byte pinned copy, ISPASS'25 artifact"]
//   link_gb_per_s = [40.0, "a reader's notes; secondary", 0.15]
//
// Strict: a missing or unknown key, a missing source, a wrong type or a value no machine has is a
// usage error of one line that names file and line. Safe on arbitrary input.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "platform/platform.h"

namespace sealane {

// `file` is used in messages only.
Result<Platform> parse_platform(std::string_view text, std::string_view file);

Result<Platform> load_platform(const std::string& path);

// A path (has a '/' or ends in ".toml"), or the name of a file in the directories below. An unknown
// name is a usage error that lists the names there are.
Result<Platform> find_platform(const std::string& name);

// The file that find_platform(name) would read; empty if there is none.
std::string platform_file(const std::string& name);

// Names find_platform() knows, sorted: the files in $SEALANE_PLATFORMS, if set, and in
// ../share/sealane/platforms as seen from the running program (installed or in a build tree).
std::vector<std::string> platform_names();

}  // namespace sealane
