// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "kernels/image.h"
#include "kernels/kernels.h"

namespace examples {

// PTX that names the kernels. The emulated GPU runs what was registered under a name; a real one
// would find nothing to do.
const void* kernel_image() {
#define SEALANE_ENTRY(type, name) ".visible .entry " #name "() { ret; }\n"
  return ".version 8.0\n.target sm_90\n.address_size 64\n" SEALANE_EXAMPLE_KERNELS(SEALANE_ENTRY);
#undef SEALANE_ENTRY
}

}  // namespace examples
