// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The words of a scenario file: lines without comments, and a reader that goes along one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace sealane::test {

struct Line {
  size_t number;  // in the file, from 1
  std::vector<std::string> words;
};

// The lines that say something. `title` is the first comment, if the file has one.
std::vector<Line> split_lines(std::string_view text, std::string& title);

// "64", "4K", "16M" in bytes; "500ns", "20us", "4ms".
std::optional<uint64_t> parse_size(std::string_view text);
std::optional<Duration> parse_time(std::string_view text);

class Words {
 public:
  explicit Words(const Line& line) : line_(&line) {}

  size_t line_number() const { return line_->number; }
  const std::string& verb() const { return line_->words[0]; }
  bool done() const { return next_ == line_->words.size(); }

  // The next word, whatever it is; empty at the end of the line.
  std::string word() { return done() ? "" : line_->words[next_++]; }
  // The next word, if it is this one or a size.
  bool take(std::string_view expected);
  std::optional<uint64_t> take_size();

  std::optional<uint64_t> number();
  std::optional<uint64_t> size() { return parse_size(word()); }
  std::optional<Duration> time() { return parse_time(word()); }

 private:
  const Line* line_;
  size_t next_ = 1;
};

}  // namespace sealane::test
