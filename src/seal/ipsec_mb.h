// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The ipsec-mb engine (Intel's multi-buffer library): VAES where the CPU has it. It reads and
// writes each ciphertext byte once; racing_writer_test.cc proves that for every code path the CPU
// can run. Built on x86-64 only.
#pragma once

#include "seal/engine.h"

namespace sealane {

const Engine& ipsec_mb_engine();

}  // namespace sealane
