// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How much of a machine Sealane takes unless it is told otherwise.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace sealane {

// Private, locked memory for slots, per machine: a few tens of milliseconds of a full-speed link.
constexpr uint64_t kSlotBytesDefault = 256_MiB;

}  // namespace sealane
