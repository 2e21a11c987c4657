// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// AES-256-GCM of the device: its own code, never the process's libcrypto, so that nothing a program
// (or our own preload) does to libcrypto can change what the device accepts. ipsec-mb with hidden
// symbols where the CPU can run it, a plain implementation elsewhere.
//
// An object may be used by one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/bytes.h"

namespace sealane::emu {

using GcmKey = std::array<uint8_t, 32>;
using GcmIv = std::array<uint8_t, 12>;
using GcmTag = std::array<uint8_t, 16>;

class Gcm {
 public:
  virtual ~Gcm() = default;
  virtual void seal(const GcmIv& iv, Bytes additional, Bytes plaintext, uint8_t* ciphertext,
                    GcmTag& tag) = 0;
  // False, and a wiped output, if the tag is not genuine. Reads each ciphertext byte once.
  virtual bool open(const GcmIv& iv, Bytes additional, Bytes ciphertext, const GcmTag& tag,
                    uint8_t* plaintext) = 0;
};

std::unique_ptr<Gcm> make_gcm(const GcmKey& key);

std::unique_ptr<Gcm> make_ipsec_mb_gcm(const GcmKey& key);  // nullptr: not on this CPU or build
std::unique_ptr<Gcm> make_portable_gcm(const GcmKey& key);

}  // namespace sealane::emu
