// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/checkup.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "base/figures.h"
#include "base/text.h"

namespace sealane::cli {
namespace {

constexpr size_t kVerdictColumns = 8;  // "  warn  "

constexpr const char* kWords[] = {"ok", "warn", "fail"};
constexpr const char* kColours[] = {"32", "33", "31"};  // green, yellow, red

const char* word_of(Verdict verdict) { return kWords[static_cast<size_t>(verdict)]; }
const char* colour_of(Verdict verdict) { return kColours[static_cast<size_t>(verdict)]; }

std::string painted(const std::string& text, const char* code, const TextStyle& style) {
  return style.colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}

std::string line_of(const Finding& finding, size_t name_columns, const TextStyle& style) {
  const size_t indent = kVerdictColumns + name_columns + 2;
  const std::string word = word_of(finding.verdict);
  std::string line = "  " + painted(word, colour_of(finding.verdict), style);
  line += std::string(kVerdictColumns - 2 - word.size(), ' ');
  line += fmt::format("{:<{}}  ", finding.name, name_columns);
  // Variables, logs and drivers say what they like.
  line += wrapped(visible(finding.detail), indent, style.columns);
  if (!finding.advice.empty()) {
    line += std::string(indent, ' ') + "-> " +
            wrapped(visible(finding.advice), indent + 3, style.columns);
  }
  return line;
}

}  // namespace

size_t Checkup::count(Verdict verdict) const {
  return static_cast<size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [&](const Finding& finding) { return finding.verdict == verdict; }));
}

std::string to_text(const Checkup& checkup, const TextStyle& style) {
  size_t name_columns = 0;
  for (const Finding& finding : checkup.findings) {
    name_columns = std::max(name_columns, finding.name.size());
  }
  std::string text;
  std::string area;
  for (const Finding& finding : checkup.findings) {
    if (finding.area != area) {
      area = finding.area;
      text += (text.empty() ? "" : "\n") + painted(area, "1", style) + '\n';
    }
    text += line_of(finding, name_columns, style);
  }
  text += '\n' + painted("What to expect", "1", style) + "\n  " +
          wrapped(checkup.outlook, 2, style.columns);
  text += fmt::format("\n{} ok, {} warn, {} fail\n", checkup.count(Verdict::ok),
                      checkup.count(Verdict::warn), checkup.count(Verdict::fail));
  return text;
}

nlohmann::json to_json(const Checkup& checkup) {
  nlohmann::json checks = nlohmann::json::array();
  for (const Finding& finding : checkup.findings) {
    checks.push_back({{"area", finding.area},
                      {"name", finding.name},
                      {"status", word_of(finding.verdict)},
                      {"detail", finding.detail},
                      {"advice", finding.advice}});
  }
  return {{"checks", std::move(checks)},
          {"outlook", checkup.outlook},
          {"summary",
           {{"ok", checkup.count(Verdict::ok)},
            {"warn", checkup.count(Verdict::warn)},
            {"fail", checkup.count(Verdict::fail)}}}};
}

}  // namespace sealane::cli
