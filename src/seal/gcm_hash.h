// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// For gcm_loop.h: GCM's hash, of single blocks and of a stride in steps that are put between AES
// instructions. Four half products of a vector are made of three (Karatsuba): where this loop is
// the fastest a product costs more than the additions that save it.
#pragma once

#include <algorithm>
#include <utility>

#include "seal/gcm_blocks.h"

namespace sealane {
namespace {

template <typename V>
struct Ghash {
  using Type = typename V::Type;
  using Shape = GcmShape<V>;
  static constexpr size_t kVectors = Shape::kVectors;
  static constexpr size_t kLanes = Shape::kLanes;
  static constexpr size_t kBlocks = Shape::kBlocks;
  static_assert(kBlocks < GcmKey::kPowers && kLanes - 1 <= GcmKey::kSpare);
  static_assert(kVectors % 2 == 0);  // the last one's products wait for no other

  // A sum of products; `middle` is of the halves' sums.
  struct Products {
    Type low, middle, high;
  };
  struct Sums {
    Products sum;
    Products waiting;  // of V::kAddsThree: products that go in together with the next one
  };

  // Steps of a stride's n-th vector.
  template <size_t step, size_t n>
  SEALANE_WIDE_INLINE static void add_product(Sums& to, Type& blocks, const GcmBlock* power,
                                              const GcmBlock* folded) {
    if constexpr (step == 1)
      accumulate<n>(to.sum.low, to.waiting.low, V::template multiply<0x00>(blocks, V::load(power)));
    if constexpr (step == 2)
      accumulate<n>(to.sum.high, to.waiting.high,
                    V::template multiply<0x11>(blocks, V::load(power)));
    if constexpr (step == 3) blocks = V::add(blocks, V::swap(blocks));
    if constexpr (step == 4)
      accumulate<n>(to.sum.middle, to.waiting.middle,
                    V::template multiply<0x00>(blocks, V::load(folded)));
  }
  // An order the compiler keeps: it would rather collect all products first, and has no room.
  template <size_t n>
  SEALANE_WIDE_INLINE static void accumulate(Type& sum, Type& waiting, Type product) {
    if constexpr (n == 0) {
      sum = product;
    } else if constexpr (V::kAddsThree && n % 2 == 1 && n + 1 < kVectors) {
      waiting = product;
      V::keep(waiting);
      return;
    } else if constexpr (V::kAddsThree && n % 2 == 0) {
      sum = V::add(sum, waiting, product);
    } else {
      sum = V::add(sum, product);
    }
    V::keep(sum);
  }

  static constexpr size_t kVectorSteps = 5;     // the first brings the blocks
  static constexpr size_t kReductionSteps = 6;  // the last leaves the hash in the first lane
  template <size_t step>
  SEALANE_WIDE_INLINE static void reduce_step(Products& sum, Type& hash) {
    if constexpr (step == 0) sum.middle = V::add(sum.middle, sum.low, sum.high);
    if constexpr (step == 1) sum.low = V::add(sum.low, V::shift_up(sum.middle));
    if constexpr (step == 2) sum.high = V::add(sum.high, V::shift_down(sum.middle));
    if constexpr (step == 3 || step == 4) {
      sum.low =
          V::add(V::swap(sum.low), V::template multiply<0x10>(sum.low, V::broadcast(polynomial())));
    }
    if constexpr (step == 5) hash = V::sum_of_lanes(V::add(sum.high, sum.low));
  }
  template <size_t... step>
  SEALANE_WIDE_INLINE static void reduce(Products& sum, Type& hash, std::index_sequence<step...>) {
    (reduce_step<step>(sum, hash), ...);
  }

  // The hash of one stride in steps, to be put between others. The vector that the hash so far goes
  // in with is the last: it may still be on its way.
  template <bool opening, bool ends>
  struct Hashing {
    const GcmKey& key;
    uint8_t* held;
    Type hash;
    const uint8_t* in = nullptr;       // of opening: exposed
    const uint8_t* lengths = nullptr;  // of the stride that ends a message: hashed behind it
    Sums sums = {};
    Type blocks = {};

    static constexpr size_t kSteps = kVectors * kVectorSteps + kReductionSteps;
    static constexpr size_t kSlots = Shape::kSlots;

    template <size_t slot>
    SEALANE_WIDE_INLINE void in_slot() {
      constexpr size_t n = (slot * kSteps + kSlots - 1) / kSlots;
      if constexpr (n < kSteps && n * kSlots / kSteps == slot) step<n>();
    }
    template <size_t n>
    SEALANE_WIDE_INLINE void step() {
      if constexpr (ends && n == kVectors * kVectorSteps) add_lengths(key, sums, lengths);
      if constexpr (n >= kVectors * kVectorSteps) {
        reduce_step<n - kVectors * kVectorSteps>(sums.sum, hash);
      } else {
        constexpr size_t i = (n / kVectorSteps + 1) % kVectors;
        if constexpr (n % kVectorSteps == 0) {
          bring<i>();
        } else {
          constexpr size_t power = GcmKey::kPowers - kBlocks + i * kLanes - ends;
          add_product<n % kVectorSteps, n / kVectorSteps>(sums, blocks, key.powers + power,
                                                          key.folded + power);
        }
      }
    }
    template <size_t i>
    SEALANE_WIDE_INLINE void bring() {
      if constexpr (opening) {
        blocks = V::load(in + i * V::kBytes);
        V::keep(blocks);  // from here on in a register: it is not fetched again
        V::store(held + i * V::kBytes, blocks);
      } else {
        blocks = V::load(held + i * V::kBytes);
      }
      blocks = reversed(blocks);
      if constexpr (i == 0) blocks = V::add(blocks, hash);
    }
  };

  SEALANE_WIDE_INLINE static Type reversed(Type blocks) {
    return V::shuffle(blocks, V::broadcast(reversal()));
  }
  template <size_t n>
  SEALANE_WIDE_INLINE static void add_products(Sums& to, Type vector, const GcmBlock* power,
                                               const GcmBlock* folded) {
    add_product<1, n>(to, vector, power, folded);
    add_product<2, n>(to, vector, power, folded);
    add_product<3, n>(to, vector, power, folded);
    add_product<4, n>(to, vector, power, folded);
  }
  static constexpr size_t kAlone = kVectors - 1;  // a vector that waits for no other
  SEALANE_WIDE_INLINE static void add_lengths(const GcmKey& key, Sums& to, const uint8_t* lengths) {
    constexpr size_t first = GcmKey::kPowers - 1;
    add_products<kAlone>(to, reversed(V::load(lengths)), key.powers + first, key.folded + first);
  }

  // Up to kPowers blocks with one reduction, the lengths behind them among those. Of a last vector
  // that is not full the rest is zeros.
  struct Run {
    const GcmBlock* power;
    const GcmBlock* folded;
    Type hash;  // what goes in with the first vector
    Sums sums = {{V::zero(), V::zero(), V::zero()}, {}};

    SEALANE_WIDE_INLINE Run(const GcmKey& key, Type so_far, size_t blocks)
        : power(key.powers + (GcmKey::kPowers - blocks)),
          folded(key.folded + (GcmKey::kPowers - blocks)),
          hash(so_far) {}
    SEALANE_WIDE_INLINE void add(Type blocks) {
      add_products<kAlone>(sums, V::add(reversed(blocks), hash), power, folded);
      hash = V::zero();
      power += kLanes;
      folded += kLanes;
    }
    SEALANE_WIDE_INLINE Type sum() {
      reduce(sums.sum, hash, std::make_index_sequence<kReductionSteps>());
      return hash;
    }
  };

  // A stride of registers, with the lengths behind it if the message ends. Those are at hand before
  // the stride's last rounds are done, so they go first.
  template <size_t... i>
  SEALANE_WIDE_INLINE static Type hash_stride(const GcmKey& key, Type hash, const Type* stride,
                                              const uint8_t* lengths, bool ends,
                                              std::index_sequence<i...>) {
    Run run(key, hash, kBlocks + ends);
    if (ends) add_lengths(key, run.sums, lengths);
    (run.add(stride[i]), ...);
    return run.sum();
  }
  SEALANE_WIDE_INLINE static Type hash_one(const GcmKey& key, Type hash, Type block) {
    Run run(key, hash, 1);
    run.add(block);
    return run.sum();
  }
  SEALANE_WIDE_INLINE static __m128i hash_padded(const GcmKey& key, __m128i so_far, Bytes bytes) {
    Type hash = V::first_lane(so_far);
    while (!bytes.empty()) {
      const size_t count = std::min(bytes.size(), GcmKey::kPowers * kGcmBlockBytes);
      Run run(key, hash, (count + kGcmBlockBytes - 1) / kGcmBlockBytes);
      for (size_t at = 0; at < count; at += V::kBytes) {
        const uint8_t* const from = bytes.data() + at;
        run.add(count - at < V::kBytes ? V::load_few(from, count - at) : V::load(from));
      }
      hash = run.sum();
      bytes = bytes.subspan(count);
    }
    return V::lane(hash);
  }
  // By a power of H, which is times x as all of them are.
  SEALANE_WIDE_INLINE static Type multiplied(Type a, Type b) {
    Products sum = {V::template multiply<0x00>(a, b),
                    V::template multiply<0x00>(V::add(a, V::swap(a)), V::add(b, V::swap(b))),
                    V::template multiply<0x11>(a, b)};
    Type product;
    reduce(sum, product, std::make_index_sequence<kReductionSteps>());
    return product;
  }
  SEALANE_WIDE static GcmHash join(const GcmHash* powers, GcmHash before, GcmHash part,
                                   uint64_t blocks) {
    Type moved = V::first_lane(element(before));
    for (; blocks != 0; ++powers, blocks >>= 1) {
      if ((blocks & 1) != 0) moved = multiplied(moved, V::first_lane(element(*powers)));
    }
    const GcmHash sum = hash_of(V::lane(V::add(moved, V::first_lane(element(part)))));
    V::clear_registers();
    return sum;
  }
  SEALANE_WIDE static GcmHash hash(const GcmKey& key, GcmHash so_far, Bytes bytes) {
    const GcmHash sum = hash_of(hash_padded(key, element(so_far), bytes));
    V::clear_registers();
    return sum;
  }
};

}  // namespace
}  // namespace sealane
