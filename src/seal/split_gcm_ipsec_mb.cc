// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <intel-ipsec-mb.h>

#include "seal/gcm_field.h"
#include "seal/ipsec_mb.h"
#include "seal/split_gcm.h"

namespace sealane {
namespace {

using namespace gcm_field;

constexpr size_t kRounds = 14;
constexpr size_t kPowers = 32;  // H^(2^k): enough for GCM's longest message

// Single blocks of AES: the subkey H and masks of tags.
class BlockCipher {
 public:
  BlockCipher(IMB_MGR* manager, const uint8_t* key) {
    alignas(16) uint8_t unused[sizeof round_keys_];
    IMB_AES_KEYEXP_256(manager, key, round_keys_, unused);
    wipe(unused);
  }
  ~BlockCipher() { wipe(round_keys_); }
  BlockCipher(const BlockCipher&) = delete;
  BlockCipher& operator=(const BlockCipher&) = delete;

  __attribute__((target("aes,sse4.1"))) GcmBlock encrypt(const GcmBlock& in) const {
    const auto* keys = reinterpret_cast<const __m128i*>(round_keys_);
    __m128i state = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in.data()));
    state = _mm_xor_si128(state, _mm_load_si128(keys));
    for (size_t i = 1; i < kRounds; ++i) state = _mm_aesenc_si128(state, _mm_load_si128(keys + i));
    state = _mm_aesenclast_si128(state, _mm_load_si128(keys + kRounds));
    GcmBlock out;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out.data()), state);
    return out;
  }

 private:
  alignas(16) uint8_t round_keys_[(kRounds + 1) * kGcmBlockBytes];
};

// The counter block of the block before the message's `block`th; the engine starts one after it.
GcmBlock counter_before(const Iv& iv, uint64_t block) {
  GcmBlock out;
  std::memcpy(out.data(), iv.data(), iv.size());
  const uint32_t count = __builtin_bswap32(static_cast<uint32_t>(block + 1));
  std::memcpy(out.data() + iv.size(), &count, sizeof count);
  return out;
}

GcmHash lengths(uint64_t additional_bytes, uint64_t bytes) {
  return {additional_bytes * 8, bytes * 8};
}

class IpsecMbSplitGcm final : public SplitGcm {
 public:
  IpsecMbSplitGcm(IMB_MGR* manager, const uint8_t* key) : manager_(manager), cipher_(manager, key) {
    IMB_AES256_GCM_PRE(manager_, key, &schedule_);
    powers_[0] = load(cipher_.encrypt({}).data());
    for (size_t k = 1; k < kPowers; ++k) powers_[k] = square(powers_[k - 1]);
    inverse_ = invert(powers_[0]);
  }

  ~IpsecMbSplitGcm() override {
    wipe({reinterpret_cast<uint8_t*>(&schedule_), sizeof schedule_});
    wipe({reinterpret_cast<uint8_t*>(&powers_), sizeof powers_});
    wipe({reinterpret_cast<uint8_t*>(&inverse_), sizeof inverse_});
  }

  GcmHash seal_part(const Iv& iv, uint64_t first_block, const uint8_t* in, uint8_t* out,
                    uint64_t bytes) const override {
    Part part(*this, counter_before(iv, first_block));
    IMB_AES256_GCM_ENC_UPDATE(manager_, &schedule_, &part.gcm, out, in, bytes);
    Tag tag;
    IMB_AES256_GCM_ENC_FINALIZE(manager_, &schedule_, &part.gcm, tag.data(), tag.size());
    return part.hash(*this, tag, bytes);
  }

  GcmHash open_part(const Iv& iv, uint64_t first_block, const uint8_t* in, uint8_t* out,
                    uint64_t bytes) const override {
    Part part(*this, counter_before(iv, first_block));
    IMB_AES256_GCM_DEC_UPDATE(manager_, &schedule_, &part.gcm, out, in, bytes);
    Tag tag;
    IMB_AES256_GCM_DEC_FINALIZE(manager_, &schedule_, &part.gcm, tag.data(), tag.size());
    return part.hash(*this, tag, bytes);
  }

  GcmBlock keystream(const Iv& iv, uint64_t block) const override {
    return cipher_.encrypt(counter_before(iv, block + 1));
  }

  GcmHash join(const GcmHash& before, const GcmHash& part, uint64_t blocks) const override {
    if (before == GcmHash{}) return part;
    GcmHash moved = before;
    for (size_t k = 0; blocks != 0; ++k, blocks >>= 1) {
      if ((blocks & 1) != 0) moved = multiply(moved, powers_[k]);
    }
    return add(moved, part);
  }

  GcmHash join(const GcmHash& before, const GcmBlock& block) const override {
    return multiply(add(before, load(block.data())), powers_[0]);
  }

  Tag tag(const Iv& iv, const GcmHash& hash, uint64_t additional_bytes,
          uint64_t bytes) const override {
    const GcmHash all = multiply(add(hash, lengths(additional_bytes, bytes)), powers_[0]);
    return store(add(all, load(cipher_.encrypt(counter_before(iv, 0)).data())));
  }

 private:
  // The engine's state for a "message" whose first counter block is the one given: its IV of 16
  // bytes is v with (v*H + 128)*H = counter.
  struct Part {
    Part(const IpsecMbSplitGcm& owner, const GcmBlock& counter)
        : mask(owner.cipher_.encrypt(counter)) {
      const GcmHash length{0, kGcmBlockBytes * 8};
      const GcmHash halfway = add(multiply(load(counter.data()), owner.inverse_), length);
      const GcmBlock iv = store(multiply(halfway, owner.inverse_));
      IMB_AES256_GCM_INIT_VAR_IV(owner.manager_, &owner.schedule_, &gcm, iv.data(), iv.size(),
                                 iv.data(), 0);
    }
    ~Part() { wipe({reinterpret_cast<uint8_t*>(this), sizeof *this}); }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    // tag = (hash + lengths)*H + mask
    GcmHash hash(const IpsecMbSplitGcm& owner, const Tag& tag, uint64_t bytes) const {
      const GcmHash masked = add(load(tag.data()), load(mask.data()));
      return add(multiply(masked, owner.inverse_), lengths(0, bytes));
    }

    gcm_context_data gcm;
    GcmBlock mask;
  };

  IMB_MGR* const manager_;
  alignas(64) gcm_key_data schedule_;
  const BlockCipher cipher_;
  GcmHash powers_[kPowers];
  GcmHash inverse_;
};

}  // namespace

std::unique_ptr<SplitGcm> SplitGcm::make(std::span<const uint8_t, Key::kBytes> key) {
  auto* manager = static_cast<IMB_MGR*>(ipsec_mb_manager());
  constexpr uint64_t kNeeded = IMB_FEATURE_AESNI | IMB_FEATURE_PCLMULQDQ | IMB_FEATURE_SSE4_2;
  if (manager == nullptr || (manager->features & kNeeded) != kNeeded) return nullptr;
  return std::make_unique<IpsecMbSplitGcm>(manager, key.data());
}

}  // namespace sealane
