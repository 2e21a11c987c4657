// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What a grid needs from the device it runs on.
//
// Implementations are safe from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace sealane::ptx {

// A range of global addresses and the bytes behind it. bytes == 0: nothing is there.
struct Window {
  uint64_t start = 0;
  uint64_t bytes = 0;
  uint8_t* memory = nullptr;
};

class Device {
 public:
  virtual ~Device() = default;
  // The live allocation around an address. What it returns stays memory while the grid runs.
  virtual Window find(uint64_t address) = 0;
  // malloc and free of device code. 0: no room. False: not such a block.
  virtual uint64_t allocate(uint64_t bytes) = 0;
  virtual bool release(uint64_t address) = 0;
  // printf of device code, a grid's output at a time.
  virtual void print(std::string_view text) = 0;
  // True: nobody waits for the grid any more; it ends at the next occasion.
  virtual bool cancelled() = 0;
  virtual uint64_t now_ns() = 0;  // %globaltimer
  // %clock64. Goes on while a kernel runs, whatever time now_ns() tells.
  virtual uint64_t clock() {
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
};

}  // namespace sealane::ptx
