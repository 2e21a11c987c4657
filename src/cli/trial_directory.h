// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The directory of a trial. Whoever may write into it could leave links there that lead to files of
// ours, and read what a program says: so it belongs to us alone, and nothing in it is followed.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace sealane::cli {

// A descriptor that is closed with it.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  int get() const { return number_; }
  bool ok() const { return number_ >= 0; }

 private:
  int number_;
};

class TrialDirectory {
 public:
  // `name` as its user calls it: made, if it is not there. A usage error: it is somebody else's,
  // others may write to it, something is in it, or another trial is under way there.
  static Result<TrialDirectory> begin(const std::string& name);
  // One that was begun, by the same rules but the last.
  static Result<TrialDirectory> resume(const std::string& name);

  const std::string& path() const { return path_; }  // whole

  // A file in it, whole or as it was; a link by that name is replaced.
  Status write(const std::string& file, std::string_view content) const;

  // runs/`run`, new and empty, whatever was there.
  Result<Descriptor> make_run(const std::string& run) const;

 private:
  static Result<TrialDirectory> open(const std::string& path, const std::string& name);

  std::string path_;
  Descriptor descriptor_;
};

// A new file in `directory`, to be written.
Result<Descriptor> new_file(const Descriptor& directory, const char* name);

}  // namespace sealane::cli
