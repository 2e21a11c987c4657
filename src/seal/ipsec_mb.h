// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The ipsec-mb engine (Intel's multi-buffer library): VAES where the CPU has it. It reads and
// writes each ciphertext byte once; racing_writer_test.cc proves that for every code path the CPU
// can run. Built on x86-64 only.
#pragma once

#include <span>

#include "seal/engine.h"

namespace sealane {

// The best code path of this CPU, of those that are not hidden (base/cpu.h).
const Engine& ipsec_mb_engine();

// Every code path this CPU can run (SSE, AVX, AVX2, AVX512), each as an engine of its own: tests
// go through all of them, so that what ships elsewhere is proved here too.
std::span<const Engine* const> ipsec_mb_code_paths();

}  // namespace sealane
