// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <intel-ipsec-mb.h>

#include "emu/channel/gcm.h"

namespace sealane::emu {
namespace {

// A table of functions for this CPU; never freed, device threads outlive main().
IMB_MGR* manager() {
  static IMB_MGR* const made = []() -> IMB_MGR* {
    IMB_MGR* candidate = alloc_mb_mgr(0);
    if (candidate == nullptr) return nullptr;
    init_mb_mgr_auto(candidate, nullptr);
    const bool usable =
        imb_get_errno(candidate) == 0 && (candidate->features & IMB_FEATURE_AESNI) != 0;
    return usable ? candidate : nullptr;
  }();
  return made;
}

class IpsecMbGcm final : public Gcm {
 public:
  explicit IpsecMbGcm(const GcmKey& key) { IMB_AES256_GCM_PRE(manager(), key.data(), &schedule_); }

  void seal(const GcmIv& iv, Bytes additional, Bytes plaintext, uint8_t* ciphertext,
            GcmTag& tag) override {
    gcm_context_data context;
    IMB_AES256_GCM_ENC(manager(), &schedule_, &context, ciphertext, plaintext.data(),
                       plaintext.size(), iv.data(), additional.data(), additional.size(),
                       tag.data(), tag.size());
  }

  bool open(const GcmIv& iv, Bytes additional, Bytes ciphertext, const GcmTag& tag,
            uint8_t* plaintext) override {
    gcm_context_data context;
    GcmTag computed;
    IMB_AES256_GCM_DEC(manager(), &schedule_, &context, plaintext, ciphertext.data(),
                       ciphertext.size(), iv.data(), additional.data(), additional.size(),
                       computed.data(), computed.size());
    if (constant_time_equal(computed, tag)) return true;
    wipe({plaintext, ciphertext.size()});
    return false;
  }

 private:
  alignas(64) gcm_key_data schedule_;
};

}  // namespace

std::unique_ptr<Gcm> make_ipsec_mb_gcm(const GcmKey& key) {
  if (manager() == nullptr) return nullptr;
  return std::make_unique<IpsecMbGcm>(key);
}

}  // namespace sealane::emu
