// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Any message, anywhere in memory, cut anyhow, with any delivery beside it: every engine that can
// run here makes what OpenSSL makes, opens it again, and touches nothing else.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "seal/delivery.h"
#include "seal/engine.h"
#include "seal/engines_for_tests.h"
#include "seal/native.h"
#include "seal/openssl.h"
#include "seal/reduce.h"
#include "seal/split_gcm.h"

using namespace sealane;

namespace {

// What the input decides, byte by byte; zeros when it ends.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : left_(data, size) {}
  uint32_t below(uint32_t bound) {
    uint32_t value = 0;
    for (int i = 0; i < 3; ++i) {
      value = value << 8 | (left_.empty() ? 0 : left_[0]);
      if (!left_.empty()) left_ = left_.subspan(1);
    }
    return value % bound;
  }
  // Mostly short, and mostly around the edges of blocks and strides.
  size_t length() {
    switch (below(4)) {
      case 0:
        return below(70'000);
      case 1:
        return below(300) * 16;
      case 2:
        return below(40) * 256 + below(3);
      default:
        return below(600);
    }
  }

 private:
  Bytes left_;
};

// Memory at any offset from a line, between bytes that must stay as they are.
class Fenced {
 public:
  Fenced(size_t bytes, size_t offset) : storage_(bytes + 3 * kFence, 0xa5), offset_(offset) {}
  MutableBytes bytes() {
    return MutableBytes(storage_).subspan(kFence + offset_, storage_.size() - 3 * kFence);
  }
  void check() const {
    const auto same = [](uint8_t byte) { return byte == 0xa5; };
    const auto begin = storage_.begin() + static_cast<std::ptrdiff_t>(kFence + offset_);
    SEALANE_CHECK(std::all_of(storage_.begin(), begin, same), "written before the output");
    const auto end = begin + static_cast<std::ptrdiff_t>(storage_.size() - 3 * kFence);
    SEALANE_CHECK(std::all_of(end, storage_.end(), same), "written behind the output");
  }

 private:
  static constexpr size_t kFence = 64;
  std::vector<uint8_t> storage_;
  size_t offset_;
};

std::vector<Bytes> cut(Bytes whole, Choices& choices) {
  std::vector<Bytes> pieces;
  for (uint32_t cuts = choices.below(4); cuts > 0; --cuts) {
    const size_t count = choices.below(static_cast<uint32_t>(whole.size()) + 1);
    pieces.push_back(whole.first(count));
    whole = whole.subspan(count);
  }
  pieces.push_back(whole);
  return pieces;
}

struct Message {
  std::vector<uint8_t> key = std::vector<uint8_t>(Key::kBytes);
  Iv iv;
  std::vector<uint8_t> additional;
  std::vector<uint8_t> plain;
  std::vector<uint8_t> sealed;  // by OpenSSL
  Tag tag;

  explicit Message(Choices& choices)
      : additional(choices.below(400)), plain(choices.length()), sealed(plain.size()) {
    SeededRandom random(choices.below(1 << 24));
    for (MutableBytes bytes :
         {MutableBytes(key), MutableBytes(iv), MutableBytes(additional), MutableBytes(plain)}) {
      random.fill(bytes);
    }
    openssl_engine().make(secret())->seal(iv, additional, plain, sealed, tag);
  }
  Key secret() const { return *Key::from_bytes(key); }
};

void whole(const Message& message, const Engine& engine, Choices& choices) {
  const auto aead = engine.make(message.secret());
  const size_t bytes = message.plain.size();
  Fenced out(bytes, choices.below(64));
  Tag tag;
  const bool in_place = choices.below(2) == 0;
  if (in_place) std::ranges::copy(message.plain, out.bytes().begin());
  in_place
      ? aead->seal(message.iv, message.additional, Bytes(out.bytes()), out.bytes(), tag)
      : aead->seal(message.iv, message.additional, cut(message.plain, choices), out.bytes(), tag);
  SEALANE_CHECK(std::ranges::equal(out.bytes(), message.sealed), "sealed otherwise");
  SEALANE_CHECK(tag == message.tag, "another tag");
  out.check();

  Fenced back(bytes, choices.below(64));
  const auto pieces = cut(message.sealed, choices);
  SEALANE_CHECK(aead->open(message.iv, message.additional, pieces, tag, back.bytes()).ok(),
                "refused what is genuine");
  SEALANE_CHECK(std::ranges::equal(back.bytes(), message.plain), "opened otherwise");
  back.check();
  tag[choices.below(kTagBytes)] ^= static_cast<uint8_t>(1 << choices.below(8));
  SEALANE_CHECK(!aead->open(message.iv, message.additional, pieces, tag, back.bytes()).ok(),
                "opened with a forged tag");
  SEALANE_CHECK(std::ranges::all_of(back.bytes(), [](uint8_t byte) { return byte == 0; }),
                "delivered with a forged tag");
}

// As floating-point numbers none is a NaN: which one a sum of two keeps is nobody's promise.
std::vector<uint8_t> numbers(Bytes bytes) {
  std::vector<uint8_t> made(bytes.begin(), bytes.end());
  for (size_t i = 1; i < made.size(); i += 2) made[i] &= 0xbf;
  return made;
}

void delivered(const Message& message, const Engine& engine, Choices& choices) {
  constexpr ElementType kTypes[] = {ElementType::float32, ElementType::float16,
                                    ElementType::bfloat16, ElementType::int32};
  constexpr ReduceOperator kOperators[] = {ReduceOperator::sum, ReduceOperator::min,
                                           ReduceOperator::max};
  const size_t bytes = message.plain.size() / 4 * 4;
  if (bytes == 0) return;
  const auto first = numbers(Bytes(message.plain).first(bytes));
  const auto second = numbers(Bytes(message.sealed).first(bytes));
  Fenced to(bytes, choices.below(64));
  Delivery delivery;
  delivery.first = first;
  if (choices.below(4) != 0) delivery.second = second;
  delivery.type = kTypes[choices.below(std::size(kTypes))];
  delivery.op = kOperators[choices.below(std::size(kOperators))];
  delivery.to = to.bytes();
  delivery.streamed = choices.below(2) == 0;
  delivery.sealed_streamed = choices.below(2) == 0;
  std::vector<uint8_t> expected = first;
  if (delivery.combines()) reduce(delivery.type, delivery.op, first, second, expected);

  const auto aead = engine.make(message.secret());
  Fenced sealed(bytes, choices.below(64));
  Tag tag;
  aead->seal(message.iv, message.additional, delivery, sealed.bytes(), tag);
  SEALANE_CHECK(std::ranges::equal(to.bytes(), expected), "delivered otherwise while sealing");
  std::vector<uint8_t> opened(bytes);
  const auto judge = openssl_engine().make(message.secret());
  SEALANE_CHECK(
      judge->open(message.iv, message.additional, Bytes(sealed.bytes()), tag, opened).ok(),
      "sealed what OpenSSL refuses");
  SEALANE_CHECK(opened == expected, "sealed something else than was delivered");

  std::ranges::fill(to.bytes(), uint8_t{0});
  Fenced back(message.plain.size(), choices.below(64));
  SEALANE_CHECK(aead->open(message.iv, message.additional, message.sealed, message.tag,
                           back.bytes(), delivery)
                    .ok(),
                "refused what is genuine beside a delivery");
  SEALANE_CHECK(std::ranges::equal(back.bytes(), message.plain), "opened otherwise");
  SEALANE_CHECK(std::ranges::equal(to.bytes(), expected), "delivered otherwise while opening");
  to.check();
  sealed.check();
  back.check();
}

void parts(const Message& message, Choices& choices) {
  const auto widths = native_widths();
  if (widths.empty()) return;
  const SplitGcm gcm(*widths[choices.below(static_cast<uint32_t>(widths.size()))],
                     std::span<const uint8_t, Key::kBytes>(message.key));
  Fenced out(message.plain.size(), choices.below(64));
  GcmHash hash;
  const size_t blocks_before = message.additional.size() / kGcmBlockBytes;
  for (size_t i = 0; i < blocks_before; ++i) {
    GcmBlock block;
    std::memcpy(block.data(), message.additional.data() + i * kGcmBlockBytes, kGcmBlockBytes);
    hash = gcm.join(hash, block);
  }
  const size_t rest = message.additional.size() % kGcmBlockBytes;
  if (rest != 0) {
    GcmBlock block{};
    std::memcpy(block.data(), message.additional.data() + blocks_before * kGcmBlockBytes, rest);
    hash = gcm.join(hash, block);
  }
  for (uint64_t at = 0; at < message.plain.size();) {
    const uint64_t count =
        std::min<uint64_t>((1 + choices.below(1500)) * kGcmBlockBytes, message.plain.size() - at);
    const GcmHash part =
        gcm.seal_part(message.iv, at / kGcmBlockBytes, &message.plain[at], &out.bytes()[at], count);
    hash = gcm.join(hash, part, (count + kGcmBlockBytes - 1) / kGcmBlockBytes);
    at += count;
  }
  SEALANE_CHECK(std::ranges::equal(out.bytes(), message.sealed), "parts sealed otherwise");
  SEALANE_CHECK(
      gcm.tag(message.iv, hash, message.additional.size(), message.plain.size()) == message.tag,
      "parts have another tag");
  out.check();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Choices choices(data, size);
  static const auto& engines = *new std::vector<const Engine*>(engines_under_test());
  const Engine& engine = *engines[choices.below(static_cast<uint32_t>(engines.size()))];
  const Message message(choices);
  switch (choices.below(3)) {
    case 0:
      whole(message, engine, choices);
      break;
    case 1:
      delivered(message, engine, choices);
      break;
    default:
      parts(message, choices);
  }
  return 0;
}
