// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What a copy would have cost without Sealane: CC mode as shipped, estimated from a platform's
// measured numbers (platforms/*.toml, the same formula as platform/cost.h):
//
//   toll once; on the caller's core, per message, AEAD + message cost + staging if pageable, while
//   the link moves the message before.
//
// Not in it: the time the copy would have waited for its stream to drain, which only the real thing
// can tell. So it is a lower bound of what callers would have waited. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/copy.h"

namespace sealane::serve {

struct StockCosts {
  struct Path {
    double toll_us;
    double pageable_toll_us;
    double message_us;
    double link_gb_per_s;
    double staging_gb_per_s;
    double stock_aead_gb_per_s;
  };
  // Platform h100-tdx; docs/watching.md names the sources.
  Path to_device{15.3, 36.84, 8.96, 55.4, 28.7, 11.36};
  Path to_host{10.2, 46.85, 8.24, 55.5, 24.5, 11.74};
  double message_bytes_max = 1048576;
  double message_ramp_bytes = 65536;
  double memcpy_gb_per_s = 10.7;
  double fast_aead_gb_per_s = 11.36;
  std::string from = "h100-tdx";  // whose numbers they are

  const Path& path(Direction direction) const {
    return direction == Direction::to_device ? to_device : to_host;
  }
  double copy_ns(Direction direction, bool pinned, uint64_t bytes) const;
  double aead_ns(Direction direction, uint64_t bytes) const {
    return static_cast<double>(bytes) / path(direction).stock_aead_gb_per_s;
  }
};

// From words "platform=NAME to_device.cc.toll_us=15.3 …", as `sealane run` makes them of a platform
// file. What is not among them, or makes no sense, keeps its default. Null: the defaults.
StockCosts read_stock_costs(const char* words);

}  // namespace sealane::serve
