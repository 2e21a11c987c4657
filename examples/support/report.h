// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What an example found, in the order it was added: as lines for people on stdout and, with
// --json FILE ('-' is stdout), as one flat JSON object.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace examples {

class Report {
 public:
  void add(const char* name, const std::string& value);
  void add(const char* name, uint64_t value);
  void add(const char* name, double value);

  // Prints; ends the program with exit code 1 if `json_file` (unless empty) cannot be written.
  void publish(const std::string& json_file) const;

 private:
  struct Entry {
    std::string name;
    std::string value;
    bool quoted;
  };

  std::string json() const;

  std::vector<Entry> entries_;
};

// FNV-1a over words: tells apart runs whose results differ.
class Hash {
 public:
  void add(uint64_t word);
  std::string text() const;  // 16 hex digits

 private:
  uint64_t state_ = 0xcbf29ce484222325;
};

}  // namespace examples
