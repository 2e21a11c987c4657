// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Can somebody who writes to the shared memory meanwhile get wrong bytes past a valid tag?
//
// Opening: a thread flips one ciphertext byte back and forth while we open. An engine that reads
// the byte once either sees the genuine record, and delivers exactly its plaintext, or refuses. One
// that reads it twice may check one value and decrypt the other.
//
// Sealing: the thread flips a byte of the output while we seal into it. An engine that computes the
// tag from what it wrote, by reading it back, can be made to sign the attacker's byte.
//
// The same race run against OpenSSL without its private copy shows that it can be lost.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.h"
#include "seal/delivery.h"
#include "seal/engines_for_tests.h"

namespace sealane {
namespace {

// Long enough for every way an engine has (a table of counters, a second private buffer), and no
// longer: a race is for one byte, and short records are more races.
constexpr size_t kRecordBytes = 20_KiB;

Key test_key() {
  SeededRandom random(11);
  return Key::random(random);
}

// The attacker's write. Racing is its purpose, so ThreadSanitizer is asked to look away.
[[gnu::noinline, gnu::no_sanitize("thread")]] void toggle(volatile uint8_t* byte) {
  *byte = static_cast<uint8_t>(*byte ^ 1);
}

// While it lives, another thread toggles one bit of *target.
class RacingWriter {
 public:
  explicit RacingWriter(uint8_t* target)
      : thread_([this, target] {
          while (!stop_.load(std::memory_order_relaxed)) {
            toggle(target);
            rounds_.fetch_add(1, std::memory_order_relaxed);
          }
        }) {
    while (rounds_.load(std::memory_order_relaxed) == 0) std::this_thread::yield();
  }
  ~RacingWriter() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<uint64_t> rounds_ = 0;
  std::thread thread_;
};

struct Outcome {
  int accepted = 0;
  int wrong = 0;  // accepted or signed although the bytes were not the genuine ones
};

// Bounded in tries and in time; stops at the first wrong answer.
Outcome race(const std::function<void(Outcome&)>& attempt) {
  Outcome outcome;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (int i = 0; i < 3000 && outcome.wrong == 0; ++i) {
    attempt(outcome);
    if (std::chrono::steady_clock::now() > deadline) break;
  }
  return outcome;
}

// `at` is where in the record the attacker writes.
Outcome race_open(const Aead& aead, size_t at) {
  std::vector<uint8_t> plaintext(kRecordBytes, 0x5a);
  std::vector<uint8_t> shared(kRecordBytes);
  std::vector<uint8_t> opened(kRecordBytes);
  Tag tag;
  aead.seal(Iv{}, {}, plaintext, shared, tag);
  RacingWriter writer(&shared[at]);
  return race([&](Outcome& outcome) {
    if (!aead.open(Iv{}, {}, shared, tag, opened).ok()) return;
    ++outcome.accepted;
    if (opened != plaintext) ++outcome.wrong;
  });
}

// The loops that deliver something else meanwhile are others.
Outcome race_open_beside(const Aead& aead, size_t at) {
  std::vector<uint8_t> plaintext(kRecordBytes, 0x5a);
  std::vector<uint8_t> shared(kRecordBytes);
  std::vector<uint8_t> opened(kRecordBytes);
  std::vector<uint8_t> delivered(kRecordBytes);
  Delivery beside;
  beside.first = plaintext;
  beside.to = delivered;
  Tag tag;
  aead.seal(Iv{}, {}, plaintext, shared, tag);
  RacingWriter writer(&shared[at]);
  return race([&](Outcome& outcome) {
    if (!aead.open(Iv{}, {}, shared, tag, opened, beside).ok()) return;
    ++outcome.accepted;
    if (opened != plaintext) ++outcome.wrong;
  });
}

Outcome race_seal(const Aead& aead, size_t at) {
  std::vector<uint8_t> plaintext(kRecordBytes, 0x5a);
  std::vector<uint8_t> shared(kRecordBytes);
  Tag genuine;
  aead.seal(Iv{}, {}, plaintext, shared, genuine);
  RacingWriter writer(&shared[at]);
  return race([&](Outcome& outcome) {
    Tag tag;
    aead.seal(Iv{}, {}, plaintext, shared, tag);
    ++outcome.accepted;
    if (tag != genuine) ++outcome.wrong;
  });
}

Outcome race_seal_source(const Aead& aead, size_t at, bool delivers, bool streamed) {
  std::vector<uint8_t> plaintext(kRecordBytes, 0x5a);
  std::vector<uint8_t> delivered(kRecordBytes);
  std::vector<uint8_t> memory(kRecordBytes + 64);
  const size_t past_line = reinterpret_cast<uintptr_t>(memory.data()) % 64;
  const MutableBytes shared = MutableBytes(memory).subspan(64 - past_line, kRecordBytes);
  Delivery source;
  source.first = plaintext;
  if (delivers) source.to = delivered;
  source.sealed_streamed = streamed;
  Tag genuine;
  aead.seal(Iv{}, {}, plaintext, shared, genuine);
  RacingWriter writer(&shared[at]);
  return race([&](Outcome& outcome) {
    Tag tag;
    aead.seal(Iv{}, {}, source, shared, tag);
    ++outcome.accepted;
    if (tag != genuine) ++outcome.wrong;
  });
}

constexpr size_t kPlaces[] = {0, 5000, 17'000, kRecordBytes - 1};

class RacingWriterTest : public testing::TestWithParam<const Engine*> {};

INSTANTIATE_TEST_SUITE_P(Engines, RacingWriterTest, testing::ValuesIn(engines_under_test()),
                         [](const auto& tested) { return test_name(*tested.param); });

TEST_P(RacingWriterTest, NeverGetsWrongPlaintextPastAValidTag) {
  const auto aead = GetParam()->make(test_key());
  int accepted = 0;
  for (const size_t at : kPlaces) {
    for (const auto race_once : {race_open, race_open_beside}) {
      const Outcome outcome = race_once(*aead, at);
      EXPECT_EQ(outcome.wrong, 0) << "written at " << at;
      accepted += outcome.accepted;
    }
  }
  EXPECT_GT(accepted, 0) << "the race never let a genuine record through: it tested nothing";
}

TEST_P(RacingWriterTest, NeverGetsItsOwnBytesSigned) {
  const auto aead = GetParam()->make(test_key());
  for (const size_t at : kPlaces) {
    EXPECT_EQ(race_seal(*aead, at).wrong, 0) << "written at " << at;
    for (const bool delivers : {false, true}) {
      for (const bool streamed : {false, true}) {
        EXPECT_EQ(race_seal_source(*aead, at, delivers, streamed).wrong, 0) << "written at " << at;
      }
    }
  }
}

// The tests above can fail: without the private copy, they do. One lost race is enough; the writer
// needs a core of its own to win it, which a busy machine gives it only now and then.
class UnsafeOpensslTest : public testing::Test {
 protected:
  void SetUp() override {
    if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "a race needs two cores";
    if (under_valgrind()) GTEST_SKIP() << "valgrind runs one thread at a time";
  }

  void lose(Outcome (*race_once)(const Aead&, size_t)) const {
    const auto aead = make_openssl_aead(test_key(), PrivateCopy::no);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < deadline) {
      for (const size_t at : kPlaces) {
        if (race_once(*aead, at).wrong > 0) return;
      }
    }
    GTEST_SKIP() << "the writer never got its chance: the tests above tested little here";
  }

 private:
  static bool under_valgrind() {
    const char* preloaded = std::getenv("LD_PRELOAD");
    return preloaded != nullptr && std::strstr(preloaded, "vgpreload") != nullptr;
  }
};

TEST_F(UnsafeOpensslTest, LosesTheRaceWhenOpening) { lose(race_open); }
TEST_F(UnsafeOpensslTest, LosesTheRaceWhenSealing) { lose(race_seal); }

}  // namespace
}  // namespace sealane
