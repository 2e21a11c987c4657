// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace examples {

// Gives the emulated GPU the kernels as host functions. Does nothing where the driver is a real
// one. In a build with nvcc (no_emulator.cc) it never does anything.
void register_emulated_kernels();

}  // namespace examples
