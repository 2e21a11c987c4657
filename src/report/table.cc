// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "report/table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/figures.h"
#include "base/text.h"

namespace sealane::report {
namespace {

constexpr size_t kTextColumnsMin = 16;  // a text is not broken into shorter lines than these

// Where a line may end: behind a word, in a title behind a hyphen, too.
std::vector<std::string> pieces_of(const std::string& text, bool is_title) {
  std::vector<std::string> out(1);
  for (const char c : text) {
    out.back() += c;
    if (c == ' ' || (is_title && c == '-')) out.emplace_back();
  }
  return out;
}

size_t columns_of_piece(const std::string& piece) {
  return columns_of(piece) - (piece.ends_with(' ') ? 1 : 0);
}

size_t longest_piece(const std::string& text, bool is_title) {
  size_t longest = 0;
  for (const std::string& piece : pieces_of(text, is_title)) {
    longest = std::max(longest, columns_of_piece(piece));
  }
  return longest;
}

std::vector<std::string> lines_of(const std::string& text, size_t columns, bool is_title) {
  if (columns_of(text) <= columns) return {text};
  std::vector<std::string> lines(1);
  for (const std::string& piece : pieces_of(text, is_title)) {
    std::string& last = lines.back();
    if (!last.empty() && columns_of(last) + columns_of_piece(piece) > columns) {
      lines.push_back(piece);
    } else {
      last += piece;
    }
  }
  for (std::string& line : lines) line.erase(line.find_last_not_of(' ') + 1);
  return lines;
}

void append_cell(std::string& out, const std::string& text, size_t columns, Align align) {
  const std::string padding(columns - columns_of(text), ' ');
  out += align == Align::left ? text + padding : padding + text;
}

}  // namespace

// The columns that are shown, from the first on.
struct Table::Layout {
  std::vector<size_t> widths;
  size_t gap = 2;

  size_t total() const {
    size_t sum = (widths.size() - 1) * gap;
    for (const size_t width : widths) sum += width;
    return sum;
  }
};

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add_row(std::vector<std::string> cells) {
  SEALANE_CHECK(cells.size() == columns_.size(), "a row needs a cell for every column");
  rows_.push_back(std::move(cells));
}

void Table::add_rule() { rows_.emplace_back(); }

Table::Layout Table::natural(size_t columns) const {
  Layout layout;
  for (size_t i = 0; i < columns; ++i) {
    size_t widest = columns_of(columns_[i].title);
    for (const auto& row : rows_) {
      if (!row.empty()) widest = std::max(widest, columns_of(row[i]));
    }
    layout.widths.push_back(widest);
  }
  return layout;
}

// The widest text gives way first.
void Table::narrow_cells(Layout& layout, size_t limit) const {
  std::vector<size_t> floors = layout.widths;
  for (size_t i = 0; i < floors.size(); ++i) {
    if (columns_[i].align != Align::left) continue;
    size_t floor = std::max(kTextColumnsMin, longest_piece(columns_[i].title, true));
    for (const auto& row : rows_) {
      if (!row.empty()) floor = std::max(floor, longest_piece(row[i], false));
    }
    floors[i] = std::min(floors[i], floor);
  }
  while (layout.total() > limit) {
    size_t widest = floors.size();
    for (size_t i = 0; i < floors.size(); ++i) {
      if (layout.widths[i] == floors[i]) continue;
      if (widest == floors.size() || layout.widths[i] > layout.widths[widest]) widest = i;
    }
    if (widest == floors.size()) return;
    --layout.widths[widest];
  }
}

bool Table::fit(Layout& layout, size_t limit) const {
  if (limit == kAnyWidth || layout.total() <= limit) return true;
  for (size_t i = 0; i < layout.widths.size(); ++i) {
    size_t width = longest_piece(columns_[i].title, true);
    for (const auto& row : rows_) {
      if (!row.empty()) width = std::max(width, columns_of(row[i]));
    }
    layout.widths[i] = width;
  }
  if (layout.total() <= limit) return true;
  layout.gap = 1;
  narrow_cells(layout, limit);
  return layout.total() <= limit;
}

// As many lines as its longest cell has; titles end together, cells begin together.
std::string Table::line(const Layout& layout, const std::vector<std::string>& cells,
                        bool is_title) const {
  std::vector<std::vector<std::string>> lines;
  size_t count = 1;
  for (size_t i = 0; i < layout.widths.size(); ++i) {
    lines.push_back(lines_of(cells[i], layout.widths[i], is_title));
    count = std::max(count, lines.back().size());
  }
  std::string out;
  for (size_t row = 0; row < count; ++row) {
    std::string text;
    for (size_t i = 0; i < lines.size(); ++i) {
      const size_t skipped = is_title ? count - lines[i].size() : 0;
      const bool blank = row < skipped || row - skipped >= lines[i].size();
      if (i > 0) text.append(layout.gap, ' ');
      append_cell(text, blank ? "" : lines[i][row - skipped], layout.widths[i], columns_[i].align);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  }
  return out;
}

std::string Table::text(size_t limit) const {
  size_t shown = columns_.size();
  Layout layout = natural(shown);
  while (!fit(layout, limit) && shown > 1) layout = natural(--shown);

  std::vector<std::string> titles;
  std::vector<std::string> rules;
  for (size_t i = 0; i < shown; ++i) {
    titles.push_back(columns_[i].title);
    rules.emplace_back(layout.widths[i], '-');
  }
  std::string out = line(layout, titles, true) + line(layout, rules, false);
  for (const auto& row : rows_) out += line(layout, row.empty() ? rules : row, false);
  if (shown == columns_.size()) return out;
  std::string missing;
  for (size_t i = shown; i < columns_.size(); ++i) {
    missing += concat(missing.empty() ? "" : ", ", columns_[i].title);
  }
  return out +
         wrapped(concat("Left out, to fit ", limit, " columns: ", missing, ". --json has all."), 0,
                 limit);
}

}  // namespace sealane::report
