// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "report/table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace sealane::report {
namespace {

// Columns on a terminal: code points, not bytes.
size_t width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

void append_cell(std::string& out, const std::string& text, size_t columns, Align align) {
  const std::string padding(columns - width(text), ' ');
  out += align == Align::left ? text + padding : padding + text;
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add_row(std::vector<std::string> cells) {
  SEALANE_CHECK(cells.size() == columns_.size(), "a row needs a cell for every column");
  rows_.push_back(std::move(cells));
}

void Table::add_rule() { rows_.emplace_back(); }

std::string Table::text() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t widest = width(columns_[i].title);
    for (const auto& row : rows_) {
      if (!row.empty()) widest = std::max(widest, width(row[i]));
    }
    widths.push_back(widest);
  }

  std::string out;
  const auto append_line = [&](auto&& cell_of) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) line += "  ";
      append_cell(line, cell_of(i), widths[i], columns_[i].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };
  const auto rule = [&](size_t i) { return std::string(widths[i], '-'); };

  append_line([&](size_t i) { return columns_[i].title; });
  append_line(rule);
  for (const auto& row : rows_) {
    if (row.empty()) {
      append_line(rule);
    } else {
      append_line([&](size_t i) { return row[i]; });
    }
  }
  return out;
}

}  // namespace sealane::report
