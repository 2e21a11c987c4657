// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does a program that looks at a destination at any time see verified bytes and nothing else, also
// if one message of the copy was forged?

#include "live/serve/deferred_reads.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

#include "live/serve/messages.h"
#include "seal/openssl.h"

namespace sealane::serve {
namespace {

constexpr uint64_t kMessage = 256_KiB;
constexpr uint64_t kMapped = 4_MiB;

class Owner final : public ReadOwner {
 public:
  void refused(const ReadOwnerData&, const Range&, const char*) override { ++refusals; }
  void delivered(const ReadOwnerData&, bool verified) override { ++(verified ? good : bad); }
  std::atomic<int> refusals{0};
  std::atomic<int> good{0};
  std::atomic<int> bad{0};
};

struct Program {
  Program()
      : memory(static_cast<uint8_t*>(
            mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    std::memset(memory, 0xee, kMapped);
  }
  ~Program() { munmap(memory, kMapped); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  Range range(uint64_t offset, uint64_t bytes) const {
    return {reinterpret_cast<uint64_t>(memory) + offset, bytes};
  }
  void touch(uint64_t offset) const {
    const uint8_t seen = *const_cast<volatile uint8_t*>(memory + offset);
    static_cast<void>(seen);
  }
  bool holds(uint64_t offset, const std::vector<uint8_t>& expected) const {
    return std::equal(expected.begin(), expected.end(), memory + offset);
  }
  uint8_t* memory;
};

// What is left of a copy of which a message that was put off was forged: zeros on its whole pages;
// its edges were verified in the call.
std::vector<uint8_t> refused(const Range& destination, std::vector<uint8_t> plain) {
  constexpr uint64_t kPage = 4096;
  const uint64_t begin = (destination.address + kPage - 1) / kPage * kPage;
  const uint64_t end = destination.end() / kPage * kPage;
  for (uint64_t at = begin; at < end; ++at) plain[at - destination.address] = 0;
  return plain;
}

std::vector<uint8_t> random_bytes(size_t count) {
  std::vector<uint8_t> out(count);
  SystemRandom().fill(out);
  return out;
}

// What a driver does with a copy to the host: opens one message after the other, in pieces.
class Driver {
 public:
  Driver()
      : key_(random_bytes(Key::kBytes)), known_(know_key(std::span<const uint8_t, 32>(key_))) {}
  bool works() const { return known_.schedule != nullptr; }

  // Returns how many messages were put off. `forged`: the message that somebody changed.
  int copy(const std::vector<uint8_t>& plain, uint8_t* out, Crew& crew, uint64_t piece,
           int forged = -1) {
    int kept = 0;
    for (uint64_t at = 0, i = 0; at < plain.size(); at += kMessage, ++i) {
      const uint64_t bytes = std::min<uint64_t>(kMessage, plain.size() - at);
      std::vector<uint8_t> cipher(bytes);
      Iv iv{};
      std::memcpy(iv.data(), &++messages_, sizeof messages_);
      Tag tag;
      const std::vector<uint8_t> additional(5, 1);
      openssl_engine()
          .make(*Key::from_bytes(key_))
          ->seal(iv, additional, {&plain[at], bytes}, cipher, tag);
      if (static_cast<int>(i) == forged) cipher[bytes / 2] ^= 1;
      Message message;
      message.set_key(known_.schedule, known_.number, Direction::to_host);
      message.begin(iv);
      message.add_additional(additional);
      for (uint64_t done = 0; done < bytes; done += piece) {
        message.update(&cipher[done], out + at + done, std::min(piece, bytes - done), &crew);
      }
      if (message.kept()) {
        message.promise(tag);
        ++kept;
      } else if (message.tag(true) != tag) {
        message.refuse();
        return -1;
      }
    }
    return kept;
  }

 private:
  const std::vector<uint8_t> key_;
  const KnownKey known_;
  uint64_t messages_ = 0;
};

// A program, a driver and what is between them.
class Bench {
 public:
  Bench() {
    if (!driver_.works()) return;
    const auto started = DeferredReads::start(crew_, owner_, 16_MiB);
    if (started) reads_ = *started;
    if (!started) refusal_ = started.error().message;
  }
  ~Bench() {
    if (reads_ != nullptr) reads_->settle();
    DeferredReads::abandon();
  }

 protected:
  // Everything up to the moment a synchronising call would return.
  int copy(const Range& destination, const std::vector<uint8_t>& plain, uint64_t piece = kMessage,
           int forged = -1) {
    void* memory = nullptr;
    const ReadId id = reads_->begin(destination, memory);
    EXPECT_NE(id, kNoRead);
    const int kept = driver_.copy(plain, static_cast<uint8_t*>(memory), crew_, piece, forged);
    if (kept < 0) {
      reads_->cancel(id);
    } else {
      reads_->land(id, {});
    }
    return kept;
  }

  // Threads of ours know these to the end of the process.
  Crew& crew_ = *new Crew(2);
  Owner& owner_ = *new Owner;
  Driver driver_;
  DeferredReads* reads_ = nullptr;
  std::string refusal_ = "no engine for it";
  Program program_;
};

class DeferredReadsTest : public testing::Test, protected Bench {
 protected:
  void SetUp() override {
    if (reads_ == nullptr) GTEST_SKIP() << "reads cannot be trapped here: " << refusal_;
  }
};

TEST_F(DeferredReadsTest, WhoLooksAtOnceSeesTheBytes) {
  for (int round = 0; round < 20; ++round) {
    const auto plain = random_bytes(1_MiB);
    EXPECT_EQ(copy(program_.range(0, plain.size()), plain), 4);
    ASSERT_TRUE(program_.holds(0, plain));
    EXPECT_EQ(program_.memory[plain.size()], 0xee);
  }
  reads_->settle();
  EXPECT_TRUE(reads_->idle());
  EXPECT_EQ(owner_.good, 20);
}

TEST_F(DeferredReadsTest, SeveralThreadsMayLook) {
  const auto plain = random_bytes(2_MiB);
  copy(program_.range(4096, plain.size()), plain);
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const uint64_t at = i * plain.size() / 4 + 3;
      right += program_.memory[4096 + at] == plain[at] ? 1 : 0;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 4);
  EXPECT_TRUE(program_.holds(4096, plain));
}

TEST_F(DeferredReadsTest, WhatNobodyLooksAtIsOpenedToo) {
  const auto plain = random_bytes(1_MiB);
  copy(program_.range(0, plain.size()), plain);
  while (owner_.good == 0) std::this_thread::yield();
  EXPECT_TRUE(program_.holds(0, plain));
}

TEST_F(DeferredReadsTest, MessagesWithAnEdgeAreOpenedInTheCall) {
  const auto plain = random_bytes(1_MiB + 100);
  EXPECT_EQ(copy(program_.range(100, plain.size()), plain), 2)
      << "of five: not the first, and not the two on the last page";
  EXPECT_EQ(program_.memory[100], plain[0]);
  EXPECT_TRUE(program_.holds(100, plain));
  EXPECT_EQ(program_.memory[99], 0xee);
  EXPECT_EQ(program_.memory[100 + plain.size()], 0xee);
}

TEST_F(DeferredReadsTest, AForgedMessageLeavesZerosAndIsToldBefore) {
  const auto plain = random_bytes(1_MiB + 100);
  const uint64_t at = 50;
  EXPECT_EQ(copy(program_.range(at, plain.size()), plain, kMessage, 2), 2);
  EXPECT_EQ(program_.memory[at + 512_KiB], 0);
  EXPECT_EQ(owner_.refusals, 1) << "who sees the zeros has been told";
  reads_->settle();
  EXPECT_TRUE(program_.holds(at, refused(program_.range(at, plain.size()), plain)));
  EXPECT_EQ(program_.memory[at - 1], 0xee);
  EXPECT_EQ(program_.memory[at + plain.size()], 0xee);
  EXPECT_EQ(owner_.bad, 1);
  EXPECT_EQ(owner_.good, 0);
  const auto next = random_bytes(1_MiB);
  copy(program_.range(0, next.size()), next);
  EXPECT_TRUE(program_.holds(0, next)) << "only that copy was bad";
}

TEST_F(DeferredReadsTest, AForgedMessageWithAnEdgeFailsTheCall) {
  const auto plain = random_bytes(1_MiB);
  EXPECT_EQ(copy(program_.range(100, plain.size()), plain, kMessage, 0), -1);
  EXPECT_TRUE(reads_->idle());
  EXPECT_EQ(program_.memory[100], 0xee) << "nothing of it was delivered";
}

TEST_F(DeferredReadsTest, AMessageWhoseTagWasNeverAskedForIsNotDelivered) {
  void* memory = nullptr;
  const ReadId id = reads_->begin(program_.range(0, 1_MiB), memory);
  ASSERT_TRUE(reads_->keep({reinterpret_cast<uint64_t>(memory), kMessage}));
  reads_->land(id, {});
  EXPECT_EQ(program_.memory[0], 0);
  EXPECT_EQ(owner_.refusals, 1);
}

TEST_F(DeferredReadsTest, ADriverThatOpensElsewhereIsServedInTheCall) {
  const auto plain = random_bytes(512_KiB);
  for (int i = 0; i < 65; ++i) {
    void* memory = nullptr;
    const ReadId id = reads_->begin(program_.range(0, plain.size()), memory);
    ASSERT_NE(id, kNoRead);
    std::memcpy(memory, plain.data(), plain.size());
    reads_->land(id, {});
    EXPECT_TRUE(reads_->idle());
    EXPECT_TRUE(program_.holds(0, plain));
  }
  void* memory = nullptr;
  EXPECT_EQ(reads_->begin(program_.range(0, plain.size()), memory), kNoRead) << "it gave up";
}

TEST_F(DeferredReadsTest, ThereIsABoundAndSmallCopiesAreLeftAlone) {
  void* memory = nullptr;
  EXPECT_EQ(reads_->begin(program_.range(0, 64_KiB), memory), kNoRead);
  std::vector<ReadId> ids;
  for (;;) {
    const ReadId id = reads_->begin(program_.range(0, 4_MiB), memory);
    if (id == kNoRead) break;
    ids.push_back(id);
  }
  EXPECT_EQ(ids.size(), 4u);
  for (const ReadId id : ids) reads_->cancel(id);
  EXPECT_NE(reads_->begin(program_.range(0, 3_MiB), memory), kNoRead) << "others made room";
}

TEST_F(DeferredReadsTest, WhoHoldsFindsEverythingDelivered) {
  const auto plain = random_bytes(1_MiB);
  copy(program_.range(0, plain.size()), plain);
  reads_->hold();
  EXPECT_EQ(owner_.good, 1);
  EXPECT_TRUE(program_.holds(0, plain));
  reads_->release();
  copy(program_.range(0, plain.size()), plain);
  EXPECT_TRUE(program_.holds(0, plain));
}

// Copies of any size to any place, over each other, in any pieces, some forged: what can be seen is
// always the last copy's bytes, or zeros if it was forged, but for what was verified in the call.
class AnyCopies : private Bench {
 public:
  void check() {
    if (reads_ == nullptr) return;
    for (int i = 0; i < 6; ++i) {
      const auto bytes = *rc::gen::inRange<uint64_t>(128_KiB, 1_MiB);
      const auto offset = *rc::gen::inRange<uint64_t>(0, 2_MiB);
      const auto piece =
          *rc::gen::elementOf(std::vector<uint64_t>{kMessage, 100'000, 4096, 65'552});
      const int forged = *rc::gen::inRange(-4, 4);
      const auto plain = random_bytes(bytes);
      const int kept = copy(program_.range(offset, bytes), plain, piece, forged);
      if (kept < 0) continue;
      const bool good = forged < 0 || static_cast<uint64_t>(forged) * kMessage >= bytes;
      const auto look = *rc::gen::inRange(0, 3);
      if (look == 0) continue;
      const Range destination = program_.range(offset, bytes);
      if (look == 1) reads_->settle(destination);
      if (look == 2) program_.touch(offset + bytes / 2);
      RC_ASSERT(program_.holds(offset, good ? plain : refused(destination, plain)));
    }
  }
};

RC_GTEST_PROP(DeferredReads, WhateverIsSeenIsVerified, ()) {
  static AnyCopies& copies = *new AnyCopies;
  copies.check();
}

}  // namespace
}  // namespace sealane::serve
