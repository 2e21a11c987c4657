// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "watch/output.h"

#include <unistd.h>

#include <cstring>

#include "base/output_file.h"
#include "base/text.h"

namespace sealane::serve {

void complain(const std::string& path, int error_number) {
  char text[128];
  const char* reason = strerror_r(error_number, text, sizeof text);  // GNU's
  say(concat("sealane: cannot write ", visible(path), ": ", reason, "\n"));
}

bool write_whole(const std::string& path, std::string_view text) {
  const int error_number = write_output(path, text);
  if (error_number != 0) complain(path, error_number);
  return error_number == 0;
}

void say(std::string_view text) { (void)write_descriptor(STDERR_FILENO, text); }

void StreamFile::append(std::string_view text) {
  if (failed_) return;
  buffer_ += text;
  if (buffer_.size() >= kBufferBytes) flush();
}

void StreamFile::finish(std::string_view tail) {
  flush();
  write_at(tail, written_);
  failed_ = failed_ || !file_.can_seek();  // a pipe has been told everything
}

void StreamFile::flush() {
  if (write_at(buffer_, written_)) written_ += buffer_.size();
  buffer_.clear();
}

bool StreamFile::write_at(std::string_view text, uint64_t offset) {
  if (failed_) return false;
  int error_number = file_.is_open() ? 0 : file_.open(path_);
  if (error_number == 0) error_number = file_.write_at(text, offset);
  failed_ = error_number != 0;
  if (failed_) complain(path_, error_number);
  return !failed_;
}

}  // namespace sealane::serve
