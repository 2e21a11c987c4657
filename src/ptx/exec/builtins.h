// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What device code calls and nobody wrote in PTX: printf, assert, malloc and free.
//
// Called by the worker that runs the warp's block.
#pragma once

#include <string_view>

#include "ptx/kernel.h"

namespace sealane::ptx {

Builtin builtin_named(std::string_view name);

// Fields of a call: lists has the places of returns (d of them) and arguments (a of them).
Flow call_builtin(Warp& warp, const Instr& in, uint32_t mask, Builtin which);

}  // namespace sealane::ptx
