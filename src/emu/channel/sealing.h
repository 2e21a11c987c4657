// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The way from the driver to a sealer (emu/seal): which library holds it and which thread runs it
// are switches. Also remembers, per thread, which AEAD work somebody else did in libcrypto's place.
#pragma once

#include <cstdint>
#include <memory>

#include "emu/channel/gcm.h"
#include "emu/device/pace.h"
#include "emu/seal/sealer.h"

namespace sealane::emu {

// The functions, by the configured route; nullptr, with a line on stderr, if there is no way. Two
// builds of the driver define it differently: reach_loaded.cc and reach_linked.cc.
const sealane_emu_sealing* reach_sealing();

// What of an AEAD call somebody answered in libcrypto's place, and when the call returned on the
// modelled machine's clock.
struct Answered {
  uint64_t bytes = 0;
  RealNs at = 0;
};

class Sealer {
 public:
  // nullptr if libcrypto refuses.
  static std::unique_ptr<Sealer> create(const GcmKey& key, bool encrypt);
  ~Sealer();
  Sealer(const Sealer&) = delete;
  Sealer& operator=(const Sealer&) = delete;

  // `begin`: when, on the modelled machine, the message's turn is.
  bool seal(sealane_emu_message& message, RealNs begin, Answered& answered);
  bool open(const sealane_emu_message& message, RealNs begin, Answered& answered);

 private:
  Sealer(const sealane_emu_sealing& functions, sealane_emu_sealer* state)
      : functions_(functions), state_(state) {}

  const sealane_emu_sealing& functions_;
  sealane_emu_sealer* const state_;
};

// See sealane_emu_pace_answered().
void note_answered(uint64_t bytes);

}  // namespace sealane::emu
