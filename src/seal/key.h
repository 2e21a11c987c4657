// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A 256-bit key. It can be moved, not copied; it has no way to be printed; it is wiped when it
// dies or is moved from.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>

#include "base/bytes.h"
#include "base/random.h"
#include "base/result.h"

namespace sealane {

class Key {
 public:
  static constexpr size_t kBytes = 32;

  static Key random(Random& random);
  static Result<Key> from_bytes(Bytes bytes);  // a usage error unless 32 bytes

  Key(Key&& other) noexcept;
  Key& operator=(Key&& other) noexcept;
  Key(const Key&) = delete;
  Key& operator=(const Key&) = delete;
  ~Key();

  // The one way to have a second one, spelled out so that a reviewer can find it.
  Key duplicate() const;

  // For key schedules only.
  std::span<const uint8_t, kBytes> secret() const { return bytes_; }

 private:
  Key() = default;

  std::array<uint8_t, kBytes> bytes_{};
};

template <typename Stream>
Stream& operator<<(Stream&, const Key&) = delete;

}  // namespace sealane
