// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is an answered message the one libcrypto would have made, however the driver cuts it and however
// many threads work on it?

#include "serve/messages.h"

#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "seal/find_in_memory_for_tests.h"
#include "seal/openssl.h"

namespace sealane::serve {
namespace {

std::vector<uint8_t> random_bytes(size_t count) {
  std::vector<uint8_t> out(count);
  SystemRandom().fill(out);
  return out;
}

struct Sealed {
  std::vector<uint8_t> plain;
  std::vector<uint8_t> cipher;
  Tag tag;
};

Sealed by_openssl(const std::vector<uint8_t>& key, const Iv& iv, Bytes additional, size_t bytes) {
  Sealed out{random_bytes(bytes), std::vector<uint8_t>(bytes), {}};
  openssl_engine()
      .make(*Key::from_bytes(key))
      ->seal(iv, additional, out.plain, out.cipher, out.tag);
  return out;
}

Tag feed(Message& message, const std::vector<uint8_t>& in, std::vector<uint8_t>& out,
         WorkerPool* pool) {
  for (size_t at = 0; at < in.size();) {
    const size_t piece = std::min(*rc::gen::inRange<size_t>(1, 400000), in.size() - at);
    message.update(&in[at], &out[at], piece, pool);
    at += piece;
  }
  return message.tag(true);
}

RC_GTEST_PROP(Message, IsWhatLibcryptoMakes, ()) {
  static WorkerPool& pool = *new WorkerPool(3);
  const auto key = random_bytes(Key::kBytes);
  const KnownKey known = know_key(std::span<const uint8_t, Key::kBytes>(key));
  if (known.schedule == nullptr) return;  // no engine here: libcrypto serves
  RC_ASSERT(know_key(std::span<const uint8_t, Key::kBytes>(key)).number == known.number);
  Iv iv;
  SystemRandom().fill(iv);
  const auto additional = random_bytes(*rc::gen::inRange<size_t>(0, 40));
  const Sealed right = by_openssl(key, iv, additional, *rc::gen::inRange<size_t>(1, 700000));
  WorkerPool* const help = *rc::gen::arbitrary<bool>() ? &pool : nullptr;

  Message message;
  for (const Direction direction : {Direction::to_device, Direction::to_host}) {
    const bool seals = direction == Direction::to_device;
    RC_ASSERT(message.set_key(known.schedule, known.number, direction));
    message.begin(iv);
    if (!additional.empty()) RC_ASSERT(message.add_additional(additional));
    std::vector<uint8_t> out(right.plain.size());
    const Tag tag = feed(message, seals ? right.plain : right.cipher, out, help);
    RC_ASSERT(out == (seals ? right.cipher : right.plain));
    RC_ASSERT(tag == right.tag);
  }
}

// By then it may be somebody else's: the driver named it for that call alone, as libcrypto has it.
TEST(Message, TouchesNoOutputBehindTheCallThatNamedIt) {
  const auto key = random_bytes(Key::kBytes);
  const KnownKey known = know_key(std::span<const uint8_t, Key::kBytes>(key));
  if (known.schedule == nullptr) GTEST_SKIP() << "no engine here: libcrypto serves";
  Message message;
  ASSERT_TRUE(message.set_key(known.schedule, known.number, Direction::to_host));
  const auto in = random_bytes(1000);
  std::vector<uint8_t> out(1000);
  const auto others = random_bytes(1000);
  for (int round = 0; round < 2; ++round) {
    message.begin({});
    message.update(in.data(), out.data(), 300, nullptr);
    std::copy_n(others.begin(), 300, out.begin());
    message.update(&in[300], &out[300], 700, nullptr);
    out = others;
    message.tag(true);
    EXPECT_EQ(out, others);
  }
}

// Are bytes and tag right in both directions if the output lies so far above the input, or below
// it? `head`: an update of its own, elsewhere.
void expect_right_at(ptrdiff_t distance, size_t bytes, size_t head, WorkerPool* pool) {
  const auto key = random_bytes(Key::kBytes);
  const KnownKey known = know_key(std::span<const uint8_t, Key::kBytes>(key));
  if (known.schedule == nullptr) return;  // no engine here: libcrypto serves
  const Iv iv = {7};
  const Sealed right = by_openssl(key, iv, {}, bytes);
  for (const Direction direction : {Direction::to_device, Direction::to_host}) {
    const bool seals = direction == Direction::to_device;
    const auto& text = seals ? right.plain : right.cipher;
    Message message;
    ASSERT_TRUE(message.set_key(known.schedule, known.number, direction));
    message.begin(iv);
    std::vector<uint8_t> made(bytes);
    message.update(text.data(), made.data(), head, pool);
    std::vector<uint8_t> memory(bytes + static_cast<size_t>(std::abs(distance)));
    uint8_t* const in = memory.data() + std::max<ptrdiff_t>(0, -distance);
    uint8_t* const out = in + distance;
    std::copy_n(text.data() + head, bytes - head, in);
    message.update(in, out, bytes - head, pool);
    std::copy_n(out, bytes - head, made.data() + head);
    EXPECT_TRUE(made == (seals ? right.cipher : right.plain)) << seals << " " << distance;
    EXPECT_EQ(message.tag(true), right.tag) << seals << " " << distance;
  }
}

// Parts in any order, as workers do them. libcrypto is right about an output below its input; about
// one above it it is wrong, in ways that depend on the CPU.
TEST(Message, IsRightIfItsOutputOverlapsItsInput) {
  WorkerPool backwards(WorkerPool::Backwards{4});
  for (const ptrdiff_t distance : {1, 15, 16, 64, 1000, 4096, 100'000, 299'999}) {
    for (WorkerPool* const pool : {static_cast<WorkerPool*>(nullptr), &backwards}) {
      expect_right_at(distance, 300'007, 5, pool);
      expect_right_at(-distance, 300'007, 5, pool);
    }
  }
}

RC_GTEST_PROP(Message, IsRightWhereverItsOutputIs, ()) {
  const auto bytes = *rc::gen::inRange<size_t>(1, 9000);
  const auto near = *rc::gen::element<ptrdiff_t>(20, 300, 9000);
  expect_right_at(*rc::gen::inRange<ptrdiff_t>(-near, near), bytes,
                  std::min(*rc::gen::inRange<size_t>(0, 40), bytes), nullptr);
}

// With the ciphertext, which anybody has, a message's hash gives the key that signs.
TEST(Message, KeepsNothingOfItsHashBehindTheTag) {
  const auto key = random_bytes(Key::kBytes);
  const KnownKey known = know_key(std::span<const uint8_t, Key::kBytes>(key));
  if (known.schedule == nullptr) GTEST_SKIP() << "no engine here: libcrypto serves";
  const auto in = random_bytes(4096);
  std::vector<uint8_t> out(in.size());
  const Iv iv = {1};
  const GcmHash hash = known.schedule->seal_part(iv, 0, in.data(), out.data(), in.size());
  Message message;
  ASSERT_TRUE(message.set_key(known.schedule, known.number, Direction::to_device));
  message.begin(iv);
  const auto holds_it = [&] {
    const auto* const begin = reinterpret_cast<const uint8_t*>(&message);
    const auto* const needle = reinterpret_cast<const uint8_t*>(&hash);
    return std::search(begin, begin + sizeof message, needle, needle + sizeof hash) !=
           begin + sizeof message;
  };
  message.update(in.data(), out.data(), in.size(), nullptr);
  EXPECT_FALSE(holds_it()) << "it waits among keys: see the next test";
  message.tag(true);
  EXPECT_FALSE(holds_it());
}

// The 33rd bit of the counter does not exist: what came behind would have the keystream of the
// beginning. libcrypto refuses there, too.
TEST(Message, HasNoRoomBeyondGcmsLongest) {
  Message message;
  message.begin(Iv{});
  EXPECT_TRUE(message.has_room(kGcmMessageBytesMax));
  EXPECT_FALSE(message.has_room(kGcmMessageBytesMax + 1));
  uint8_t some = 0;
  message.pass(&some, &some, kGcmMessageBytesMax - 5);
  EXPECT_TRUE(message.has_room(5));
  EXPECT_FALSE(message.has_room(6));
}

// What a message is made of on its way, by its engine alone: nothing else in memory is like it.
struct OnTheWay {
  static constexpr size_t kBytes = 200'009;  // more than a pool's part, and some of a block
  static constexpr uint64_t kBlocks = kBytes / kGcmBlockBytes;
  Iv iv = {1};
  std::vector<uint8_t> in = random_bytes(kBytes);
  std::vector<uint8_t> out = std::vector<uint8_t>(kBytes);
  std::vector<uint8_t> additional = random_bytes(24);

  template <typename Secret>
  static Needle needle(Secret secret) {
    static_assert(sizeof secret == kGcmBlockBytes);
    const MutableBytes bytes(reinterpret_cast<uint8_t*>(&secret), sizeof secret);
    Needle made(bytes);
    wipe(bytes);
    return made;
  }
  static GcmBlock padded(Bytes bytes) {
    GcmBlock block{};
    std::copy(bytes.begin(), bytes.end(), block.begin());
    return block;
  }
  GcmHash of_additional(const SplitGcm& gcm) const {
    const Bytes all(additional);
    return gcm.join(gcm.join({}, padded(all.first(16))), padded(all.subspan(16)));
  }
  Needle of_keystream(const SplitGcm& gcm) const {
    GcmBlock stream;
    gcm.keystream(iv, kBlocks, stream);
    Needle made(stream);
    wipe(stream);
    return made;
  }
  GcmHash of_bytes(const SplitGcm& gcm) {
    return gcm.seal_part(iv, 0, in.data(), out.data(), kBlocks * kGcmBlockBytes);
  }
};

// An update's caller may take its time until the next one.
TEST(Message, ItsHashWaitsAmongKeysAndGoesWithTheTag) {
  if (!kMemoryIsSearchable) GTEST_SKIP() << "a sanitizer's memory is too large to search";
  auto key = random_bytes(Key::kBytes);
  const KnownKey known = know_key(std::span<const uint8_t, Key::kBytes>(key));
  wipe(key);
  if (known.schedule == nullptr) GTEST_SKIP() << "no engine here: libcrypto serves";
  const SplitGcm& gcm = *known.schedule;
  OnTheWay way;
  Needle of_additional = way.needle(way.of_additional(gcm));
  Needle of_additional_moved = way.needle(gcm.join(way.of_additional(gcm), {}, way.kBlocks));
  Needle of_bytes = way.needle(way.of_bytes(gcm));
  Needle waiting = way.needle(gcm.join(way.of_additional(gcm), way.of_bytes(gcm), way.kBlocks));
  Needle keystream = way.of_keystream(gcm);
  static WorkerPool& pool = *new WorkerPool(3);
  std::vector<uint8_t> memory(way.kBytes + 16);
  enum class How : uint8_t { alone, helped, over_its_input };
  for (const How how : {How::alone, How::helped, How::over_its_input}) {
    WorkerPool* const help = how == How::alone ? nullptr : &pool;
    const bool over = how == How::over_its_input;
    uint8_t* const out = over ? &memory[16] : way.out.data();
    const uint8_t* const in = over ? memory.data() : way.in.data();
    std::copy(way.in.begin(), way.in.end(), memory.begin());
    Message message;
    ASSERT_TRUE(message.set_key(known.schedule, known.number, Direction::to_device));
    message.begin(way.iv);
    wipe_stack<64 << 10>();
    message.add_additional(way.additional);
    EXPECT_EQ(places_among_secrets(of_additional), 1);
    message.update(in, out, way.kBytes, help);
    EXPECT_EQ(places_among_secrets(waiting), 1);
    EXPECT_EQ(places_among_secrets(keystream), 1);
    for (Needle* gone : {&of_additional, &of_additional_moved, &of_bytes}) {
      EXPECT_EQ(gone->places(), "");
    }
    Message copy;
    copy.go_on_from(message);
    EXPECT_EQ(places_among_secrets(waiting), 2);
    const Tag tag = message.tag(true);
    EXPECT_EQ(copy.tag(true), tag);
    for (Needle* gone : {&waiting, &keystream}) EXPECT_EQ(gone->places(), "");
  }
}

}  // namespace
}  // namespace sealane::serve
