// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// AES-256-GCM behind one interface. An Aead is a key scheduled for one engine.
//
// Uniqueness:  an (Aead, Iv) pair seals at most once. Nothing here enforces that; code outside
//              core/lane gets its Iv from a Position, which does.
// Concurrency: seal() and open() may run on any number of threads at once.
// Aliasing:    input and output are the same memory or do not overlap; scattered input never
//              overlaps the output.
// Exposure:    the ciphertext side (output of seal, input of open) may lie in memory an attacker
//              writes meanwhile. Each byte of it is written or read once, so the tag always speaks
//              of the bytes that were sealed or delivered. Plaintext, additional data and tag must
//              be private.
// Failure:     open() compares tags in constant time; on a mismatch the output is wiped.
// Deliveries:  a pass over other memory that the engine does in the same loop if it can, else
// before
//              (delivery.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "seal/key.h"

namespace sealane {

struct Delivery;

constexpr size_t kIvBytes = 12;
constexpr size_t kTagBytes = 16;
using Iv = std::array<uint8_t, kIvBytes>;
using Tag = std::array<uint8_t, kTagBytes>;

// GCM's own bound on one message: 2^32 - 2 counter blocks.
constexpr uint64_t kGcmMessageBytesMax = (uint64_t{1} << 36) - 32;

class Aead {
 public:
  virtual ~Aead() = default;
  Aead(const Aead&) = delete;
  Aead& operator=(const Aead&) = delete;

  // ciphertext.size() equals the size of the plaintext, or of all its pieces together.
  void seal(const Iv& iv, Bytes additional, Bytes plaintext, MutableBytes ciphertext,
            Tag& tag) const;
  void seal(const Iv& iv, Bytes additional, std::span<const Bytes> plaintext,
            MutableBytes ciphertext, Tag& tag) const;

  // A crypto error, and a wiped output, if the tag does not belong to exactly these bytes.
  Status open(const Iv& iv, Bytes additional, Bytes ciphertext, const Tag& tag,
              MutableBytes plaintext) const;
  Status open(const Iv& iv, Bytes additional, std::span<const Bytes> ciphertext, const Tag& tag,
              MutableBytes plaintext) const;

  // Carries out `source`, which is private memory, and seals what it delivers.
  void seal(const Iv& iv, Bytes additional, const Delivery& source, MutableBytes ciphertext,
            Tag& tag) const;
  // Opens as above, and carries out `beside`, which shares no memory with this record.
  Status open(const Iv& iv, Bytes additional, Bytes ciphertext, const Tag& tag,
              MutableBytes plaintext, const Delivery& beside) const;

 protected:
  Aead() = default;

  // In two passes, unless the engine has a better way.
  virtual void do_seal_delivered(const Iv& iv, Bytes additional, const Delivery& source,
                                 MutableBytes ciphertext, Tag& tag) const;
  [[nodiscard]] virtual bool do_open_beside(const Iv& iv, Bytes additional, Bytes ciphertext,
                                            const Tag& tag, MutableBytes plaintext,
                                            const Delivery& beside) const;

 private:
  virtual void do_seal(const Iv& iv, Bytes additional, std::span<const Bytes> plaintext,
                       MutableBytes ciphertext, Tag& tag) const = 0;
  // Decrypts, and says whether `tag` is genuine (compared in constant time). open() does the rest.
  [[nodiscard]] virtual bool do_open(const Iv& iv, Bytes additional,
                                     std::span<const Bytes> ciphertext, const Tag& tag,
                                     MutableBytes plaintext) const = 0;
};

}  // namespace sealane
