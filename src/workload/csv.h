// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Comma-separated values as profilers export them: a header, quoted fields, units in the header's
// names ("Start (ns)"). Strict about what is asked for, indifferent to other columns. Safe on
// arbitrary input; errors name file and line. Not synchronised.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sealane::workload {

class CsvReader {
 public:
  // `in` outlives the reader; `file` is used in messages only.
  CsvReader(std::istream& in, std::string file) : in_(in), file_(std::move(file)) {}

  Status read_header();

  // A column by name, its unit left out: "Start" finds "Start (ns)". Case does not matter.
  struct Column {
    size_t index = 0;
    std::string unit;  // "ns"; empty if there is none
  };
  Result<Column> column(std::string_view name) const;
  std::optional<Column> optional_column(std::string_view name) const;

  // The next row; false at the end. A row that has another number of fields than the header is an
  // error.
  Result<bool> next();

  const std::string& text(const Column& column) const { return fields_[column.index]; }
  bool empty(const Column& column) const { return fields_[column.index].empty(); }
  // A number that is not negative.
  Result<double> number(const Column& column) const;

  Error error(std::string_view what) const;

 private:
  Result<bool> read_line();
  Status split(std::vector<std::string>& fields) const;

  std::istream& in_;
  std::string file_;
  std::string line_;
  uint64_t line_number_ = 0;
  std::vector<std::string> header_;
  std::vector<std::string> fields_;
};

}  // namespace sealane::workload
