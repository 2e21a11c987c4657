// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "workload/csv.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "base/try.h"

namespace sealane::workload {
namespace {

constexpr size_t kCsvLineBytesMax = 256 << 10;  // names of kernels are long

bool same(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

}  // namespace

Error CsvReader::error(std::string_view what) const {
  return usage_error(concat(file_, ":", line_number_, ": ", what));
}

Result<bool> CsvReader::read_line() {
  line_.clear();
  ++line_number_;
  for (;;) {
    const int c = in_.rdbuf()->sbumpc();
    if (c == std::istream::traits_type::eof()) return !line_.empty();
    if (c == '\n') return true;
    if (line_.size() == kCsvLineBytesMax) return error("the line is too long");
    if (c != '\r') line_ += static_cast<char>(c);
  }
}

Status CsvReader::split(std::vector<std::string>& fields) const {
  fields.clear();
  fields.emplace_back();
  bool quoted = false;
  for (size_t i = 0; i < line_.size(); ++i) {
    const char c = line_[i];
    if (quoted) {
      const bool doubled = c == '"' && i + 1 < line_.size() && line_[i + 1] == '"';
      if (c == '"' && !doubled) {
        quoted = false;
      } else {
        fields.back() += c;
        if (doubled) ++i;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (quoted) return error("a quoted field does not end in this line: the file may be cut off");
  return {};
}

Status CsvReader::read_header() {
  SEALANE_LET(const auto more, read_line());
  if (!more) return error("the file is empty");
  return split(header_);
}

std::optional<CsvReader::Column> CsvReader::optional_column(std::string_view name) const {
  for (size_t i = 0; i < header_.size(); ++i) {
    std::string_view title = header_[i];
    std::string unit;
    const size_t open = title.rfind(" (");
    if (open != std::string_view::npos && title.ends_with(")")) {
      unit = title.substr(open + 2, title.size() - open - 3);
      title = title.substr(0, open);
    }
    if (same(title, name)) return Column{i, unit};
  }
  return std::nullopt;
}

Result<CsvReader::Column> CsvReader::column(std::string_view name) const {
  if (auto found = optional_column(name)) return *std::move(found);
  return usage_error(concat(file_, ":1: the column '", name, "' is missing"));
}

Result<bool> CsvReader::next() {
  for (;;) {
    const auto more = read_line();
    if (!more || !*more) return more;
    if (!line_.empty()) break;
  }
  SEALANE_TRY(split(fields_));
  if (fields_.size() != header_.size()) {
    return error(concat("the row has ", fields_.size(), " fields, the header has ", header_.size(),
                        ": the file may be cut off"));
  }
  return true;
}

Result<double> CsvReader::number(const Column& column) const {
  const std::string& field = fields_[column.index];
  double value = 0;
  const auto [end, failed] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (failed != std::errc() || end != field.data() + field.size() || !std::isfinite(value)) {
    return error(
        concat("'", header_[column.index], "' is not a number: '", field.substr(0, 40), "'"));
  }
  if (value < 0) return error(concat("'", header_[column.index], "' is negative"));
  return value;
}

}  // namespace sealane::workload
