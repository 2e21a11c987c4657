// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Is what was sealed ahead used when it is right, and never when it is not?

#include "serve/live_speculator.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <set>
#include <thread>

#include "base/check.h"
#include "base/random.h"
#include "core/lane/iv_law.h"
#include "serve/process.h"

namespace sealane::serve {
namespace {

constexpr uint64_t kBytes = 5 * kMessageBytes / 2 + 24;  // three messages, the last one odd

class Buffer {
 public:
  Buffer()
      : memory_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    std::memset(memory_, 1, kBytes);
  }
  ~Buffer() { munmap(memory_, kBytes); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  uint8_t* bytes() const { return static_cast<uint8_t*>(memory_); }
  Range range() const { return {reinterpret_cast<uint64_t>(memory_), kBytes}; }

 private:
  void* memory_;
};

Costs some_costs() {
  Costs costs;
  costs.workers = 3;
  costs.seal_ns_per_byte = 0.3;
  costs.digest_ns_per_byte = 0.0001;  // else none is worth it
  return costs;
}

// A driver with one channel: seals what it is handed, message by message, and asks first whether
// that has been done.
class LiveSpeculatorTest : public testing::TestWithParam<bool> {
 protected:
  LiveSpeculatorTest() {
    SystemRandom random;
    key_ = Key::random(random).duplicate();
    schedule_ = SplitGcm::make(key_->secret());
    SeededRandom(7).fill(law_.mask);
    options_.policy = *find_policy("speculate");
    options_.costs = some_costs();
    options_.page_guards = GetParam();
    for (const Buffer& buffer : buffers_) host_.add(buffer.range(), {.ours = true});
    ahead_ = new LiveSpeculator(pool_, host_, options_);  // like the runtime's: never deleted
  }
  ~LiveSpeculatorTest() override {
    ahead_->stop();
    for (const Buffer& buffer : buffers_) ahead_->freed(buffer.range());
  }

  void SetUp() override {
    if (schedule_ == nullptr) GTEST_SKIP() << "no engine that seals in parts on this CPU";
  }

  static Instant now() { return SteadyClock().now(); }
  static CopyCall call_of(const Buffer& buffer) {
    CopyCall call;
    call.host = buffer.range();
    call.memory = HostKind::pinned;
    return call;
  }
  std::optional<CopyId> ask(const Buffer& buffer) {
    ahead_->check_guards(buffer.range());
    const CopyId copy = ++copies_;
    const bool known = ahead_->handle_asked(copy, call_of(buffer), HostSide::in_place, now());
    return known ? std::optional(copy) : std::nullopt;
  }
  std::optional<WireTurn> next() {
    return ahead_->await_turn() ? ahead_->next_turn(now()) : std::nullopt;
  }
  void copy(const Buffer& buffer) {
    const auto asked = ask(buffer);
    ASSERT_TRUE(asked);
    ahead_->handle_turn(*asked, now());
    carry(buffer, *asked, [] {});
  }

  // `before_end` runs when the driver has all messages of a turn.
  template <typename Then>
  void carry(const Buffer& buffer, CopyId asked, const Then& before_end) {
    uint64_t carried = 0;
    while (carried < kBytes) {
      const auto turn = next();
      if (!turn) {
        std::this_thread::yield();
        continue;
      }
      ASSERT_TRUE(ahead_->begin());
      for (uint64_t i = 0; i < turn->pads; ++i) send(&nothing_, 1);
      EXPECT_EQ(turn->copy, turn->pads == 0 ? asked : kNoCopy);
      for (uint64_t at = 0; at < turn->bytes; at += kMessageBytes) {
        send(buffer.bytes() + turn->offset + at, std::min(kMessageBytes, turn->bytes - at));
      }
      carried += turn->bytes;
      before_end();
      ahead_->end(true);
    }
    ahead_->handle_over(asked, true, now());
  }

  void send(const uint8_t* in, uint64_t bytes) {
    const Iv iv = law_.iv(position_++);
    LiveSpeculator::Taken taken = ahead_->take(key_number_, schedule_, iv, in, bytes);
    if (taken.record != nullptr) {
      if (taken.foreseen) ++answered_;
      std::vector<uint8_t> expected(bytes);
      schedule_->seal_part(iv, 0, in, expected.data(), bytes);
      EXPECT_EQ(std::memcmp(expected.data(), taken.record, bytes), 0) << "stale";
      taken.used = bytes;
    }
    if (taken.ours) ahead_->give(taken, bytes);
  }

  void new_key() {
    SystemRandom random;
    key_ = Key::random(random).duplicate();
    schedule_ = SplitGcm::make(key_->secret());
    ++key_number_;
    position_ = 0;
    SeededRandom(8).fill(law_.mask);
  }

  // The workers get time to seal ahead all they are going to.
  void pause() {
    do {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ahead_->look();
    } while (ahead_->sealing() || ahead_->deadline());
  }

  void rounds(int count) {
    for (int i = 0; i < count; ++i) {
      for (const Buffer& buffer : buffers_) {
        copy(buffer);
        pause();
      }
    }
  }

  WorkerPool& pool_ = *new WorkerPool(3);  // its threads never end
  Buffer buffers_[3];
  RangeMap<HostBlock>& host_ = *new RangeMap<HostBlock>;
  std::optional<Key> key_;
  std::shared_ptr<const SplitGcm> schedule_;
  uint64_t key_number_ = 1;
  IvLaw law_;
  uint64_t position_ = 0;
  LiveSpeculatorOptions options_;
  LiveSpeculator* ahead_ = nullptr;
  uint8_t nothing_ = 0;
  CopyId copies_ = kNoCopy;
  uint64_t answered_ = 0;
};

TEST_P(LiveSpeculatorTest, ARepeatedSequenceIsAnsweredFromSlots) {
  rounds(8);
  EXPECT_GT(answered_, 12u);
  EXPECT_GT(ahead_->stats().pipeline.hits, 4u);
}

TEST_P(LiveSpeculatorTest, AWrittenSourceIsSealedAgain) {
  rounds(6);
  for (int i = 0; i < 12; ++i) {
    buffers_[i % 3].bytes()[i * 200'000] ^= 1;
    copy(buffers_[i % 3]);  // send() compares
    pause();
  }
}

// As the program writes: beside whoever reads, which is what the test is about and no news to a
// sanitizer.
[[gnu::noinline, gnu::no_sanitize("thread")]] void write_all_over(uint8_t* bytes) {
  for (uint64_t at = 0; at < kBytes; at += kMessageBytes / 2) ++bytes[at + 64];
}

// The next source is written while a worker may be reading it, and asked for at once.
TEST_P(LiveSpeculatorTest, AWriteDuringTheSealingIsNoticed) {
  rounds(4);
  SeededRandom random(3);
  for (uint64_t i = 0; i < 300; ++i) {
    copy(buffers_[i % 3]);
    const Instant until = SteadyClock().now() + std::chrono::microseconds(random.below(1500));
    while (SteadyClock().now() < until) std::this_thread::yield();
    write_all_over(buffers_[(i + 1) % 3].bytes());
  }
}

TEST_P(LiveSpeculatorTest, ADriverThatSendsMessagesOfItsOwnIsFollowed) {
  rounds(6);
  position_ += 2;  // out of our sight
  answered_ = 0;
  rounds(4);
  EXPECT_GT(answered_, 0u);
}

TEST_P(LiveSpeculatorTest, ANewKeyVoidsEverything) {
  rounds(6);
  new_key();
  answered_ = 0;
  copy(buffers_[0]);
  EXPECT_EQ(answered_, 0u);
  pause();
  rounds(4);
  EXPECT_GT(answered_, 0u);
}

// Another thread lets the core decide, and the next copy waits already: it must not begin before
// the driver's counter has been looked at.
TEST_P(LiveSpeculatorTest, NothingNewBeginsBetweenATurnAndItsEnd) {
  rounds(2);
  const auto first = ask(buffers_[0]);
  const auto second = ask(buffers_[1]);
  ASSERT_TRUE(first && second);
  ahead_->handle_turn(*first, now());
  ahead_->handle_turn(*second, now());
  new_key();
  carry(buffers_[0], *first, [&] { ahead_->freed({1, 1}); });
  carry(buffers_[1], *second, [] {});
}

// Who is told to seal ahead asks for no costs.
TEST_P(LiveSpeculatorTest, ForcedItSealsAheadWhateverThatCosts) {
  options_.costs.digest_ns_per_byte = 1;
  options_.costs.copy_ns_per_byte = 2 * options_.costs.seal_ns_per_byte;
  ahead_ = new LiveSpeculator(pool_, host_, options_);
  rounds(6);
  EXPECT_GT(ahead_->stats().pipeline.hits, 0u);
}

// What a digest costs is told to the core: at that price nothing is sealed ahead.
TEST_P(LiveSpeculatorTest, WhatCostsMoreThanItBringsIsNotGuarded) {
  options_.policy = *find_policy("sealane");
  options_.costs.digest_ns_per_byte = 1;
  ahead_ = new LiveSpeculator(pool_, host_, options_);
  rounds(6);
  const Pipeline::Stats stats = ahead_->stats().pipeline;
  EXPECT_EQ(stats.sealed_ahead > 0, GetParam());
  EXPECT_EQ(stats.hits > 0, GetParam());
}

// Memory of which only the worker that arms it learns that it cannot be protected.
TEST_P(LiveSpeculatorTest, WhatCannotBeProtectedIsGivenUp) {
  options_.policy = *find_policy("sealane");
  options_.costs.digest_ns_per_byte = 1;
  ahead_ = new LiveSpeculator(pool_, host_, options_);
  char name[] = "/tmp/sealane-ahead-XXXXXX";
  const int file = mkostemp(name, O_DIRECT);  // somebody may write past the page tables
  unlink(name);
  if (file < 0) GTEST_SKIP() << "no direct I/O here";
  rounds(6);
  close(file);
  const Pipeline::Stats stats = ahead_->stats().pipeline;
  EXPECT_EQ(stats.hits, 0u);
  EXPECT_EQ(answered_, 0u);
  if (!GetParam()) return;
  EXPECT_GT(stats.voided_for[static_cast<size_t>(VoidReason::costly)], 0u);
}

TEST_P(LiveSpeculatorTest, ABrokenInvariantEndsSpeculationAndNothingElse) {
  set_check_handler([](const char*, int, const char*) { throw BrokenInvariant(); });
  rounds(2);
  const auto flight = ask(buffers_[0]);
  ASSERT_TRUE(flight);
  ahead_->handle_turn(*flight, now());
  ahead_->handle_turn(*flight, now());  // what no driver of the core may do
  set_check_handler(nullptr);
  EXPECT_TRUE(ahead_->stopped());
}

TEST_P(LiveSpeculatorTest, WhatOthersHaveIsNotToBeHadUntilTheyGiveItBack) {
  std::string folder = testing::TempDir() + "sealane-ahead-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  SlotBudget others(folder, {}, 16_MiB, 16_MiB);
  ASSERT_TRUE(others.take(16_MiB));
  options_.budget = new SlotBudget(folder, {}, 16_MiB, 16_MiB);  // outlives the lane
  ahead_ = new LiveSpeculator(pool_, host_, options_);
  rounds(5);
  EXPECT_EQ(ahead_->stats().answered_ahead, 0u);
  // A plan that no worker has come to yet is a hit, too: none of its messages is ready.
  EXPECT_EQ(ahead_->stats().pipeline.messages_ready, 0u);
  EXPECT_GT(ahead_->stats().pipeline.voided_for[static_cast<size_t>(VoidReason::budget)], 0u);
  others.give(16_MiB);
  // It asks again now and then; on a busy machine workers are late for a while.
  for (int tries = 0; tries < 200 && ahead_->stats().answered_ahead == 0; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    rounds(8);
  }
  EXPECT_GT(ahead_->stats().answered_ahead, 0u);
  EXPECT_LE(options_.budget->bytes(), 16_MiB);
  std::filesystem::remove_all(folder);
}

// A pool that could not start a thread: nobody seals ahead, and nobody waits for it either.
TEST_P(LiveSpeculatorTest, WithoutWorkersItStopsAndNobodyWaits) {
  ahead_ = new LiveSpeculator(*new WorkerPool(0), host_, options_);
  for (int i = 0; i < 40 && !ahead_->stopped(); ++i) {
    const auto asked = ask(buffers_[i % 3]);
    if (!asked) break;
    ahead_->handle_turn(*asked, now());
    while (const auto turn = next()) {
      ahead_->begin();
      for (uint64_t at = 0; at < turn->bytes; at += kMessageBytes) {
        send(buffers_[i % 3].bytes() + turn->offset + at,
             std::min(kMessageBytes, turn->bytes - at));
      }
      ahead_->end(true);
    }
    pause();
  }
  EXPECT_TRUE(ahead_->stopped());
  EXPECT_FALSE(ahead_->sealing());
  for (const Buffer& buffer : buffers_) ahead_->freed(buffer.range());
}

// A stop in the middle of a copy: when settle() returns, no worker reads its source any more.
TEST_P(LiveSpeculatorTest, StoppedUnderACopyItsSourceIsLeftAlone) {
  for (int i = 0; i < 100; ++i) {
    Buffer source;
    LiveSpeculator& mine = *new LiveSpeculator(pool_, host_, options_);
    mine.take(key_number_, schedule_, law_.iv(0), &nothing_, 1);  // makes the key known
    CopyCall call = call_of(source);
    call.host.address = 0x1000;
    call.ours = source.range().address;
    ASSERT_TRUE(mine.handle_asked(1, call, HostSide::snapshot, now()));
    mine.handle_turn(1, now());
    if (mine.await_turn()) static_cast<void>(mine.next_turn(now()));
    mine.stop();
    mine.settle(1);
  }  // the memory is gone: whoever reads it dies
}

TEST_P(LiveSpeculatorTest, StoppedItAnswersNothing) {
  rounds(4);
  ahead_->stop();
  EXPECT_FALSE(ask(buffers_[0]));
  EXPECT_FALSE(next());
}

INSTANTIATE_TEST_SUITE_P(Guards, LiveSpeculatorTest, testing::Bool());

// In what is told at the end no lane is missing, whichever of them have stopped by then.
TEST(LiveSpeculators, TellOfEveryLaneThereEverWas) {
  WorkerPool& pool = *new WorkerPool(1);
  const RangeMap<HostBlock>& host = *new RangeMap<HostBlock>;
  LiveSpeculatorOptions options;
  options.policy = *find_policy("speculate");
  options.costs = some_costs();
  options.device = 77;
  std::vector<LiveSpeculator*> lanes;
  for (options.lane = 0; options.lane < 3; ++options.lane) {
    lanes.push_back(new LiveSpeculator(pool, host, options));  // never deleted
  }
  const auto told = [] {
    std::set<int> numbers;
    for (const SpeculationStats& stats : process().speculators.stats()) {
      if (stats.device == 77) numbers.insert(stats.lane);
    }
    return numbers;
  };
  EXPECT_EQ(told(), (std::set<int>{0, 1, 2}));
  lanes[0]->stop();
  EXPECT_EQ(told(), (std::set<int>{0, 1, 2}));
  lanes[1]->stop();
  lanes[2]->stop();
  EXPECT_EQ(told(), (std::set<int>{0, 1, 2}));
}

}  // namespace
}  // namespace sealane::serve
