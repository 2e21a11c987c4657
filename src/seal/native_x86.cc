// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/cpu.h"
#include "base/log.h"
#include "base/text.h"
#include "seal/delivery.h"
#include "seal/engine_check.h"
#include "seal/native.h"
#include "seal/secret_memory.h"

namespace sealane {
namespace {

// A message whose pieces may end anywhere, as parts that end with whole blocks: what is left of a
// piece goes through a block of private memory, together with the beginning of the next.
// Its hash so far is here and nowhere else, and wiped with it.
class Gathering {
 public:
  using Crypt = GcmHash (*)(const GcmKey& key, const GcmPart& part);
  Gathering(const GcmKey& key, Crypt crypt, const Iv& iv, uint8_t* out)
      : key_(key), crypt_(crypt), part_{.iv = iv, .out = out} {}
  ~Gathering() {
    wipe(block_);
    wipe({reinterpret_cast<uint8_t*>(&part_.so_far), sizeof part_.so_far});
  }
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

  GcmHash& hash() { return part_.so_far; }
  void add(Bytes piece) {
    while (!piece.empty()) {
      const size_t whole = piece.size() / kGcmBlockBytes * kGcmBlockBytes;
      const size_t count =
          begun_ == 0 && whole != 0 ? whole : std::min(piece.size(), kGcmBlockBytes - begun_);
      if (begun_ == 0 && whole != 0) {
        part(piece.data(), whole);
      } else {
        copy_from_shared(piece.first(count), MutableBytes(block_).subspan(begun_, count));
        begun_ += count;
        if (begun_ == kGcmBlockBytes) part_of_block();
      }
      piece = piece.subspan(count);
    }
  }
  void finish() {
    if (begun_ != 0) part_of_block();
  }

 private:
  void part_of_block() { part(block_.data(), std::exchange(begun_, 0)); }
  void part(const uint8_t* in, size_t bytes) {
    part_.in = in;
    part_.bytes = bytes;
    part_.so_far = crypt_(key_, part_);
    part_.first_block += bytes / kGcmBlockBytes;
    part_.out += bytes;
  }

  const GcmKey& key_;
  Crypt crypt_;
  GcmPart part_;
  GcmBlock block_{};
  size_t begun_ = 0;
};

class NativeAead final : public Aead {
 public:
  NativeAead(const GcmWidth& width, const Key& key) : width_(width) {
    width_.schedule(*key_, key.secret());
  }

 private:
  void do_seal(const Iv& iv, Bytes additional, std::span<const Bytes> plaintext,
               MutableBytes ciphertext, Tag& tag) const override {
    if (plaintext.size() == 1) {
      tag = width_.seal_whole(*key_, part(iv, plaintext[0], ciphertext), additional);
      return;
    }
    tag = gather(width_.seal, iv, additional, plaintext, ciphertext);
  }

  bool do_open(const Iv& iv, Bytes additional, std::span<const Bytes> ciphertext, const Tag& tag,
               MutableBytes plaintext) const override {
    if (ciphertext.size() == 1) {
      return same(width_.open_whole(*key_, part(iv, ciphertext[0], plaintext), additional), tag);
    }
    return same(gather(width_.open, iv, additional, ciphertext, plaintext), tag);
  }

  void do_seal_delivered(const Iv& iv, Bytes additional, const Delivery& source,
                         MutableBytes ciphertext, Tag& tag) const override {
    GcmPart delivered = part(iv, source.first, ciphertext);
    delivered.streamed |= source.sealed_streamed;
    if (source.empty()) {
      tag = width_.seal_whole(*key_, delivered, additional);
      return;
    }
    PiecewiseDelivery delivery(source, true);
    delivered.beside = &delivery;
    tag = width_.seal_whole(*key_, delivered, additional);
    delivery.finish();
  }

  bool do_open_beside(const Iv& iv, Bytes additional, Bytes ciphertext, const Tag& tag,
                      MutableBytes plaintext, const Delivery& beside) const override {
    if (beside.empty()) return do_open(iv, additional, {&ciphertext, 1}, tag, plaintext);
    PiecewiseDelivery delivery(beside, false);
    GcmPart opened = part(iv, ciphertext, plaintext);
    opened.beside = &delivery;
    const Tag computed = width_.open_whole(*key_, opened, additional);
    delivery.finish();
    return same(computed, tag);
  }

  GcmPart part(const Iv& iv, Bytes in, MutableBytes out) const {
    const bool streamed = out.size() >= width_.streamed_bytes_min && in.data() != out.data();
    return {iv, 0, {}, in.data(), out.data(), out.size(), streamed, nullptr};
  }

  Tag gather(Gathering::Crypt with, const Iv& iv, Bytes additional, std::span<const Bytes> pieces,
             MutableBytes out) const {
    Gathering gathering(*key_, with, iv, out.data());
    gathering.hash() = width_.hash(*key_, {}, additional);
    for (const Bytes piece : pieces) gathering.add(piece);
    gathering.finish();
    return width_.tag(*key_, iv, gathering.hash(), additional.size(), out.size());
  }

  static bool same(Tag computed, const Tag& tag) {
    const bool equal = constant_time_equal(computed, tag);
    computed = {};
    asm volatile("" : : "r"(computed.data()) : "memory");  // wiped, in the time of a store
    return equal;
  }

  const GcmWidth& width_;
  Secret<GcmKey> key_;
};

class NativeEngine final : public Engine {
 public:
  NativeEngine(const GcmWidth& width, std::string_view name, std::string_view version,
               std::initializer_list<CpuFeature> needed)
      : width_(width), name_(name), version_(version) {
    for (const CpuFeature feature : needed) needed_[static_cast<size_t>(feature)] = true;
  }

  std::string_view name() const override { return name_; }
  std::string version() const override { return std::string(version_); }
  Status available() const override {
    std::string lacking;
    for (const CpuFeatureState& state : cpu_features()) {
      if (!needed_[static_cast<size_t>(state.feature)] || cpu_has(state.feature)) continue;
      lacking += concat(lacking.empty() ? "" : ", ", state.name,
                        state.present ? " (hidden by SEALANE_CPU)" : "");
    }
    if (lacking.empty()) return {};
    return usage_error(concat(name_, " cannot run on this CPU: it lacks ", lacking));
  }
  std::unique_ptr<Aead> make(const Key& key) const override {
    SEALANE_CHECK(available().ok(), "engine used on a CPU that cannot run it");
    return make_native_aead(width_, key);
  }
  const GcmWidth& width() const { return width_; }

 private:
  const GcmWidth& width_;
  std::string_view name_;
  std::string_view version_;
  std::array<bool, 5> needed_{};
};

// Leaked on purpose: engines outlive every exit handler.
std::span<const NativeEngine* const> widths() {
  using enum CpuFeature;
  static const auto& engines = *new std::array<const NativeEngine*, 3>{
      new NativeEngine(kVaes512Width, "vaes-512", "own loop (VAES on 512 bits)",
                       {avx, avx2, aes, vaes, avx512}),
      new NativeEngine(kVaes256Width, "vaes-256", "own loop (VAES on 256 bits)",
                       {avx, avx2, aes, vaes}),
      new NativeEngine(kAesNiWidth, "aes-ni", "own loop (AES-NI)", {avx, aes})};
  return engines;
}

const NativeEngine* choose_width() {
  const char* wanted = std::getenv("SEALANE_AEAD");
  std::vector<const Engine*> candidates;
  for (const NativeEngine* engine : widths()) {
    if (!engine->available()) continue;
    if (const Status right = known_answers(*engine); !right) {
      SEALANE_LOG(warn, "%s", right.error().message.c_str());
      return nullptr;  // a machine whose AES is wrong
    }
    if (wanted != nullptr && engine->name() == wanted) return engine;
    candidates.push_back(engine);
  }
  const Engine* const best = fastest(measure_rates(candidates, SteadyClock()));
  const auto found = std::ranges::find(widths(), best);
  return found != widths().end() ? *found : nullptr;
}

}  // namespace

std::span<const Engine* const> native_engines() {
  static const auto& engines = *new std::vector<const Engine*>(widths().begin(), widths().end());
  return engines;
}

std::vector<const GcmWidth*> native_widths() {
  std::vector<const GcmWidth*> found;
  for (const NativeEngine* engine : widths()) {
    if (engine->available()) found.push_back(&engine->width());
  }
  return found;
}

std::unique_ptr<Aead> make_native_aead(const GcmWidth& width, const Key& key) {
  return std::make_unique<NativeAead>(width, key);
}

const GcmWidth* native_width() {
  static const NativeEngine* const chosen = choose_width();
  return chosen != nullptr ? &chosen->width() : nullptr;
}

GcmBlock gcm_counter(const Iv& iv, uint64_t counter) {
  GcmBlock block;
  std::copy(iv.begin(), iv.end(), block.begin());
  const uint32_t count = __builtin_bswap32(static_cast<uint32_t>(counter));
  std::memcpy(block.data() + iv.size(), &count, sizeof count);
  return block;
}

}  // namespace sealane
