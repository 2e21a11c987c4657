// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads Prometheus's text exposition format 0.0.4 as a scraper does, and is stricter where a
// scraper merely frowns: every family has HELP and TYPE before its samples, once and in one place,
// and no sample comes twice. Whatever is wrong is a failure of the running test.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace sealane::test {

struct Family {
  std::string type;
  std::string help;
  std::map<std::map<std::string, std::string>, double> samples;  // by labels
  std::set<std::string> label_names() const {
    std::set<std::string> out;
    for (const auto& [labels, value] : samples) {
      for (const auto& [name, text] : labels) out.insert(name);
    }
    return out;
  }
};

class ExpositionParser {
 public:
  static std::map<std::string, Family> parse(std::string_view text) {
    ExpositionParser parser;
    EXPECT_TRUE(text.empty() || text.back() == '\n') << "the last line has no end";
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      parser.rest_ = parser.line_ = text.substr(0, end);
      parser.line();
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    for (const auto& [name, family] : parser.families_) {
      EXPECT_FALSE(family.samples.empty()) << name << " has no sample";
      EXPECT_EQ(family.type == "counter", name.ends_with("_total")) << name;
    }
    return parser.families_;
  }

 private:
  void line() {
    if (take("# HELP ")) {
      const std::string name = word();
      EXPECT_FALSE(families_.contains(name)) << name << " is in two places";
      expect(' ');
      families_[name].help = rest_;
      EXPECT_FALSE(rest_.empty()) << line_;
      current_ = name;
    } else if (take("# TYPE ")) {
      EXPECT_EQ(word(), current_) << "TYPE follows HELP";
      expect(' ');
      families_[current_].type = rest_;
      EXPECT_TRUE(rest_ == "counter" || rest_ == "gauge") << line_;
    } else {
      sample();
    }
  }

  void sample() {
    EXPECT_EQ(word(), current_) << line_;
    std::map<std::string, std::string> labels;
    if (take("{")) {
      do {
        const std::string name = word();
        EXPECT_TRUE(take("=\"")) << line_;
        EXPECT_TRUE(labels.emplace(name, quoted()).second) << "label twice: " << line_;
      } while (take(","));
      EXPECT_TRUE(take("}")) << line_;
    }
    expect(' ');
    EXPECT_TRUE(families_[current_].samples.emplace(labels, number()).second)
        << "sample twice: " << line_;
  }

  // [a-zA-Z_][a-zA-Z0-9_]*
  std::string word() {
    size_t length = 0;
    while (length < rest_.size() &&
           (std::isalnum(static_cast<unsigned char>(rest_[length])) != 0 || rest_[length] == '_')) {
      ++length;
    }
    const std::string out(rest_.substr(0, length));
    EXPECT_TRUE(!out.empty() && std::isdigit(static_cast<unsigned char>(out[0])) == 0) << line_;
    rest_.remove_prefix(length);
    return out;
  }

  std::string quoted() {
    std::string out;
    while (!rest_.empty() && rest_[0] != '"') {
      if (!take("\\")) {
        out += rest_[0];
      } else if (rest_.empty() || std::string_view("\\\"n").find(rest_[0]) == std::string::npos) {
        ADD_FAILURE() << "no such escape: " << line_;
        return out;
      } else {
        out += rest_[0] == 'n' ? '\n' : rest_[0];
      }
      rest_.remove_prefix(1);
    }
    expect('"');
    return out;
  }

  double number() {
    double value = 0;
    const auto read = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    EXPECT_TRUE(read.ec == std::errc() && read.ptr == rest_.data() + rest_.size()) << line_;
    return value;
  }

  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  void expect(char c) { EXPECT_TRUE(take(std::string_view(&c, 1))) << line_; }

  std::map<std::string, Family> families_;
  std::string current_;
  std::string_view line_;
  std::string_view rest_;
};

}  // namespace sealane::test
