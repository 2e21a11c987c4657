// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the CPU that computes for the device claims to have and does not.
#pragma once

namespace sealane::aten {

// Some hypervisors show a guest AMX but none of its tiles (CPUID leaf 1Dh is empty). PyTorch's
// oneDNN then fails at bfloat16 products, with an error or an illegal instruction: it is told to do
// without, unless the user told it something. Before its first use, on the thread that imports
// PyTorch.
void avoid_matrix_unit_without_tiles();

}  // namespace sealane::aten
