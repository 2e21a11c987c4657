// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Plain-text tables for people: columns as wide as their content, numbers right-aligned.
#pragma once

#include <string>
#include <vector>

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

  std::string text() const;  // ends with a newline

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

}  // namespace sealane::report
