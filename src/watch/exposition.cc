// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "watch/exposition.h"

#include <charconv>
#include <cmath>

#include "base/text.h"

namespace sealane::serve {
namespace {

// Inside quotes a quote needs a backslash too.
void append_escaped(std::string& out, std::string_view text, bool quoted) {
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || (quoted && c == '"')) out += '\\';
    out += c;
  }
}

}  // namespace

void Exposition::family(std::string_view name, Type type, std::string_view help) {
  name_ = name;
  header_ = concat("# HELP ", name, " ");
  append_escaped(header_, help, false);
  header_ += concat("\n# TYPE ", name, type == counter ? " counter\n" : " gauge\n");
}

void Exposition::sample(Labels labels, uint64_t value) {
  begin_sample(labels);
  text_ += concat(value, "\n");
}

void Exposition::sample(Labels labels, double value) {
  begin_sample(labels);
  if (std::isfinite(value)) {
    char digits[32];
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  } else {
    text_ += std::isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
  }
  text_ += '\n';
}

void Exposition::append_labels(std::string& out, Labels labels) {
  for (const auto& [name, value] : labels) {
    if (!out.empty()) out += ',';
    out += concat(name, "=\"");
    append_escaped(out, value, true);
    out += '"';
  }
}

void Exposition::begin_sample(Labels labels) {
  text_ += header_;
  header_.clear();
  text_ += name_;
  std::string pairs = common_;
  append_labels(pairs, labels);
  if (!pairs.empty()) text_ += concat("{", pairs, "}");
  text_ += ' ';
}

}  // namespace sealane::serve
