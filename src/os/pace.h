// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// On the emulated GPU our threads stand for cores of the modelled host: what they do is slept out
// to the time it would take there, and the driver is told which of its AEAD calls were answered. On
// a real GPU there is no such clock and these do nothing. Set once, before the first message.
#pragma once

#include <cstdint>

namespace sealane {

// The emulated driver's functions (emu/abi/sealane_emu.h); all null on a real one.
struct Pace {
  enum Work : int { aead_stock = 0, aead_fast = 1, host_copy = 2, digest = 3 };
  uint64_t (*clock)() = nullptr;
  void (*pace)(int work, uint64_t bytes, uint64_t began) = nullptr;
  void (*answered)(uint64_t bytes) = nullptr;
  void (*go_on)(uint64_t then) = nullptr;
  double (*dilation)() = nullptr;

  uint64_t begin() const { return clock != nullptr ? clock() : 0; }
  void end(Work work, uint64_t bytes, uint64_t began) const {
    if (pace != nullptr) pace(work, bytes, began);
  }
  // The calling thread goes on where another one's work was then (of its begin()).
  void go_on_from(uint64_t then) const {
    if (go_on != nullptr) go_on(then);
  }
  void go_on_now() const { go_on_from(UINT64_MAX); }
  void tell_answered(uint64_t bytes) const {
    if (answered != nullptr) answered(bytes);
  }
};

const Pace& pace();
void set_pace(const Pace& found);

}  // namespace sealane
