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

// The best code path of this CPU.
const Engine& ipsec_mb_engine();

// Every code path this CPU can run (SSE, AVX, AVX2, AVX512), each as an engine of its own: tests
// go through all of them, so that what ships elsewhere is proved here too.
std::span<const Engine* const> ipsec_mb_code_paths();

// The library's manager (an IMB_MGR) behind ipsec_mb_engine(), for what is not a whole message;
// nullptr if this CPU cannot run it. A table of functions to the direct calls: any thread may use
// it.
void* ipsec_mb_manager();

}  // namespace sealane
