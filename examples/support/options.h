// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Command lines of the examples, without a library, so that they build with nvcc and nothing else.
// Declare each option with its default, then parse: --name value or --name=value. --help prints
// them and exits 0; anything wrong ends the program with exit code 2 and one line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace examples {

class Options {
 public:
  // `summary` is what the program does, in one line.
  explicit Options(const char* summary) : summary_(summary) {}

  // `*value` holds the default. It must lie within [min, max] after parsing.
  void number(const char* name, const char* help, uint64_t* value, uint64_t min, uint64_t max);
  // One of `words` ("a|b|c"), or anything if `words` is empty.
  void text(const char* name, const char* help, std::string* value, const char* words = "");

  void parse(int argc, char** argv);

 private:
  struct Option {
    std::string name;
    std::string help;
    std::string words;
    uint64_t* number;
    uint64_t min;
    uint64_t max;
    std::string* text;
  };

  const Option& find(const std::string& name) const;
  static void assign(const Option& option, const std::string& value);
  void print_help(const char* argv0) const;

  const char* summary_;
  std::vector<Option> options_;
};

}  // namespace examples
