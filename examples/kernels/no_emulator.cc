// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// In place of emulated.cc where nvcc builds the kernels.

#include "kernels/emulated.h"

namespace examples {

void register_emulated_kernels() {}

}  // namespace examples
