// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is what NCCL sends between machines sealed? Judged by the variables NCCL reads and, if there is
// one, by its log (NCCL_DEBUG=INFO). Pure: variables and log are handed in.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/checkup.h"

namespace sealane::cli {

// The lines to export, in order: name, value, why.
struct NcclSetting {
  std::string_view name;
  std::string_view value;
  std::string_view why;
};
const std::vector<NcclSetting>& nccl_settings();

// `variable` gives nothing for one that is not set.
Checkup check_nccl(const std::function<std::optional<std::string>(const std::string&)>& variable,
                   const std::optional<std::string>& log);

}  // namespace sealane::cli
