// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "kernels/image.h"

namespace examples {

const void* kernel_image() { return ".version 8.0\n.target sm_90\n.address_size 64\n"; }

}  // namespace examples
