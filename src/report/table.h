// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Plain-text tables for people: columns as wide as their content, numbers right-aligned, all of it
// no wider than the terminal.
#pragma once

#include <string>
#include <vector>

#include "report/terminal.h"

namespace sealane::report {

enum class Align { left, right };

class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::right;
  };

  explicit Table(std::vector<Column> columns);

  void add_row(std::vector<std::string> cells);  // as many cells as columns
  void add_rule();                               // a line between groups of rows

  // Ends with a newline. What is wider than `limit` gets, as far as that is needed: titles of
  // several lines; one space between columns instead of two; words of left-aligned cells on several
  // lines; fewer columns, the last ones first, and a line that says which.
  std::string text(size_t limit = output_columns()) const;

 private:
  struct Layout;

  Layout natural(size_t columns) const;
  bool fit(Layout& layout, size_t limit) const;
  void narrow_cells(Layout& layout, size_t limit) const;
  std::string line(const Layout& layout, const std::vector<std::string>& cells,
                   bool is_title) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

}  // namespace sealane::report
