// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Is sealing what is delivered, or opening beside a delivery, the same as doing one after the
// other, for every engine, type, operator, length and alignment? And is what was tampered with
// refused?

#include "seal/delivery.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "seal/engines_for_tests.h"
#include "seal/reduce.h"

namespace sealane {
namespace {

Key some_key() {
  SeededRandom random(12);
  return Key::random(random);
}

// Memory at a given distance from a cache line.
class Area {
 public:
  Area(size_t bytes, size_t past_line, uint64_t seed) : bytes_(bytes), storage_(bytes + 128) {
    SeededRandom(seed).fill(storage_);
    const size_t at = reinterpret_cast<uintptr_t>(storage_.data()) % 64;
    offset_ = (64 - at) % 64 + past_line;
  }
  MutableBytes bytes() { return MutableBytes(storage_).subspan(offset_, bytes_); }

 private:
  size_t bytes_;
  std::vector<uint8_t> storage_;
  size_t offset_ = 0;
};

// Whole strides of the fused loops more often than not, and everything else.
rc::Gen<size_t> any_length() {
  return rc::gen::oneOf(
      rc::gen::map(rc::gen::inRange<size_t>(0, 20), [](size_t n) { return n * 256; }),
      rc::gen::map(rc::gen::inRange<size_t>(0, 2000), [](size_t n) { return n * 8; }),
      rc::gen::just(size_t{64_KiB}));
}

struct Case {
  Case()
      : bytes(*any_length()),
        type(static_cast<ElementType>(*rc::gen::inRange(1, 8))),
        op(*rc::gen::element(ReduceOperator::sum, ReduceOperator::min, ReduceOperator::max)),
        combines(*rc::gen::arbitrary<bool>()),
        in_place(*rc::gen::arbitrary<bool>()),
        first(bytes, *past_line(), 1),
        second(bytes, *past_line(), 2),
        to(bytes, *past_line(), 3),
        additional(*rc::gen::inRange<size_t>(0, 70)) {
    // Of two that are not numbers a sum is either, by the compiler's choice: here one is at most.
    for (size_t high = 1; high < bytes; high += 2) first.bytes()[high] &= 0xbf;
    SystemRandom().fill(additional);
    SystemRandom().fill(iv);
    delivery.first = first.bytes();
    if (combines) delivery.second = second.bytes();
    delivery.type = type;
    delivery.op = op;
    delivery.to = in_place ? first.bytes() : to.bytes();
    delivery.streamed = *rc::gen::arbitrary<bool>();
    delivery.sealed_streamed = *rc::gen::arbitrary<bool>();
    expected.assign(first.bytes().begin(), first.bytes().end());
    if (combines) reduce(type, op, first.bytes(), second.bytes(), expected);
  }
  static rc::Gen<size_t> past_line() {
    return rc::gen::map(rc::gen::inRange<size_t>(0, 8), [](size_t n) { return n * 8; });
  }

  size_t bytes;
  ElementType type;
  ReduceOperator op;
  bool combines;
  bool in_place;
  Area first;
  Area second;
  Area to;
  std::vector<uint8_t> additional;
  Iv iv;
  Delivery delivery;
  std::vector<uint8_t> expected;  // of the delivery
};

const Engine& any_engine() {
  const auto engines = engines_under_test();
  return *engines[*rc::gen::inRange<size_t>(0, engines.size())];
}

RC_GTEST_PROP(Delivery, SealedIsWhatIsDelivered, ()) {
  Case c;
  Area sealed(c.bytes, *rc::gen::element(0, 8), 0);
  const bool delivers = c.combines || *rc::gen::arbitrary<bool>();  // else sealed where it lies
  if (!delivers) c.delivery.to = {};
  Tag tag;
  any_engine().make(some_key())->seal(c.iv, c.additional, c.delivery, sealed.bytes(), tag);
  if (delivers) RC_ASSERT(std::ranges::equal(c.delivery.to, c.expected));
  std::vector<uint8_t> opened(c.bytes);
  const auto judge = openssl_engine().make(some_key());
  RC_ASSERT(judge->open(c.iv, c.additional, sealed.bytes(), tag, opened).ok());
  RC_ASSERT(opened == c.expected);
}

RC_GTEST_PROP(Delivery, OpeningBesideItChangesNeither, ()) {
  Case c;
  const size_t bytes = *rc::gen::arbitrary<bool>() ? c.bytes : *any_length();
  Area plaintext(bytes, 8, 5);
  Area sealed(bytes, *Case::past_line(), 0);
  Area opened(bytes, *Case::past_line(), 0);
  Tag tag;
  openssl_engine()
      .make(some_key())
      ->seal(c.iv, c.additional, plaintext.bytes(), sealed.bytes(), tag);
  const auto aead = any_engine().make(some_key());
  RC_ASSERT(aead->open(c.iv, c.additional, sealed.bytes(), tag, opened.bytes(), c.delivery).ok());
  RC_ASSERT(std::ranges::equal(opened.bytes(), plaintext.bytes()));
  RC_ASSERT(std::ranges::equal(c.delivery.to, c.expected));
}

RC_GTEST_PROP(Delivery, WhatWasTamperedWithIsRefusedAndWiped, ()) {
  Case c;
  RC_PRE(c.bytes > 0);
  const auto aead = any_engine().make(some_key());
  std::vector<uint8_t> sealed(c.bytes);
  std::vector<uint8_t> opened(c.bytes, 0xee);
  Tag tag;
  aead->seal(c.iv, c.additional, std::vector<uint8_t>(c.bytes, 7), sealed, tag);
  std::vector<MutableBytes> parts = {sealed, tag, c.iv};
  if (!c.additional.empty()) parts.push_back(c.additional);
  const MutableBytes part = *rc::gen::elementOf(parts);
  part[*rc::gen::inRange<size_t>(0, part.size())] ^=
      static_cast<uint8_t>(1 << *rc::gen::inRange(0, 8));
  RC_ASSERT(!aead->open(c.iv, c.additional, sealed, tag, opened, c.delivery).ok());
  RC_ASSERT(opened == std::vector<uint8_t>(c.bytes, 0));
}

}  // namespace
}  // namespace sealane
