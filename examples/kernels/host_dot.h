// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace examples {

// dot() on a CPU, with the widest vectors it has. The order of the sums, and so every bit of the
// result, does not depend on which.
float host_dot(const float* a, const float* b, uint32_t count);

}  // namespace examples
