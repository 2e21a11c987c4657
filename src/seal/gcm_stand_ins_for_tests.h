// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The loop at the widths of VAES on any CPU with AES-NI: two or four blocks in as many registers
// stand in for one of 256 or 512 bits. The same strides, powers, steps and tails, so that tests and
// valgrind, which knows no VAES, run every line of gcm_loop.h as those widths do. x86-64 only.
#pragma once

#include "seal/engine.h"
#include "seal/gcm_width.h"

namespace sealane {

const GcmWidth& two_blocks_width();
const GcmWidth& four_blocks_width();
const Engine& two_blocks_engine();
const Engine& four_blocks_engine();

}  // namespace sealane
