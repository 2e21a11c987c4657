// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do slots answer however the driver seals: in pieces, in messages of another size, on a thread of
// its own, from a buffer of its own? And is what it gets the right ciphertext with the right tag,
// also where it leaves a slot in the middle?

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <ostream>
#include <thread>

#include "base/random.h"
#include "core/lane/iv_law.h"
#include "serve/messages.h"

namespace sealane::serve {
namespace {

constexpr uint64_t kBytes = 5_MiB / 2 + 24;
constexpr size_t kBuffers = 3;

struct Way {
  uint64_t message_bytes = kMessageBytes;
  unsigned updates = 1;
  bool other_thread = false;
  bool staged = false;
};

std::ostream& operator<<(std::ostream& out, const Way& way) {
  return out << way.message_bytes << " bytes in " << way.updates
             << (way.other_thread ? ", by a thread" : "") << (way.staged ? ", staged" : "");
}

// A driver with one channel that seals by way of EVP calls, as the preload sees them.
class Driver {
 public:
  explicit Driver(const Way& way) : way_(way) {
    SystemRandom random;
    const Key key = Key::random(random);
    known_ = know_key(key.secret());
    random.fill(law_.mask);
    LiveSpeculatorOptions options;
    options.policy = *find_policy("speculate");
    options.costs.workers = 2;
    for (size_t i = 0; i < kBuffers; ++i) {
      void* made =
          mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      buffers_[i] = static_cast<uint8_t*>(made);
      random.fill({buffers_[i], kBytes});
      host_.add(range(i), {.ours = true});
    }
    ahead_ = new LiveSpeculator(pool_, host_, options);  // like the runtime's: never deleted
  }
  ~Driver() {
    ahead_->stop();
    for (size_t i = 0; i < kBuffers; ++i) {
      ahead_->freed(range(i));
      munmap(buffers_[i], kBytes);
    }
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  bool can_seal() const { return known_.schedule != nullptr; }

  // Between two copies the workers get the time to seal what they are going to.
  void rounds(int count) {
    for (int i = 0; i < count; ++i) {
      for (size_t buffer = 0; buffer < kBuffers; ++buffer) {
        copy(buffer);
        do {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          ahead_->look();
        } while (ahead_->sealing() || ahead_->deadline());
      }
    }
  }

  void copy(size_t buffer) {
    ahead_->check_guards(range(buffer));
    CopyCall call;
    call.host = range(buffer);
    call.memory = HostKind::pinned;
    const CopyId asked = ++copies_;
    ASSERT_TRUE(ahead_->handle_asked(asked, call, HostSide::in_place, SteadyClock().now()));
    ahead_->handle_turn(asked, SteadyClock().now());
    for (uint64_t carried = 0; carried < kBytes;) {
      if (!ahead_->await_turn()) {
        std::this_thread::yield();
        continue;
      }
      const auto turn = ahead_->next_turn(SteadyClock().now());
      ASSERT_TRUE(turn);
      ASSERT_TRUE(ahead_->begin());
      for (uint64_t i = 0; i < turn->pads; ++i) seal(&nothing_, 1);
      for (uint64_t at = 0; at < turn->bytes; at += way_.message_bytes) {
        seal(buffers_[buffer] + turn->offset + at, std::min(way_.message_bytes, turn->bytes - at));
      }
      carried += turn->bytes;
      ahead_->end(true);
    }
    ahead_->handle_over(asked, true, SteadyClock().now());
  }

  uint64_t answered() const { return ahead_->stats().answered_ahead; }
  // What a message does instead of going on, once its first update is answered.
  std::function<void(Message&, std::vector<uint8_t>& plain, std::vector<uint8_t>& out)> stray;
  // All but the last update of a message write 16 bytes behind where they read: over what the next
  // one is to read.
  bool overwrites = false;

 private:
  Range range(size_t i) const { return {reinterpret_cast<uint64_t>(buffers_[i]), kBytes}; }

  void seal(const uint8_t* in, uint64_t bytes) {
    if (!way_.other_thread) return message(in, bytes);
    std::thread([&] { message(in, bytes); }).join();
  }

  void message(const uint8_t* in, uint64_t bytes) {
    std::vector<uint8_t> plain(in, in + bytes);
    const std::vector<uint8_t> own = plain;
    if (way_.staged) in = own.data();
    std::vector<uint8_t> out(bytes);
    const Iv iv = law_.iv(position_++);
    Message message;
    ASSERT_TRUE(message.set_key(known_.schedule, known_.number, Direction::to_device));
    message.begin(iv);
    message.add_additional(Bytes(iv));
    const uint64_t piece = (bytes + way_.updates - 1) / way_.updates;
    for (uint64_t at = 0; at < bytes; at += piece) {
      const uint64_t here = std::min(piece, bytes - at);
      const bool over = overwrites && at + here + kGcmBlockBytes <= bytes;
      uint8_t* const to = over ? const_cast<uint8_t*>(in) + at + kGcmBlockBytes : &out[at];
      std::copy_n(in + at, here, &plain[at]);
      if (over) await_workers();
      message.update(in + at, to, here, &pool_);
      if (over) std::copy_n(to, here, &out[at]);
      if (!stray || bytes == 1) continue;
      plain.resize(piece);
      out.resize(piece);
      stray(message, plain, out);
      break;
    }
    compare(iv, plain, out, message.tag(true));
    if (!overwrites || bytes == 1) return;
    await_workers();
    std::copy(own.begin(), own.end(), const_cast<uint8_t*>(in));
  }

  // They may read what they seal ahead while it is written, and notice; a sanitizer would, too.
  void await_workers() const {
    while (ahead_->sealing()) std::this_thread::yield();
  }

  void compare(const Iv& iv, const std::vector<uint8_t>& plain, const std::vector<uint8_t>& out,
               const Tag& tag) const {
    const SplitGcm& gcm = *known_.schedule;
    std::vector<uint8_t> right(plain.size());
    GcmBlock additional{};
    std::copy(iv.begin(), iv.end(), additional.begin());
    const GcmHash sealed = gcm.seal_part(iv, 0, plain.data(), right.data(), plain.size());
    const GcmHash hash = gcm.join(gcm.join({}, additional), sealed, (plain.size() + 15) / 16);
    EXPECT_TRUE(out == right);
    EXPECT_EQ(tag, gcm.tag(iv, hash, iv.size(), plain.size()));
  }

  const Way way_;
  WorkerPool& pool_ = *new WorkerPool(2);  // its threads never end
  RangeMap<HostBlock>& host_ = *new RangeMap<HostBlock>;
  KnownKey known_;
  IvLaw law_;
  uint64_t position_ = 0;
  uint8_t* buffers_[kBuffers];
  LiveSpeculator* ahead_ = nullptr;
  CopyId copies_ = kNoCopy;
  const uint8_t nothing_ = 0;
};

class SlotsTest : public testing::TestWithParam<Way> {};

TEST_P(SlotsTest, AnswerWhatTheDriverSeals) {
  Driver driver(GetParam());
  if (!driver.can_seal()) GTEST_SKIP() << "no engine that seals in parts on this CPU";
  driver.rounds(6);
  EXPECT_GT(driver.answered(), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Ways, SlotsTest,
    testing::Values(Way{}, Way{.updates = 3}, Way{.updates = 7, .other_thread = true},
                    Way{.message_bytes = 64_KiB}, Way{.message_bytes = 64_KiB, .updates = 2},
                    Way{.message_bytes = 100'000, .updates = 3, .other_thread = true},
                    Way{.message_bytes = 2_MiB}, Way{.message_bytes = 4_MiB, .updates = 5},
                    Way{.other_thread = true}, Way{.staged = true}));

class UnknownPlace : public testing::TestWithParam<Way> {};

// Nothing tells how these cut their messages: they may be answered or not, but rightly.
TEST_P(UnknownPlace, IsNeverAnsweredWrongly) {
  Driver driver(GetParam());
  if (!driver.can_seal()) GTEST_SKIP() << "no engine that seals in parts on this CPU";
  driver.rounds(5);
}

INSTANTIATE_TEST_SUITE_P(Ways, UnknownPlace,
                         testing::Values(Way{2_MiB, 2, false, true}, Way{64_KiB, 1, false, true},
                                         Way{kMessageBytes, 3, false, true},
                                         Way{kMessageBytes, 1, true, true}));

class Straying : public testing::TestWithParam<unsigned> {
 protected:
  // Each message begins as foreseen; then `stray` takes over.
  void run(decltype(Driver::stray) stray) {
    Driver driver({.updates = GetParam()});
    if (!driver.can_seal()) GTEST_SKIP() << "no engine that seals in parts on this CPU";
    driver.rounds(4);
    const uint64_t answered = driver.answered();
    EXPECT_GT(answered, 0u);
    driver.stray = std::move(stray);
    driver.copy(0);
    if (GetParam() > 1) {
      EXPECT_EQ(driver.answered(), answered) << "none was used to its end";
    }
    driver.stray = nullptr;
    driver.rounds(2);
    EXPECT_GT(driver.answered(), answered);
  }
};

// 3 updates of a MiB end within a block, 4 do not; one is all of it.
INSTANTIATE_TEST_SUITE_P(Updates, Straying, testing::Values(1u, 3u, 4u));

TEST_P(Straying, ToAnotherPlaceTheRestIsSealed) {
  std::vector<uint8_t> elsewhere(300'001);
  SeededRandom(5).fill(elsewhere);
  run([&](Message& message, std::vector<uint8_t>& plain, std::vector<uint8_t>& out) {
    plain.insert(plain.end(), elsewhere.begin(), elsewhere.end());
    const size_t at = out.size();
    out.resize(plain.size());
    message.update(elsewhere.data(), &out[at], 7, nullptr);
    message.update(elsewhere.data() + 7, &out[at + 7], elsewhere.size() - 7, nullptr);
  });
}

TEST_P(Straying, ToItsEndTheTagIsOfWhatWasGiven) {
  run([](Message&, std::vector<uint8_t>&, std::vector<uint8_t>&) {});
}

// What libcrypto would have found there.
TEST_P(Straying, OverItsOwnSourceTheRestIsSealedAsItIs) {
  Driver driver({.updates = GetParam()});
  if (!driver.can_seal()) GTEST_SKIP() << "no engine that seals in parts on this CPU";
  driver.rounds(4);
  EXPECT_GT(driver.answered(), 0u);
  driver.overwrites = true;
  driver.copy(0);
  driver.overwrites = false;
  driver.rounds(2);
}

}  // namespace
}  // namespace sealane::serve
