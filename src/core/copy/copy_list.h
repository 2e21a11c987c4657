// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The copies that one crossing carries, in their order. Of fixed size: who hands them to the driver
// must not run out of memory.
//
// Pure.
#pragma once

#include <array>
#include <cstddef>

#include "base/check.h"
#include "core/copy/copy_call.h"

namespace sealane {

class CopyList {
 public:
  static constexpr size_t kMax = 32;

  CopyList() = default;
  explicit CopyList(CopyId only) : size_(1) { copies_[0] = only; }

  void push_back(CopyId copy) {
    SEALANE_CHECK(!full(), "more copies than a crossing carries");
    copies_[size_++] = copy;
  }

  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == kMax; }
  size_t size() const { return size_; }
  CopyId front() const { return copies_[0]; }
  CopyId operator[](size_t i) const { return copies_[i]; }
  const CopyId* begin() const { return copies_.data(); }
  const CopyId* end() const { return copies_.data() + size_; }

 private:
  std::array<CopyId, kMax> copies_{};
  size_t size_ = 0;
};

}  // namespace sealane
