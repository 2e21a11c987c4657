// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is the memory that is copied to the device again still what it was? Guards the program's own
// memory where the kernel can (os/page_guard.h) and asks at the next copy of the same range. Does
// not change what the program sees: a write to a guarded page costs one fault inside the kernel.
//
// Followed are ranges that overlap no other followed one; both their number and their bytes are
// bounded. Not synchronised.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/copy.h"
#include "os/page_guard.h"

namespace sealane::serve {

struct SourceLimits {
  uint64_t range_bytes_min = 1;
  size_t ranges_max = 4096;
  uint64_t bytes_max = uint64_t{8} << 30;
  uint32_t checks_max = UINT32_MAX;  // of one range; then it is left alone
};

class SourceWatch {
 public:
  enum class Answer : uint8_t {
    ignored,     // outside the limits
    first_time,  // guarded from now on
    unchanged,   // since its last copy
    changed,
    unguardable,  // see refusal(); said once
  };

  explicit SourceWatch(const SourceLimits& limits = {}) : limits_(limits) {}

  // The range has just been copied to the device.
  Answer copied(const Range& source);
  void forget(const Range& freed);
  void stop();  // no more guards

  const std::string& refusal() const { return refusal_; }

 private:
  struct Followed {
    uint64_t bytes = 0;
    uint32_t checks = 0;
    bool guarded = false;
  };

  Answer follow(const Range& source);
  bool overlaps_followed(const Range& source) const;
  bool open();

  const SourceLimits limits_;
  std::optional<PageGuards> guards_;
  bool tried_ = false;
  std::string refusal_;
  std::map<uint64_t, Followed> followed_;  // by address
  uint64_t bytes_ = 0;
};

}  // namespace sealane::serve
