// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// AES-256-GCM as the standard describes it: slow, short, and independent of every library. Not
// constant-time: the emulated GPU guards no secret.

#include <bit>
#include <cstring>

#include "emu/channel/gcm.h"

namespace sealane::emu {
namespace {

using Block = std::array<uint8_t, 16>;

uint8_t times_x(uint8_t a) { return static_cast<uint8_t>((a << 1) ^ ((a >> 7) * 0x1b)); }

// The S-box: inverse in GF(2^8), then an affine map. Walks all non-zero elements as powers of 3
// (p) and of its inverse (q), so that q is always the inverse of p.
std::array<uint8_t, 256> make_sbox() {
  std::array<uint8_t, 256> box{};
  uint8_t p = 1;
  uint8_t q = 1;
  do {
    p = static_cast<uint8_t>(p ^ times_x(p));
    q = static_cast<uint8_t>(q ^ (q << 1));
    q = static_cast<uint8_t>(q ^ (q << 2));
    q = static_cast<uint8_t>(q ^ (q << 4));
    if (q & 0x80) q ^= 0x09;
    box[p] = static_cast<uint8_t>(q ^ std::rotl(q, 1) ^ std::rotl(q, 2) ^ std::rotl(q, 3) ^
                                  std::rotl(q, 4) ^ 0x63);
  } while (p != 1);
  box[0] = 0x63;
  return box;
}

const std::array<uint8_t, 256>& sbox() {
  static const std::array<uint8_t, 256> box = make_sbox();
  return box;
}

constexpr int kRounds = 14;

class PortableGcm final : public Gcm {
 public:
  explicit PortableGcm(const GcmKey& key) {
    expand(key);
    const Block h = encrypt(Block{});
    hash_key_[0] = load_be(h.data());
    hash_key_[1] = load_be(h.data() + 8);
  }

  void seal(const GcmIv& iv, Bytes additional, Bytes plaintext, uint8_t* ciphertext,
            GcmTag& tag) override {
    apply_keystream(iv, plaintext, ciphertext);
    tag = tag_of(iv, additional, {ciphertext, plaintext.size()});
  }

  bool open(const GcmIv& iv, Bytes additional, Bytes ciphertext, const GcmTag& tag,
            uint8_t* plaintext) override {
    // One read of the shared bytes: hash and decrypt the same copy.
    std::memmove(plaintext, ciphertext.data(), ciphertext.size());
    const MutableBytes copied(plaintext, ciphertext.size());
    const GcmTag computed = tag_of(iv, additional, copied);
    apply_keystream(iv, copied, plaintext);
    if (constant_time_equal(computed, tag)) return true;
    wipe(copied);
    return false;
  }

 private:
  static uint64_t load_be(const uint8_t* from) {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | from[i];
    return value;
  }

  void expand(const GcmKey& key) {
    std::memcpy(round_keys_[0].data(), key.data(), 32);
    uint8_t* words = round_keys_[0].data();
    uint8_t constant = 1;
    for (int i = 8; i < 4 * (kRounds + 1); ++i) {
      uint8_t word[4];
      std::memcpy(word, words + 4 * (i - 1), 4);
      if (i % 8 == 0) {
        const uint8_t first = word[0];
        for (int j = 0; j < 3; ++j) word[j] = sbox()[word[j + 1]];
        word[3] = sbox()[first];
        word[0] ^= constant;
        constant = times_x(constant);
      } else if (i % 8 == 4) {
        for (uint8_t& byte : word) byte = sbox()[byte];
      }
      for (int j = 0; j < 4; ++j) words[4 * i + j] = words[4 * (i - 8) + j] ^ word[j];
    }
  }

  Block encrypt(Block state) const {
    add(state, round_keys_[0]);
    for (int round = 1; round <= kRounds; ++round) {
      Block shifted;
      for (int i = 0; i < 16; ++i) shifted[i] = sbox()[state[(i + 4 * (i % 4)) % 16]];
      if (round < kRounds) mix_columns(shifted);
      add(shifted, round_keys_[round]);
      state = shifted;
    }
    return state;
  }

  static void add(Block& state, const Block& key) {
    for (int i = 0; i < 16; ++i) state[i] ^= key[i];
  }

  static void mix_columns(Block& state) {
    for (int column = 0; column < 16; column += 4) {
      uint8_t* c = state.data() + column;
      const uint8_t all = c[0] ^ c[1] ^ c[2] ^ c[3];
      const uint8_t first = c[0];
      for (int i = 0; i < 3; ++i) c[i] ^= all ^ times_x(c[i] ^ c[i + 1]);
      c[3] ^= all ^ times_x(c[3] ^ first);
    }
  }

  Block counter_block(const GcmIv& iv, uint32_t counter) const {
    Block block;
    std::memcpy(block.data(), iv.data(), iv.size());
    for (int i = 0; i < 4; ++i) block[12 + i] = static_cast<uint8_t>(counter >> (24 - 8 * i));
    return encrypt(block);
  }

  void apply_keystream(const GcmIv& iv, Bytes in, uint8_t* out) const {
    uint32_t counter = 2;  // 1 masks the tag
    for (size_t offset = 0; offset < in.size(); offset += 16, ++counter) {
      const Block stream = counter_block(iv, counter);
      const size_t count = std::min<size_t>(16, in.size() - offset);
      for (size_t i = 0; i < count; ++i) out[offset + i] = in[offset + i] ^ stream[i];
    }
  }

  // hash = (hash + block) * H, bit by bit.
  void absorb(uint64_t (&hash)[2], uint64_t high, uint64_t low) const {
    const uint64_t x[2] = {hash[0] ^ high, hash[1] ^ low};
    uint64_t v[2] = {hash_key_[0], hash_key_[1]};
    hash[0] = hash[1] = 0;
    for (int i = 0; i < 128; ++i) {
      const uint64_t take = 0 - (x[i / 64] >> (63 - i % 64) & 1);
      hash[0] ^= v[0] & take;
      hash[1] ^= v[1] & take;
      const uint64_t carry = 0 - (v[1] & 1);
      v[1] = v[1] >> 1 | v[0] << 63;
      v[0] = v[0] >> 1 ^ (carry & 0xe100000000000000);
    }
  }

  void absorb_all(uint64_t (&hash)[2], Bytes bytes) const {
    for (size_t offset = 0; offset < bytes.size(); offset += 16) {
      Block block{};
      std::memcpy(block.data(), bytes.data() + offset, std::min<size_t>(16, bytes.size() - offset));
      absorb(hash, load_be(block.data()), load_be(block.data() + 8));
    }
  }

  GcmTag tag_of(const GcmIv& iv, Bytes additional, Bytes ciphertext) const {
    uint64_t hash[2] = {0, 0};
    absorb_all(hash, additional);
    absorb_all(hash, ciphertext);
    absorb(hash, additional.size() * 8, ciphertext.size() * 8);
    Block tag = counter_block(iv, 1);
    for (int i = 0; i < 16; ++i) tag[i] ^= static_cast<uint8_t>(hash[i / 8] >> (56 - 8 * (i % 8)));
    return tag;
  }

  std::array<Block, kRounds + 1> round_keys_{};
  uint64_t hash_key_[2];
};

}  // namespace

std::unique_ptr<Gcm> make_portable_gcm(const GcmKey& key) {
  return std::make_unique<PortableGcm>(key);
}

}  // namespace sealane::emu
