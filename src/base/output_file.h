// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The one way in which anything of ours writes a file that somebody named: the command line, the
// runtime inside a program, the emulated GPU. Nothing but an ordinary file is ever replaced or
// removed:
//
//   ordinary file       replaced whole: written beside it under a name nobody can foresee, renamed;
//                       written in place where it is a mount (one file of a container)
//   program, library    refused (ETXTBSY), whatever its name: no output begins as these do
//   link                stays a link; what it points to is written by these rules. Not followed
//                       where somebody else left it in a directory that everybody writes to (the
//                       kernel's own rule for links in /tmp)
//   character device    written through (/dev/null)
//   pipe                written through; one without a reader is an error, not a wait
//   /dev/stdout, fd/N   written to that descriptor, wherever it leads
//   anything else       (directory, block device, socket) refused
//
// Plain system calls, errors as errno values: it runs in other people's processes. An unread pipe
// is EPIPE there, never a SIGPIPE.
//
// Concurrency: functions from any thread; an OutputStream is one thread's at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sealane {

// All of it or, where a file is replaced, nothing. Returns an errno, 0 if it is done.
[[nodiscard]] int write_output(const std::string& path, std::string_view content);

// Could `path` be written? Leaves nothing behind and changes nothing. What is there and may not be
// written to is not to be replaced either.
[[nodiscard]] int check_output(const std::string& path);

// Takes an ordinary file away, so that it is not taken for what is written later; a link to it
// stays, and a file that an OutputStream still writes. Everything else is left alone.
void remove_output(const std::string& path);

// Whether both names lead to one ordinary file, one that exists or would be made.
bool is_same_file(const std::string& a, const std::string& b);

// The descriptor of this process that the name leads to (/dev/stdout), or -1.
int output_descriptor(const std::string& path);

// One piece to a descriptor, whatever it is; an unread pipe is EPIPE.
[[nodiscard]] int write_descriptor(int descriptor, std::string_view text);

// An output that grows. What cannot be sought in (a pipe, a terminal) gets everything once, in
// order. An ordinary file is replaced by one of the stream's own, so streams with one name, mostly
// of several processes, never mix: the name is that of the one who wrote last. While others write,
// their files are beside it, with a dot and 16 digits more, where those stay that are killed.
class OutputStream {
 public:
  OutputStream() = default;
  OutputStream(const OutputStream&) = delete;
  OutputStream& operator=(const OutputStream&) = delete;
  ~OutputStream();

  [[nodiscard]] int open(const std::string& path);  // an errno, as below
  bool is_open() const { return descriptor_ >= 0; }
  bool can_seek() const { return can_seek_; }
  [[nodiscard]] int write_at(std::string_view text, uint64_t offset);

 private:
  void keep_name() const;

  int descriptor_ = -1;
  std::string path_;  // whole, of an ordinary file; otherwise empty
  bool can_seek_ = true;
};

}  // namespace sealane
