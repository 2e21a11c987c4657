// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One line on stderr that overwrites itself; silent unless a person watches. Not synchronised.
#pragma once

#include <cstdint>
#include <string>

namespace sealane::cli {

class Progress {
 public:
  Progress();
  ~Progress();  // clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  bool watched() const { return watched_; }
  void show(const std::string& text) const;

 private:
  bool watched_;
};

// "[######..............]  30 %"
std::string progress_bar(uint64_t done, uint64_t all);

}  // namespace sealane::cli
