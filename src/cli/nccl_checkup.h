// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is what NCCL sends between machines sealed? Judged by the variables NCCL reads, by whether the
// plugin starts with them, and, if there is one, by NCCL's log (NCCL_DEBUG=INFO). Pure: variables,
// start and log are handed in.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/checkup.h"

namespace sealane::cli {

// The lines to export, in order: name, value, why.
struct NcclSetting {
  std::string_view name;
  std::string_view value;
  std::string_view why;
};
const std::vector<NcclSetting>& nccl_settings();

// `variable` gives nothing for one that is not set. `start` loads and starts what NCCL_NET_PLUGIN
// names, and gives what there is to say of it.
Checkup check_nccl(const std::function<std::optional<std::string>(const std::string&)>& variable,
                   const std::function<Result<std::string>(const std::string&)>& start,
                   const std::optional<std::string>& log);

// "libnccl-net-sealane.so", which the loader looks for, of "sealane"; or a path as it is.
std::string nccl_plugin_file(const std::string& name);

// As NCCL would, in this process.
Result<std::string> start_nccl_plugin(const std::string& name);

}  // namespace sealane::cli
