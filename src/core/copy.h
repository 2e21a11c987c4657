// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the core knows of a copy between host and device. Addresses are numbers here: the core
// compares and orders them and never follows one.
#pragma once

#include <cstdint>

#include "base/range.h"  // IWYU pragma: export

namespace sealane {

enum class Direction : uint8_t { to_device, to_host };

// How the host side of a copy was allocated. CUDA promises differ: a pageable source may be reused
// as soon as the call returns, a pinned one only after the copy.
enum class MemoryKind : uint8_t { pageable, pinned, managed };

}  // namespace sealane
