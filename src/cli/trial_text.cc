// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/trial_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>

namespace sealane::cli {
namespace {

// Longer lines are compared as they are: std::regex recurses with a line's length.
constexpr size_t kLineMax = 4096;

const char* const kUsual[] = {
    // 12.3 ms, 4 s, 1.5 minutes; 12 tok/s, 3.4 GB/s, 7 it/s
    R"([0-9][0-9.,]*(e[-+]?[0-9]+)? ?(ns|us|µs|ms|s|sec|secs|seconds?|min|minutes?|hours?)\b)",
    R"([0-9][0-9.,]*(e[-+]?[0-9]+)? ?[A-Za-z]+/(s|sec|second|min|h)\b)",
    // total_s 0.25, tokens_per_second: 17, elapsed = 4.2
    R"(\b([A-Za-z_]*_(s|ms|us|ns|sec|seconds?)|[Tt]ime|[Ee]lapsed|[Ll]atency|[Tt]hroughput)\b)"
    R"("? ?[:=]? *-?[0-9][0-9.,]*(e[-+]?[0-9]+)?)",
    R"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    R"(([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?(Z|[-+][0-9:]+)?)?)",
    R"([0-9]{1,2}:[0-9]{2}(:[0-9]{2})?([.,][0-9]+)?)",
    R"(0x[0-9a-fA-F]{6,})",
    R"(\b([Pp][Ii][Dd]|process) ?[:=]? ?[0-9]+)",
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string cut(const std::string& line) {
  constexpr size_t kShown = 60;
  return line.size() <= kShown ? line : line.substr(0, kShown) + "...";
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  if (what.empty()) return;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
}

constexpr const char* kBytesCheck = "copies' bytes pass libcrypto";

Sight sight_of(const ObservedPage::Check& check) {
  if (check.mark == "yes") return Sight::all;
  if (check.mark != "NO") return Sight::unknown;
  return check.found.starts_with("0.0 %") ? Sight::nothing : Sight::some;
}

// "  yes        copies' bytes pass libcrypto                100.0 % of 12 MiB"
ObservedPage::Check check_of(const std::string& line) {
  constexpr size_t kMark = 2;
  constexpr size_t kWhat = 13;
  constexpr size_t kFound = 57;
  const auto part = [&](size_t begin, size_t end) {
    return begin < line.size() ? trimmed(line.substr(begin, end - begin)) : std::string();
  };
  return {part(kMark, kWhat), part(kWhat, kFound), part(kFound, line.size())};
}

}  // namespace

Result<Masks> Masks::make(bool usual, const std::vector<std::string>& expressions) {
  Masks out;
  if (usual) {
    for (const char* one : kUsual) out.masks_.emplace_back(one, std::regex::optimize);
  }
  for (const std::string& one : expressions) {
    try {
      out.masks_.emplace_back(one, std::regex::optimize);
    } catch (const std::regex_error&) {
      return usage_error(fmt::format("--mask: '{}' is no regular expression", one));
    }
  }
  return out;
}

std::string Masks::apply(const std::string& text) const {
  std::string out;
  for (std::string& line : lines_of(text)) {
    if (line.size() <= kLineMax) {
      for (const std::regex& mask : masks_) line = std::regex_replace(line, mask, "*");
      // Columns are as wide as the number that stands in them.
      static const std::regex gaps(" *\\* *");
      if (line.find('*') != std::string::npos) line = std::regex_replace(line, gaps, " * ");
    }
    out += line + "\n";
  }
  return out;
}

std::string first_difference(const std::string& first, const std::string& now) {
  const auto before = lines_of(first);
  const auto after = lines_of(now);
  for (size_t i = 0; i < std::max(before.size(), after.size()); ++i) {
    if (i >= after.size()) return fmt::format("line {}: '{}' is missing", i + 1, cut(before[i]));
    if (i >= before.size()) return fmt::format("line {}: '{}' is new", i + 1, cut(after[i]));
    if (before[i] == after[i]) continue;
    return fmt::format("line {}: '{}' instead of '{}'", i + 1, cut(after[i]), cut(before[i]));
  }
  return {};
}

ObservedPage read_observed(const std::string& standard_error) {
  ObservedPage page;
  const auto lines = lines_of(standard_error);
  const auto at = [&](const char* begin) {
    return std::find_if(lines.begin(), lines.end(),
                        [&](const std::string& line) { return line.starts_with(begin); });
  };
  page.confidential = at("sealane: confidential mode is off") == lines.end();
  page.there = at("sealane --observe:") != lines.end();
  auto line = at("What Sealane would like to rely on");
  if (line == lines.end()) return page;
  for (++line; line != lines.end() && line->starts_with("  "); ++line) {
    ObservedPage::Check check = check_of(*line);
    if (check.what.empty() && !page.checks.empty()) {  // the line before goes on
      page.checks.back().found += " " + check.found;
      continue;
    }
    if (check.what == kBytesCheck) page.sight = sight_of(check);
    page.checks.push_back(std::move(check));
  }
  for (line = at("Verdict"); line != lines.end(); ++line) {
    if (line->empty()) break;
    if (*line != "Verdict") page.verdict += (page.verdict.empty() ? "" : " ") + *line;
  }
  return page;
}

std::vector<std::string> lines_of_sealane(const std::string& standard_error) {
  std::vector<std::string> out;
  for (const std::string& line : lines_of(standard_error)) {
    if (!line.starts_with("sealane: ")) continue;
    if (line.find("from the first GPU call to the last") != std::string::npos) continue;
    if (line.starts_with("sealane: observing:")) continue;
    out.push_back(line);
  }
  return out;
}

bool tells_of_wrong_answer(const std::string& line) {
  return line.find("an answer differed from libcrypto's") != std::string::npos;
}

std::string without_private(const std::string& text, const Private& names) {
  std::string out = text;
  std::vector<std::string> words = names.words;
  // What contains another word goes first.
  std::sort(words.begin(), words.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  for (const std::string& word : words) {
    if (word.size() > 2) replace_all(out, word, "<argument>");
  }
  static const std::regex path(R"((^|[\s"'=:;,(])(~|\.{0,2})(/[^\s/"'<>:;,=()]+)+/?)");
  static const std::regex address(
      R"(\b[0-9]{1,3}(\.[0-9]{1,3}){3}\b|\b([0-9a-fA-F]{0,4}:){3,7}[0-9a-fA-F]{1,4}\b)");
  static const std::regex long_word(R"([A-Za-z0-9+_-]{40,}=*)");
  std::string masked;
  for (const std::string& line : lines_of(out)) {
    if (line.size() > kLineMax) {
      masked += "<a long line>\n";
      continue;
    }
    std::string one = std::regex_replace(line, path, "$1<path>");
    one = std::regex_replace(one, address, "<address>");
    masked += std::regex_replace(one, long_word, "<word>") + "\n";
  }
  if (names.host.size() > 2) replace_all(masked, names.host, "<host>");
  if (names.user.size() > 2 && names.user != "root") replace_all(masked, names.user, "<user>");
  return masked;
}

}  // namespace sealane::cli
