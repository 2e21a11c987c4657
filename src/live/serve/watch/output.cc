// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "live/serve/watch/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/text.h"

namespace sealane::serve {
namespace {

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = ::write(file, text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return false;
    text.remove_prefix(static_cast<size_t>(done));
  }
  return true;
}

}  // namespace

std::string output_path(std::string_view pattern) {
  std::string out(pattern);
  if (const size_t at = out.find("%p"); at != std::string::npos) {
    out.replace(at, 2, concat(::getpid()));
  }
  return out;
}

void complain(const std::string& path, int error_number) {
  char text[128];
  const char* reason = strerror_r(error_number, text, sizeof text);  // GNU's
  say(concat("sealane: cannot write ", path, ": ", reason, "\n"));
}

int replace_file(const std::string& path, std::string_view text) {
  const std::string beside = concat(path, ".", ::getpid(), ".part");
  const int file = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  bool done = file >= 0 && write_all(file, text);
  int error_number = errno;
  if (file >= 0) ::close(file);
  if (done && ::rename(beside.c_str(), path.c_str()) != 0) {
    done = false;
    error_number = errno;
  }
  if (!done) ::unlink(beside.c_str());
  return done ? 0 : error_number;
}

bool write_whole(const std::string& path, std::string_view text) {
  const int error_number = replace_file(path, text);
  if (error_number != 0) complain(path, error_number);
  return error_number == 0;
}

void say(std::string_view text) { write_all(STDERR_FILENO, text); }

StreamFile::~StreamFile() {
  if (file_ >= 0) ::close(file_);
}

void StreamFile::append(std::string_view text) {
  if (failed_) return;
  buffer_ += text;
  if (buffer_.size() >= kBufferBytes) flush();
}

void StreamFile::finish(std::string_view tail) {
  flush();
  write_at(tail, written_);
}

void StreamFile::flush() {
  if (write_at(buffer_, written_)) written_ += buffer_.size();
  buffer_.clear();
}

bool StreamFile::write_at(std::string_view text, uint64_t offset) {
  if (failed_) return false;
  if (file_ < 0) file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  failed_ = file_ < 0;
  while (!failed_ && !text.empty()) {
    const ssize_t done = ::pwrite(file_, text.data(), text.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    failed_ = done < 0;
    if (failed_) break;
    text.remove_prefix(static_cast<size_t>(done));
    offset += static_cast<uint64_t>(done);
  }
  if (failed_) complain(path_, errno);
  return !failed_;
}

}  // namespace sealane::serve
