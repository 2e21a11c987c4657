// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "used_iv.h"

#include <algorithm>
#include <atomic>

namespace sealane::preload {
namespace {

constexpr int kSetIvLength = 0x9;  // EVP_CTRL_AEAD_SET_IVLEN
constexpr Byte kSome[32] = {1, 2, 3};
constexpr Iv kFirst{1}, kSecond{2};

class Scratch {
 public:
  Scratch(const Libcrypto& libcrypto, const Cipher* cipher, bool sealing)
      : libcrypto_(libcrypto), context_(libcrypto.make()) {
    ready_ = context_ != nullptr && libcrypto.cipher_init_ex2(context_, cipher, kSome,
                                                              kFirst.data(), sealing, nullptr) == 1;
  }
  ~Scratch() { libcrypto_.free(context_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  bool ready() const { return ready_; }
  bool burns() {
    return burn_iv(libcrypto_, context_, kIvBytes) && has_iv(libcrypto_, context_, kFirst) &&
           !has_iv(libcrypto_, context_, kSecond);
  }
  bool takes_additional() { return preload::takes_additional(libcrypto_, context_); }
  bool is_used() { return has_used_iv(libcrypto_, context_); }
  bool takes(bool additional) {
    Byte out[sizeof kSome];
    int count = 0;
    return libcrypto_.cipher_update(context_, additional ? nullptr : out, &count, kSome,
                                    sizeof out) > 0;
  }
  bool ends() {
    Byte out[sizeof kSome];
    int count = 0;
    return libcrypto_.cipher_final_ex(context_, out, &count) > 0;
  }
  bool begins_anew() {
    return libcrypto_.cipher_init_ex2(context_, nullptr, nullptr, kSecond.data(), -1, nullptr) == 1;
  }

 private:
  const Libcrypto& libcrypto_;
  Context* context_;
  bool ready_ = false;
};

enum class Verdict : uint8_t { none, good, bad };

Verdict tried(const Libcrypto& libcrypto, const Cipher* cipher) {
  bool good = true;
  for (const bool sealing : {true, false}) {
    for (const bool additional : {true, false}) {
      Scratch one(libcrypto, cipher, sealing);
      if (!one.ready()) return Verdict::none;  // no memory
      if (additional) good = good && one.takes(true);
      good = good && one.takes_additional() && one.burns() && one.is_used();
      good = good && !one.takes(true) && !one.takes(false) && !one.ends() && !one.takes(false);
      good = good && one.begins_anew() && one.takes_additional() && one.takes(false);
      good = good && !one.takes_additional() && !one.is_used() && one.takes(false);
    }
  }
  return good ? Verdict::good : Verdict::bad;
}

// Few, and never taken back. Whoever finds no place tries every time.
struct Known {
  std::atomic<const Libcrypto*> libcrypto{nullptr};
  std::atomic<const void*> provider{nullptr};
  std::atomic<Verdict> verdict{Verdict::none};
};

}  // namespace

bool refuses_burnt_ivs(const Libcrypto& libcrypto, const Cipher* cipher) {
  static Known known[16];
  const void* const provider = libcrypto.provider_of(cipher);
  for (const Known& one : known) {
    const Verdict verdict = one.verdict.load(std::memory_order_acquire);
    if (verdict == Verdict::none || one.libcrypto != &libcrypto || one.provider != provider) {
      continue;
    }
    return verdict == Verdict::good;
  }
  libcrypto.mark_errors();
  const Verdict made = tried(libcrypto, cipher);
  libcrypto.drop_errors();
  for (Known& one : known) {
    const Libcrypto* nobodys = nullptr;
    if (made == Verdict::none || !one.libcrypto.compare_exchange_strong(nobodys, &libcrypto)) {
      continue;
    }
    one.provider = provider;
    one.verdict.store(made, std::memory_order_release);
    break;
  }
  return made == Verdict::good;
}

bool burn_iv(const Libcrypto& libcrypto, Context* context, size_t iv_bytes) {
  const int bytes = static_cast<int>(iv_bytes);
  const int other = bytes == 13 ? 12 : 13;
  return libcrypto.ctrl(context, kSetIvLength, other, nullptr) > 0 &&
         libcrypto.ctrl(context, kSetIvLength, bytes, nullptr) > 0;
}

bool takes_additional(const Libcrypto& libcrypto, Context* context) {
  return libcrypto.cipher(context, nullptr, kSome, 0) == 0;
}

// The second question would end additional data.
bool has_used_iv(const Libcrypto& libcrypto, Context* context) {
  Byte none[1];
  return !takes_additional(libcrypto, context) && libcrypto.cipher(context, none, kSome, 0) < 0;
}

bool has_iv(const Libcrypto& libcrypto, Context* context, const Iv& iv) {
  constexpr unsigned kOctets = 5;
  Byte now[128];  // as long as any
  Parameter list[] = {{"updated-iv", kOctets, now, sizeof now, 0}, {}};
  if (libcrypto.get_params(context, list) <= 0 || list[0].returned_bytes != iv.size()) return false;
  return std::equal(iv.begin(), iv.end(), now);
}

}  // namespace sealane::preload
