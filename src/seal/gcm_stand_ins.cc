// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#define SEALANE_GCM_TARGET "prfchw,avx,aes,pclmul"
#include <array>
#include <utility>

#include "seal/gcm_stand_ins_for_tests.h"
#include "seal/gcm_xmm.h"
#include "seal/native.h"

namespace sealane {
namespace {

template <size_t lanes, size_t vectors, bool adds_three>
struct Several {
  using Short = Several<lanes, adds_three ? 4 : vectors, adds_three>;
  struct Type {
    __m128i v[lanes];
  };
  static constexpr size_t kBytes = lanes * kGcmBlockBytes;
  static constexpr size_t kVectors = vectors;
  static constexpr uint64_t kStreamedBytesMin = 256_KiB;
  static constexpr uint64_t kTableBytesMin = 8_KiB;  // of a part: below, a table does not pay
  static constexpr bool kAddsThree = adds_three;

  template <typename One, size_t... i>
  SEALANE_WIDE_INLINE static Type each(One one, std::index_sequence<i...>) {
    return {{one(i)...}};
  }
#define SEALANE_EACH(expression)                                                             \
  each(                                                                                      \
      [&](size_t i)                                                                          \
          __attribute__((target(SEALANE_GCM_TARGET), always_inline)) { return expression; }, \
      std::make_index_sequence<lanes>())
  SEALANE_WIDE_INLINE static Type load(const void* from) {
    return SEALANE_EACH(block_at(static_cast<const uint8_t*>(from) + 16 * i));
  }
  SEALANE_WIDE_INLINE static Type load_few(const uint8_t* from, size_t bytes) {
    return SEALANE_EACH(bytes > 16 * i ? block_of_few(from + 16 * i, bytes - 16 * i) : Xmm::zero());
  }
  SEALANE_WIDE_INLINE static Type only(const Type& a, size_t bytes) {
    return SEALANE_EACH(bytes > 16 * i ? Xmm::only(a.v[i], bytes - 16 * i) : Xmm::zero());
  }
  SEALANE_WIDE_INLINE static void store(void* to, const Type& a) {
    for (size_t i = 0; i < lanes; ++i) store_block(static_cast<uint8_t*>(to) + 16 * i, a.v[i]);
  }
  SEALANE_WIDE_INLINE static void store_few(uint8_t* to, const Type& a, size_t bytes) {
    for (size_t i = 0; 16 * i < bytes; ++i) {
      sealane::store_few(to + 16 * i, a.v[i], bytes - 16 * i);
    }
  }
  SEALANE_WIDE_INLINE static void put(void* to, const Type& a, bool streamed) {
    for (size_t i = 0; i < lanes; ++i)
      Xmm::put(static_cast<uint8_t*>(to) + 16 * i, a.v[i], streamed);
  }
  SEALANE_WIDE_INLINE static Type zero() { return SEALANE_EACH((void(i), Xmm::zero())); }
  SEALANE_WIDE_INLINE static Type broadcast(__m128i block) {
    return SEALANE_EACH((void(i), block));
  }
  SEALANE_WIDE_INLINE static Type first_lane(__m128i block) {
    return SEALANE_EACH(i == 0 ? block : Xmm::zero());
  }
  SEALANE_WIDE_INLINE static __m128i lane(const Type& a) { return a.v[0]; }
  SEALANE_WIDE_INLINE static Type sum_of_lanes(const Type& a) {
    __m128i sum = a.v[0];
    for (size_t i = 1; i < lanes; ++i) sum = Xmm::add(sum, a.v[i]);
    return first_lane(sum);
  }
  SEALANE_WIDE_INLINE static Type lane_numbers() {
    return SEALANE_EACH(_mm_set_epi32(0, 0, 0, static_cast<int>(i)));
  }
  SEALANE_WIDE_INLINE static Type add(const Type& a, const Type& b) {
    return SEALANE_EACH(Xmm::add(a.v[i], b.v[i]));
  }
  SEALANE_WIDE_INLINE static Type add(const Type& a, const Type& b, const Type& c) {
    return add(add(a, b), c);
  }
  SEALANE_WIDE_INLINE static Type add_words(const Type& a, const Type& b) {
    return SEALANE_EACH(Xmm::add_words(a.v[i], b.v[i]));
  }
  SEALANE_WIDE_INLINE static Type add_floats(const Type& a, const Type& b) {
    return SEALANE_EACH(Xmm::add_floats(a.v[i], b.v[i]));
  }
  SEALANE_WIDE_INLINE static Type shuffle(const Type& a, const Type& by) {
    return SEALANE_EACH(Xmm::shuffle(a.v[i], by.v[i]));
  }
  SEALANE_WIDE_INLINE static Type swap(const Type& a) { return SEALANE_EACH(Xmm::swap(a.v[i])); }
  SEALANE_WIDE_INLINE static Type shift_up(const Type& a) {
    return SEALANE_EACH(Xmm::shift_up(a.v[i]));
  }
  SEALANE_WIDE_INLINE static Type shift_down(const Type& a) {
    return SEALANE_EACH(Xmm::shift_down(a.v[i]));
  }
  SEALANE_WIDE_INLINE static Type round(const Type& a, const Type& key) {
    return SEALANE_EACH(Xmm::round(a.v[i], key.v[i]));
  }
  SEALANE_WIDE_INLINE static Type last_round(const Type& a, const Type& key) {
    return SEALANE_EACH(Xmm::last_round(a.v[i], key.v[i]));
  }
  template <int halves>
  SEALANE_WIDE_INLINE static Type multiply(const Type& a, const Type& b) {
    return SEALANE_EACH(Xmm::multiply<halves>(a.v[i], b.v[i]));
  }
  SEALANE_WIDE_INLINE static void keep(Type& a) {
    for (__m128i& block : a.v) Xmm::keep(block);
  }
  SEALANE_WIDE_INLINE static void clear_registers() { Xmm::clear_registers(); }
#undef SEALANE_EACH
};

constexpr GcmWidth kTwoBlocks = kWidthOf<Several<2, 8, false>>;
constexpr GcmWidth kFourBlocks = kWidthOf<Several<4, 8, true>>;

class StandIn final : public Engine {
 public:
  StandIn(const GcmWidth& width, std::string_view name) : width_(width), name_(name) {}
  std::string_view name() const override { return name_; }
  std::string version() const override { return std::string(name_); }
  Status available() const override { return native_engines().back()->available(); }  // AES-NI
  std::unique_ptr<Aead> make(const Key& key) const override {
    return make_native_aead(width_, key);
  }

 private:
  const GcmWidth& width_;
  std::string_view name_;
};

}  // namespace

const GcmWidth& two_blocks_width() { return kTwoBlocks; }
const GcmWidth& four_blocks_width() { return kFourBlocks; }

const Engine& two_blocks_engine() {
  static const Engine& engine = *new StandIn(kTwoBlocks, "two blocks in place of VAES-256");
  return engine;
}
const Engine& four_blocks_engine() {
  static const Engine& engine = *new StandIn(kFourBlocks, "four blocks in place of VAES-512");
  return engine;
}

}  // namespace sealane
