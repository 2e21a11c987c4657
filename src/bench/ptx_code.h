// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The device code `sealane bench ptx` runs: bench.ptx, put into the program.
#pragma once

#include <string_view>

namespace sealane::bench {

std::string_view ptx_code();

}  // namespace sealane::bench
