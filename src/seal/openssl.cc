// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "seal/openssl.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"

namespace sealane {
namespace {

struct ContextFree {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_CIPHER_CTX, ContextFree>;

enum class Direction { seal, open };

constexpr size_t kUpdateBytesMax = 1_GiB;  // EVP takes int lengths
constexpr size_t kPrivateBytes = 16_KiB;   // half an L1 cache

// Contexts with the key already scheduled, kept for the next call: scheduling costs as much as
// sealing a few KiB. A cell is taken and given back with one atomic exchange; when all are in use
// a further context is made, and freed afterwards.
class ContextPool {
 public:
  ContextPool(const Key& key, Direction direction) : key_(key.duplicate()), direction_(direction) {}

  ~ContextPool() {
    for (auto& cell : cells_) EVP_CIPHER_CTX_free(cell.load());
  }

  Context take() {
    // A child, also one of a bare clone, has the cells and must not have the key that is in them:
    // it would seal other bytes under the parent's IVs.
    SEALANE_CHECK(key_.alive(), "a key used where it is not: made before a fork");
    for (auto& cell : cells_) {
      if (EVP_CIPHER_CTX* context = cell.exchange(nullptr)) return Context(context);
    }
    Context context(EVP_CIPHER_CTX_new());
    SEALANE_CHECK(context != nullptr, "out of memory");
    const int done =
        EVP_CipherInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key_.secret().data(), nullptr,
                          direction_ == Direction::seal ? 1 : 0);
    SEALANE_CHECK(done == 1, "EVP refused an AES-256-GCM key");
    return context;
  }

  void give_back(Context context) {
    for (auto& cell : cells_) {
      EVP_CIPHER_CTX* empty = nullptr;
      if (cell.compare_exchange_strong(empty, context.get())) {
        static_cast<void>(context.release());
        return;
      }
    }
  }

 private:
  Key key_;
  Direction direction_;
  std::array<std::atomic<EVP_CIPHER_CTX*>, 8> cells_{};
};

void start(EVP_CIPHER_CTX* context, const Iv& iv) {
  const int done = EVP_CipherInit_ex(context, nullptr, nullptr, nullptr, iv.data(), -1);
  SEALANE_CHECK(done == 1, "EVP refused an IV");
}

// `out` is null for additional data.
void update(EVP_CIPHER_CTX* context, Bytes in, uint8_t* out) {
  while (!in.empty()) {
    const size_t count = std::min(in.size(), kUpdateBytesMax);
    int written = 0;
    const int done = EVP_CipherUpdate(context, out, &written, in.data(), static_cast<int>(count));
    SEALANE_CHECK(done == 1, "EVP refused data");
    in = in.subspan(count);
    if (out != nullptr) out += count;
  }
}

bool finish(EVP_CIPHER_CTX* context) {
  uint8_t nothing[kTagBytes];
  int written = 0;
  return EVP_CipherFinal_ex(context, nothing, &written) == 1;
}

class OpensslAead final : public Aead {
 public:
  OpensslAead(const Key& key, PrivateCopy private_copy)
      : sealing_(key, Direction::seal),
        opening_(key, Direction::open),
        private_copy_(private_copy == PrivateCopy::yes) {}

 private:
  void do_seal(const Iv& iv, Bytes additional, std::span<const Bytes> plaintext,
               MutableBytes ciphertext, Tag& tag) const override {
    Context context = sealing_.take();
    start(context.get(), iv);
    update(context.get(), additional, nullptr);
    uint8_t* out = ciphertext.data();
    for (const Bytes piece : plaintext) {
      if (private_copy_) {
        seal_through_private(context.get(), piece, out);
      } else {
        update(context.get(), piece, out);
      }
      out += piece.size();
    }
    SEALANE_CHECK(finish(context.get()), "EVP could not finish a seal");
    const int done =
        EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, kTagBytes, tag.data());
    SEALANE_CHECK(done == 1, "EVP gave no tag");
    sealing_.give_back(std::move(context));
  }

  bool do_open(const Iv& iv, Bytes additional, std::span<const Bytes> ciphertext, const Tag& tag,
               MutableBytes plaintext) const override {
    Context context = opening_.take();
    start(context.get(), iv);
    Tag expected = tag;  // EVP takes it as mutable
    const int done =
        EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, kTagBytes, expected.data());
    SEALANE_CHECK(done == 1, "EVP refused a tag");
    update(context.get(), additional, nullptr);
    uint8_t* out = plaintext.data();
    for (const Bytes piece : ciphertext) {
      if (private_copy_) {
        open_through_private(context.get(), piece, out);
      } else {
        update(context.get(), piece, out);
      }
      out += piece.size();
    }
    const bool genuine = finish(context.get());  // CRYPTO_memcmp inside
    opening_.give_back(std::move(context));
    return genuine;
  }

  // The tag is computed from the private ciphertext; the exposed one is only ever written.
  static void seal_through_private(EVP_CIPHER_CTX* context, Bytes in, uint8_t* out) {
    alignas(64) uint8_t private_bytes[kPrivateBytes];
    while (!in.empty()) {
      const size_t count = std::min(in.size(), kPrivateBytes);
      update(context, in.first(count), private_bytes);
      std::memcpy(out, private_bytes, count);
      in = in.subspan(count);
      out += count;
    }
  }

  // The exposed ciphertext is read once, here.
  static void open_through_private(EVP_CIPHER_CTX* context, Bytes in, uint8_t* out) {
    alignas(64) uint8_t private_bytes[kPrivateBytes];
    while (!in.empty()) {
      const size_t count = std::min(in.size(), kPrivateBytes);
      std::memcpy(private_bytes, in.data(), count);
      update(context, {private_bytes, count}, out);
      in = in.subspan(count);
      out += count;
    }
  }

  mutable ContextPool sealing_;
  mutable ContextPool opening_;
  bool private_copy_;
};

class OpensslEngine final : public Engine {
 public:
  std::string_view name() const override { return "openssl"; }
  std::string version() const override { return OpenSSL_version(OPENSSL_VERSION); }
  Status available() const override { return {}; }
  std::unique_ptr<Aead> make(const Key& key) const override {
    return make_openssl_aead(key, PrivateCopy::yes);
  }
};

}  // namespace

std::unique_ptr<Aead> make_openssl_aead(const Key& key, PrivateCopy private_copy) {
  return std::make_unique<OpensslAead>(key, private_copy);
}

const Engine& openssl_engine() {
  static const Engine& engine = *new OpensslEngine;  // outlives every exit handler
  return engine;
}

}  // namespace sealane
