// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What this process's memory is mapped to. The answer is true when it is given and may be old when
// it is used. Safe to use from any thread; a child process opens its own.
#pragma once

#include <istream>
#include <optional>

#include "base/range.h"
#include "base/result.h"
#include "os/descriptor.h"

namespace sealane {

struct Mapping {
  Range range;
  bool shared = false;
  bool of_file = false;  // also devices, memfd and shared anonymous memory, which are files inside
};

// The mapping that holds `address` in a text like /proc/self/maps.
std::optional<Mapping> find_mapping(std::istream& maps, uint64_t address);

class Mappings {
 public:
  static Result<Mappings> open();

  // The mapping that holds `address`; nothing if none does. One system call on Linux 6.11 and
  // later; before, a walk through all mappings.
  Result<std::optional<Mapping>> find(uint64_t address) const;

 private:
  explicit Mappings(Descriptor maps) : maps_(std::move(maps)) {}

  Descriptor maps_;
};

}  // namespace sealane
