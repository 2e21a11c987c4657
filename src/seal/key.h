// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A 256-bit key. It lives in secret memory (seal/secret_memory.h) and nowhere else, can be moved,
// not copied, has no way to be printed, and is wiped when its last holder ends.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>

#include "base/bytes.h"
#include "base/random.h"
#include "base/result.h"
#include "seal/secret_memory.h"

namespace sealane {

class Key {
 public:
  static constexpr size_t kBytes = 32;

  static Key random(Random& random);
  static Result<Key> from_bytes(Bytes bytes);  // a usage error unless 32 bytes

  Key(Key&&) noexcept = default;
  Key& operator=(Key&&) noexcept = default;
  Key(const Key&) = delete;
  Key& operator=(const Key&) = delete;

  // The one way to have a second holder, spelled out so that a reviewer can find it.
  Key duplicate() const;

  // False once moved from, and in a child of the process that made it.
  bool alive() const { return bytes_.alive(); }

  // For key schedules only. Aborts unless alive().
  std::span<const uint8_t, kBytes> secret() const { return *bytes_; }

 private:
  Key() = default;

  Secret<std::array<uint8_t, kBytes>> bytes_;
};

template <typename Stream>
Stream& operator<<(Stream&, const Key&) = delete;

}  // namespace sealane
