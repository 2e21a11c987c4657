// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Who a GPU is, whoever asks: the driver and NVML must tell the same. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace sealane::emu {

constexpr int kCoreClockKhz = 1980000;  // what device code's clocks count
constexpr int kMemoryClockKhz = 2619000;

// `index` counts the machine's GPUs, whichever of them a process sees.
inline std::array<uint8_t, 16> uuid_of(int index) {
  std::array<uint8_t, 16> out;
  constexpr char kBytes[] = "sealane emulated";
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<uint8_t>(kBytes[i]);
  out[15] = static_cast<uint8_t>('0' + index);
  return out;
}

// As NVML and CUDA_VISIBLE_DEVICES write it.
inline std::string uuid_text(int index) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "GPU-";
  const auto bytes = uuid_of(index);
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += kDigits[bytes[i] >> 4];
    out += kDigits[bytes[i] & 15];
  }
  return out;
}

}  // namespace sealane::emu
