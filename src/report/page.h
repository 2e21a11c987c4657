// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Results of several commands as one HTML page: tables, plots, where every number comes from. The
// page needs nothing but itself: styles, scripts and the chart library are inside.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/summary.h"

namespace sealane::report {

// A file that --json of some command wrote.
struct RunFile {
  std::string name;     // as people know it
  std::string content;  // JSON
};

struct Page {
  std::string html;
  std::vector<SummaryLine> summary;  // a screen of text: what was MEASURED, SIMULATED, PUBLISHED
};

// A usage error names the file and line of what is not JSON, or the file that has nothing to draw.
Result<Page> make_page(const std::vector<RunFile>& runs, std::string_view version);

}  // namespace sealane::report
