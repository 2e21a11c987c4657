// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Files written from inside somebody else's program (by base/output_file.h): plain system calls, no
// stdio of the program's. A file that cannot be written is one line on stderr, once, and is then
// left alone.
//
// StreamFile is not synchronised; the functions are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/output_file.h"

namespace sealane::serve {

// All of it or nothing; with the line on stderr if it cannot be.
bool write_whole(const std::string& path, std::string_view text);
void complain(const std::string& path, int error_number);  // that line

// One or more lines on stderr, in one piece.
void say(std::string_view text);

// A file that grows while the program runs. What was appended is in the file at the latest with
// finish(), or when the buffer is full.
class StreamFile {
 public:
  explicit StreamFile(std::string path) : path_(std::move(path)) {}
  StreamFile(const StreamFile&) = delete;
  StreamFile& operator=(const StreamFile&) = delete;

  void append(std::string_view text);
  // Writes everything and `tail` behind it. What is appended later takes the tail's place, or is
  // left out where nothing can be taken back.
  void finish(std::string_view tail);

 private:
  static constexpr size_t kBufferBytes = 256 << 10;

  void flush();
  bool write_at(std::string_view text, uint64_t offset);

  const std::string path_;
  std::string buffer_;
  uint64_t written_ = 0;
  OutputStream file_;
  bool failed_ = false;
};

}  // namespace sealane::serve
