// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Do two processes come to the same key, and only if nobody changed a byte and both belong to the
// group?

#include "net/greeting.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>

#include "base/random.h"

namespace sealane::net {
namespace {

Credence with_key(Pairs& pairs, uint8_t digit, std::optional<JobRank> job = std::nullopt) {
  Credence credence;
  credence.job = job;
  std::array<uint8_t, Key::kBytes> bytes;
  bytes.fill(digit);
  credence.credentials.emplace(std::in_place_type<PresharedKey>,
                               PresharedKey{*Key::from_bytes(bytes)});
  credence.pairs = &pairs;
  return credence;
}

Hello some_hello() {
  Hello hello;
  hello.streams = 2;
  hello.chunk_bytes = 128 << 10;
  SystemRandom().fill(hello.connection);
  return hello;
}

// Carries bytes to and fro until nothing moves any more. `on_wire` may change what passes.
struct Meeting {
  std::optional<Greeting> connecting;
  std::optional<Greeting> accepting;

  template <typename OnWire>
  void run(const Credence& one, const Credence& two, OnWire on_wire) {
    connecting.emplace(one, some_hello(), two.pairs->self());
    bool moved = true;
    while (moved) {
      moved = false;
      std::vector<uint8_t> there = connecting->poll_transmit();
      if (!there.empty()) {
        on_wire(there, true);
        moved = true;
        Bytes rest = there;
        if (!accepting) {
          const auto hello = Hello::parse(rest.first(Hello::kBytes));
          if (!hello) return;
          accepting.emplace(two, *hello);
          rest = rest.subspan(Hello::kBytes);
        }
        accepting->handle_received(rest);
      }
      if (!accepting) return;
      std::vector<uint8_t> back = accepting->poll_transmit();
      if (!back.empty()) {
        on_wire(back, false);
        moved = true;
        connecting->handle_received(back);
      }
    }
  }
  bool both_complete() const {
    return connecting->complete() && accepting && accepting->complete();
  }
};

void untouched(std::vector<uint8_t>&, bool) {}

bool same(const Key& a, const Key& b) { return constant_time_equal(a.secret(), b.secret()); }

TEST(Greeting, TwoProcessesOfAGroupComeToTheSameKey) {
  Pairs one;
  Pairs two;
  const Credence a = with_key(one, 7);
  const Credence b = with_key(two, 7);
  Meeting meeting;
  meeting.run(a, b, untouched);
  ASSERT_TRUE(meeting.both_complete());
  EXPECT_FALSE(meeting.connecting->resumed());
  EXPECT_TRUE(same(meeting.connecting->take_secret(), meeting.accepting->take_secret()));
}

TEST(Greeting, TheSecondConnectionNeedsNoSessionAndHasAnotherKey) {
  Pairs one;
  Pairs two;
  const Credence a = with_key(one, 7, JobRank{0, 4});
  const Credence b = with_key(two, 7, JobRank{3, 4});
  Meeting first;
  first.run(a, b, untouched);
  ASSERT_TRUE(first.both_complete());
  Meeting back;  // the other way round
  back.run(b, a, untouched);
  ASSERT_TRUE(back.both_complete());
  EXPECT_TRUE(back.connecting->resumed());
  EXPECT_FALSE(same(first.connecting->take_secret(), back.connecting->take_secret()));
  EXPECT_EQ(back.connecting->peer_name(), "rank 0");
}

// A secret is shared with a process of one rank: it does not speak for another.
TEST(Greeting, ASecretDoesNotResumeUnderAnotherRank) {
  Pairs one;
  Pairs two;
  const Credence a = with_key(one, 7, JobRank{0, 4});
  const Credence b = with_key(two, 7, JobRank{3, 4});
  Meeting first;
  first.run(a, b, untouched);
  ASSERT_TRUE(first.both_complete());
  const Credence other = with_key(two, 7, JobRank{2, 4});
  Meeting back;
  back.run(other, a, untouched);
  ASSERT_TRUE(back.both_complete());
  EXPECT_FALSE(back.connecting->resumed());  // who he is was asked again
}

// Several GPUs in one process of a larger job.
TEST(Greeting, AProcessOfAJobConnectsToItself) {
  Pairs pairs;
  const Credence self = with_key(pairs, 7, JobRank{3, 4});
  Meeting meeting;
  meeting.run(self, self, untouched);
  EXPECT_TRUE(meeting.both_complete());
}

TEST(Greeting, OneThatDoesNotEndIsEnded) {
  Pairs one;
  const Credence a = with_key(one, 7);
  Greeting greeting(a, some_hello());
  std::vector<uint8_t> frames;
  for (int i = 0; i < 10'000; ++i) append_frame(frames, FrameKind::session, {});
  for (int i = 0; i < 1000 && !greeting.failure(); ++i) greeting.handle_received(frames);
  EXPECT_TRUE(greeting.failure());
}

TEST(Pairs, TheOldestSecretGoesFirstAndNothingOfItStays) {
  Pairs pairs;
  SystemRandom random;
  ProcessId first{1};
  const PairId oldest = pairs.add(first, std::nullopt, Key::random(random));
  for (uint32_t i = 0; i < 5000; ++i) {
    ProcessId peer{2};
    store_le(&peer[4], i);
    const PairId name = pairs.add(peer, std::nullopt, Key::random(random));
    ASSERT_TRUE(pairs.find(name, peer, std::nullopt));
  }
  EXPECT_FALSE(pairs.find(oldest, first, std::nullopt));
  EXPECT_FALSE(pairs.with(first));
  EXPECT_TRUE(pairs.with(pairs.self()));  // a process stays its own peer
}

TEST(Greeting, ASecretTheOtherSideHasForgottenIsReplacedByASession) {
  Pairs one;
  Pairs two;
  const Credence a = with_key(one, 7);
  const Credence b = with_key(two, 7);
  Meeting first;
  first.run(a, b, untouched);
  two.forget_all();
  Meeting second;
  second.run(a, b, untouched);
  ASSERT_TRUE(second.both_complete());
  EXPECT_FALSE(second.connecting->resumed());
}

TEST(Greeting, ASessionWhoseHelloWasChangedIsNotRemembered) {
  Pairs one;
  Pairs two;
  const Credence a = with_key(one, 7);
  const Credence b = with_key(two, 7);
  ProcessId changed{};
  Meeting meeting;
  meeting.run(a, b, [&](std::vector<uint8_t>& bytes, bool there) {
    if (!there || changed != ProcessId{}) return;
    Hello hello = *Hello::parse(Bytes(bytes).first(Hello::kBytes));
    hello.process[15] ^= 1;  // the last bit: the order of the two processes stays
    changed = hello.process;
    const auto encoded = hello.encode();
    std::copy(encoded.begin(), encoded.end(), bytes.begin());
  });
  ASSERT_TRUE(meeting.accepting && meeting.accepting->failure());
  EXPECT_FALSE(two.with(changed));
  EXPECT_FALSE(one.with(two.self()));
}

TEST(Greeting, AnotherKeyFailsOnBothSidesAndNamesThePeer) {
  Pairs one;
  Pairs two;
  const Credence a = with_key(one, 7, JobRank{0, 2});
  const Credence b = with_key(two, 8, JobRank{1, 2});
  Meeting meeting;
  meeting.run(a, b, untouched);
  ASSERT_TRUE(meeting.connecting->failure());
  ASSERT_TRUE(meeting.accepting->failure());
  EXPECT_TRUE(meeting.connecting->failure()->message.starts_with("rank 1"));
  EXPECT_TRUE(meeting.accepting->failure()->message.starts_with("rank 0"));
}

TEST(Greeting, RanksThatContradictEachOtherAreRefused) {
  Pairs one;
  Pairs two;
  Meeting same_rank;
  const Credence a = with_key(one, 7, JobRank{1, 2});
  const Credence b = with_key(two, 7, JobRank{1, 2});
  same_rank.run(a, b, untouched);
  EXPECT_FALSE(same_rank.both_complete());
  Meeting other_size;
  const Credence c = with_key(two, 7, JobRank{0, 3});
  other_size.run(a, c, untouched);
  EXPECT_FALSE(other_size.both_complete());
}

// TLS itself does not look at the version in a record's head; the connection's key does.
TEST(Greeting, AByteThatTlsDoesNotAuthenticateIsConfirmedAllTheSame) {
  Pairs one;
  Pairs two;
  const Credence a = with_key(one, 7);
  const Credence b = with_key(two, 7);
  bool changed = false;
  Meeting meeting;
  meeting.run(a, b, [&](std::vector<uint8_t>& bytes, bool) {
    constexpr std::array<uint8_t, 3> kHandshakeRecord = {22, 3, 1};  // and its legacy version
    const auto head =
        std::search(bytes.begin(), bytes.end(), kHandshakeRecord.begin(), kHandshakeRecord.end());
    if (changed || head == bytes.end()) return;
    head[2] = 0;
    changed = true;
  });
  ASSERT_TRUE(changed);
  EXPECT_FALSE(meeting.both_complete());
}

// Any one bit, anywhere: never two ends that both believe in the connection.
RC_GTEST_PROP(Greeting, AChangedBitNeverGivesAConnection, ()) {
  Pairs one;
  Pairs two;
  const Credence a = with_key(one, 7);
  const Credence b = with_key(two, 7);
  if (*rc::gen::arbitrary<bool>()) {  // also where a secret is shared already
    Meeting before;
    before.run(a, b, untouched);
  }
  const auto target = *rc::gen::inRange<size_t>(0, 1500);
  const auto bit = *rc::gen::inRange(0, 8);
  const bool there = *rc::gen::arbitrary<bool>();
  size_t passed = 0;
  bool changed = false;
  Meeting meeting;
  meeting.run(a, b, [&](std::vector<uint8_t>& bytes, bool direction) {
    if (direction != there) return;
    if (!changed && target < passed + bytes.size()) {
      bytes[target - passed] ^= static_cast<uint8_t>(1 << bit);
      changed = true;
    }
    passed += bytes.size();
  });
  RC_ASSERT(!changed || !meeting.both_complete());
}

RC_GTEST_PROP(Greeting, ArbitraryBytesFailOrWaitAndNothingElse,
              (const std::vector<uint8_t>& bytes)) {
  Pairs one;
  const Credence a = with_key(one, 7);
  Greeting greeting(a, some_hello(), ProcessId{1});
  greeting.handle_received(bytes);
  RC_ASSERT(!greeting.complete());
}

}  // namespace
}  // namespace sealane::net
