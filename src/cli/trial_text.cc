// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/trial_text.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string_view>

#include "base/text.h"

namespace sealane::cli {
namespace {

using nlohmann::json;

// Longer lines are compared as they are: std::regex recurses with a line's length.
constexpr size_t kLineMax = 4096;

// No such number is longer than 32 digits: without an end a line that is nothing but digits and
// commas would be read to its end from each of them.
const char* const kUsual[] = {
    // 12.3 ms, 4 s, 1.5 minutes; 12 tok/s, 3.4 GB/s, 7 it/s
    R"([0-9][0-9.,]{0,31}(e[-+]?[0-9]+)? ?)"
    R"((ns|us|µs|ms|s|sec|secs|seconds?|min|minutes?|hours?)\b)",
    R"([0-9][0-9.,]{0,31}(e[-+]?[0-9]+)? ?[A-Za-z]+/(s|sec|second|min|h)\b)",
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

// Between two characters: bytes 10xxxxxx go on with one of UTF-8.
std::string cut(const std::string& line) {
  constexpr size_t kShown = 60;
  if (line.size() <= kShown) return line;
  size_t end = kShown;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0) == 0x80) --end;
  return line.substr(0, end) + "...";
}

constexpr const char* kDigits = "0123456789";

// 128 in "0.0128", "1281" or "v128" is not the argument 128.
bool within_another_word(const std::string& text, size_t begin, size_t end) {
  const auto in_word = [&](size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0);
  };
  if (begin > 0 && (in_word(begin - 1) || text[begin - 1] == '.')) return true;
  return in_word(end) || (end < text.size() && text[end] == '.' && in_word(end + 1));
}

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  if (what.empty()) return;
  const bool number = what.find_first_not_of(kDigits) == std::string::npos;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos;) {
    if (number && within_another_word(text, at, at + what.size())) {
      at += what.size();
      continue;
    }
    text.replace(at, what.size(), by);
    at += by.size();
  }
}

// What the runtime (adapters/preload, serve, watch) says on stderr; between beginning and end there
// may be nothing, words of its own, or somebody's: a file's name, the value of a variable.
enum class Between : uint8_t { nothing, ours, theirs };
struct Sentence {
  std::string_view begins;
  std::string_view ends;
  Between between;
  std::string_view after_word{};  // what follows the first word between
};
constexpr std::string_view kWrongAnswer =
    "sealane: an answer differed from libcrypto's: libcrypto seals from now on";
constexpr Sentence kSentences[] = {
    {kWrongAnswer, "", Between::nothing},
    {"sealane: stepping aside, copies are the driver's again: ", "", Between::ours},
    {"sealane: broken invariant at ", "", Between::ours},
    {"sealane: does nothing, it could not start: ", "", Between::ours},
    {"sealane: confidential mode is off: nothing to speed up", "", Between::nothing},
    {"sealane: confidential mode is off: nothing to speed up", "; watching only", Between::nothing},
    {"sealane: every part of the runtime is off", "", Between::nothing},
    {"sealane: every part of the runtime is off", "; watching only", Between::nothing},
    {"sealane: libcrypto takes used IVs, as OpenSSL does before 3.0.13 and 3.1.5: it seals itself, "
     "and copies gain by asynchrony alone",
     "", Between::nothing},
    {"sealane: active: ", " worker", Between::theirs},
    {"sealane: active: ", " workers", Between::theirs},
    {"sealane: cannot write ", "", Between::theirs},
    {"sealane: SEALANE_", " is not a number: not used", Between::theirs},
    {"sealane: SEALANE_ENABLE knows ", "", Between::theirs},
    {"sealane: SEALANE_POLICY knows ", "", Between::theirs},
    {"sealane: ",
     ": in confidential mode a driver maps only memory that it allocated itself (cudaHostAlloc), "
     "so this is refused with 801",
     Between::theirs},
    {"sealane: cu", "", Between::ours, " failed: "},  // a call
    {"sealane: warning: plain mode: nothing is encrypted or authenticated", "", Between::nothing},
};

// Empty: no sentence of the runtime's.
std::string known_words(const std::string& line) {
  constexpr size_t kReasonMax = 200;
  for (const auto& [begins, ends, between, after_word] : kSentences) {
    const size_t fixed = begins.size() + ends.size();
    if (line.size() < fixed || !line.starts_with(begins) || !line.ends_with(ends)) continue;
    const std::string middle = line.substr(begins.size(), line.size() - fixed);
    if (between == Between::nothing && !middle.empty()) continue;
    if (!std::string_view(middle)
             .substr(std::min(middle.find(' '), middle.size()))
             .starts_with(after_word)) {
      continue;
    }
    return concat(begins, between == Between::theirs ? "..." : printable(middle, kReasonMax), ends);
  }
  return "";
}

std::string word(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

uint64_t count(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

std::string mark_of(const std::string& state) {
  if (state == "holds") return "yes";
  if (state == "differs") return "no, copes";
  return state == "fails" ? "NO" : "?";
}

constexpr const char* kBytesCheck = "copies' bytes pass libcrypto";

Sight sight_of(const ObservedPage::Check& check, uint64_t seen_bytes) {
  if (check.mark == "yes") return Sight::all;
  if (check.mark != "NO") return Sight::unknown;
  return seen_bytes == 0 ? Sight::nothing : Sight::some;
}

}  // namespace

Result<Masks> Masks::make(bool usual, const std::vector<std::string>& expressions) {
  Masks out;
  if (usual) {
    for (const char* one : kUsual) {
      out.masks_.push_back({one, std::regex(one, std::regex::optimize)});
    }
  }
  for (const std::string& one : expressions) {
    try {
      out.masks_.push_back({one, std::regex(one, std::regex::optimize)});
    } catch (const std::regex_error&) {
      return usage_error(fmt::format("--mask: '{}' is no regular expression", one));
    }
  }
  return out;
}

std::string Masks::apply(const std::string& text, const Before& before) const {
  std::string out;
  std::vector<std::string> lines = lines_of(text);
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string& line = lines[i];
    if (line.size() <= kLineMax) {
      for (size_t mask = 0; mask < masks_.size(); ++mask) {
        if (before) before(i, mask);
        line = std::regex_replace(line, masks_[mask].regex, "*");
      }
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

ObservedPage read_observed(const json& stats) {
  ObservedPage page;
  const auto observed = stats.is_object() ? stats.find("observed") : stats.end();
  if (observed == stats.end() || !observed->is_object()) return page;
  page.there = true;
  page.verdict = word(*observed, "verdict");
  const auto checks = observed->find("checks");
  if (checks == observed->end() || !checks->is_array()) return page;
  for (const json& one : *checks) {
    if (!one.is_object()) continue;
    page.checks.push_back({mark_of(word(one, "state")), word(one, "what"), word(one, "found")});
    if (page.checks.back().what != kBytesCheck) continue;
    page.sight = sight_of(page.checks.back(), count(*observed, "seen_bytes"));
  }
  return page;
}

bool says_not_confidential(const std::string& standard_error) {
  const auto lines = lines_of(standard_error);
  return std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.starts_with("sealane: confidential mode is off");
  });
}

std::vector<std::string> lines_of_sealane(const std::string& standard_error) {
  std::vector<std::string> out;
  for (const std::string& line : lines_of(standard_error)) {
    if (std::string words = known_words(line); !words.empty()) out.push_back(std::move(words));
  }
  return out;
}

bool tells_of_wrong_answer(const std::string& line) { return line == kWrongAnswer; }

json with_valid_text(const json& value) {
  return json::parse(value.dump(-1, ' ', false, json::error_handler_t::replace));
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

json texts_without_private(json value, const Private& names) {
  if (value.is_structured()) {
    for (json& one : value) one = texts_without_private(std::move(one), names);
  } else if (value.is_string()) {
    std::string text = without_private(value.get_ref<const std::string&>(), names);
    if (text.ends_with('\n')) text.pop_back();  // which lines end with, and this is none
    value = std::move(text);
  }
  return value;
}

}  // namespace sealane::cli
