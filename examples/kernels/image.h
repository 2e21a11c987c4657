// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace examples {

// The module with the kernels: their names, for the emulated GPU (image_emulated.cc), or what nvcc
// made of kernels.cu (image_embedded.cc).
const void* kernel_image();

}  // namespace examples
