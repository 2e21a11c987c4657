// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What a test makes happen at a moment of its choice (abi/sealane_emu.h, sealane_emu_disturb),
// beside what the configuration says happens by itself.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace sealane::emu {

struct Disturbances {
  std::atomic<uint32_t> rotations{0};  // asked for so far; a channel follows at its next transfer
  std::atomic<uint32_t> messages{0};   // of the driver, still to be sent to the device
};

Disturbances& disturbances();

bool disturb(std::string_view what);  // false: no such word

}  // namespace sealane::emu
