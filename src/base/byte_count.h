// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Amounts of memory as people write and read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sealane {

// "4096", "64K", "1M", "1G"; K, M and G are powers of 1024, small letters too. A usage error unless
// the whole text is such an amount and 1 <= amount <= limit.
Result<uint64_t> parse_byte_count(std::string_view text, uint64_t limit);

// "100 B", "64 KiB", "4 MiB", "1 GiB": the largest unit that divides it.
std::string format_byte_count(uint64_t bytes);

}  // namespace sealane
