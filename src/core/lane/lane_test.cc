// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Does a lane deliver what was sent, in order, once, and die at the first sign of tampering?

#include "core/lane/lane.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "seal/engine.h"

namespace sealane {
namespace {

constexpr uint32_t kLane = 7;

LaneSecret secret(uint64_t seed) {
  SeededRandom random(seed);
  LaneSecret made;
  made.aead = (*chosen_engine())->make(Key::random(random));
  random.fill(made.iv_law.mask);
  made.iv_law.channel = kLane;
  return made;
}

using Record = std::vector<uint8_t>;

Record send(SendLane& lane, const std::string& text) {
  Record record(record_bytes(text.size()));
  auto position = lane.reserve(text.size());
  EXPECT_TRUE(position.ok());
  SealedRecord sealed = lane.seal(*std::move(position), {}, as_bytes(text), record);
  EXPECT_TRUE(lane.publish(std::move(sealed)).ok());
  return record;
}

// The text delivered, or the error in angle brackets.
std::string receive(ReceiveLane& lane, Bytes record) {
  std::vector<uint8_t> out(64, 0xee);
  const auto header = lane.open(record, out);
  if (header) return std::string(out.begin(), out.begin() + header->length);
  EXPECT_EQ(out, std::vector<uint8_t>(64, 0)) << "output not wiped";
  return "<" + header.error().message + ">";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class LaneTest : public testing::Test {
 protected:
  SendLane sender_{kLane, secret(1)};
  ReceiveLane receiver_{kLane, secret(1)};
};

TEST_F(LaneTest, DeliversInOrder) {
  for (const std::string text : {"one", "", "three"}) {
    EXPECT_EQ(receive(receiver_, send(sender_, text)), text);
  }
}

TEST_F(LaneTest, HeaderIsFilledInAndWhatACollectiveNamesArrives) {
  Record record(record_bytes(4));
  RecordHeader named;
  named.communicator = 3;
  named.operation = 99;
  named.phase = 2;
  named.type = ElementType::bfloat16;
  named.op = ReduceOperator::avg;
  named.chunk = 17;
  named.origin = 5;
  SealedRecord sealed = sender_.seal(*sender_.reserve(4), named, as_bytes("data"), record);
  ASSERT_TRUE(sender_.publish(std::move(sealed)).ok());
  std::vector<uint8_t> out(4);
  const auto header = receiver_.open(record, out);
  ASSERT_TRUE(header.ok());
  named.lane = kLane;
  named.length = 4;
  EXPECT_EQ(*header, named);
}

// Every action of an adversary on the bus: refused, named, and final.
struct Attack {
  const char* name;
  std::function<Record(const std::vector<Record>& sent)> deliver;  // after sent[0] arrived
  const char* named;                                               // part of the error
};

class AttackTest : public testing::TestWithParam<Attack> {};

TEST_P(AttackTest, IsRefusedAndTheLaneStaysDead) {
  SendLane sender(kLane, secret(1));
  ReceiveLane receiver(kLane, secret(1));
  std::vector<Record> sent;
  for (const std::string text : {"first", "second", "third"}) sent.push_back(send(sender, text));
  ASSERT_EQ(receive(receiver, sent[0]), "first");

  const std::string error = receive(receiver, GetParam().deliver(sent));
  EXPECT_PRED2(contains, error, GetParam().named);
  EXPECT_EQ(receive(receiver, sent[1]), error) << "the genuine record must not revive the lane";
}

Record flipped(Record record, size_t at) {
  record[at] ^= 1;
  return record;
}

INSTANTIATE_TEST_SUITE_P(
    Bus, AttackTest,
    testing::Values(
        Attack{"flip_data", [](auto& s) { return flipped(s[1], RecordHeader::kBytes); },
               "authentication failed"},
        Attack{"flip_tag", [](auto& s) { return flipped(s[1], s[1].size() - 1); },
               "authentication failed"},
        Attack{"flip_origin", [](auto& s) { return flipped(s[1], 44); }, "authentication failed"},
        Attack{"drop", [](auto& s) { return s[2]; }, "gap"},
        Attack{"replay", [](auto& s) { return s[0]; }, "replayed"},
        Attack{"truncate", [](auto& s) { return Record(s[1].begin(), s[1].end() - 1); },
               "should have"},
        Attack{"extend",
               [](auto& s) {
                 Record longer = s[1];
                 longer.push_back(0);
                 return longer;
               },
               "should have"},
        Attack{"cut_header", [](auto& s) { return Record(s[1].begin(), s[1].begin() + 20); },
               "cut short"},
        Attack{"empty", [](auto&) { return Record{}; }, "cut short"},
        Attack{"other_lane",
               [](auto&) {
                 SendLane other(kLane + 1, secret(1));
                 return send(other, "second");
               },
               "belongs to lane 8"},
        Attack{"other_key",
               [](auto&) {
                 SendLane other(kLane, secret(2));
                 send(other, "first");
                 return send(other, "second");
               },
               "authentication failed"},
        Attack{"later_epoch",
               [](auto&) {
                 SendLane other(kLane, secret(1));
                 other.rotate(secret(1));
                 return send(other, "second");
               },
               "epoch"}),
    [](const auto& tested) { return tested.param.name; });

TEST_F(LaneTest, RefusesWhatDoesNotFitTheBuffer) {
  const Record record = send(sender_, std::string(65, 'x'));
  EXPECT_PRED2(contains, receive(receiver_, record), "where 64 were expected");
}

TEST_F(LaneTest, APositionSealsOnce) {
  Record first(record_bytes(4));
  Record second(record_bytes(4));
  Position position = *sender_.reserve(4);
  static_assert(!std::is_copy_constructible_v<Position>);
  sender_.seal(std::move(position), {}, as_bytes("once"), first);
  EXPECT_DEATH(sender_.seal(std::move(position), {}, as_bytes("more"), second),
               "position used before");
}

TEST_F(LaneTest, PublishingOutOfOrderFailsAndWipes) {
  Record first(record_bytes(1));
  Record second(record_bytes(1));
  SealedRecord one = sender_.seal(*sender_.reserve(1), {}, as_bytes("1"), first);
  SealedRecord two = sender_.seal(*sender_.reserve(1), {}, as_bytes("2"), second);
  EXPECT_FALSE(sender_.publish(std::move(two)).ok());
  EXPECT_EQ(second, Record(second.size(), 0)) << "must not be exposed later by accident";
  EXPECT_TRUE(sender_.publish(std::move(one)).ok());
}

TEST(Lane, RotatesBeforeTheKeyIsUsedUp) {
  SendLane sender(kLane, secret(1), KeyLimits{.messages = 2, .blocks = 1000});
  ReceiveLane receiver(kLane, secret(1));
  EXPECT_EQ(receive(receiver, send(sender, "a")), "a");
  EXPECT_EQ(receive(receiver, send(sender, "b")), "b");
  const auto refused = sender.reserve(1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::crypto);
  sender.rotate(secret(2));
  receiver.rotate(secret(2));
  EXPECT_EQ(receive(receiver, send(sender, "c")), "c");
}

TEST(Lane, SealsOnManyThreadsAndPublishesInOrder) {
  SendLane sender(kLane, secret(1));
  ReceiveLane receiver(kLane, secret(1));
  constexpr size_t kCount = 64;
  std::vector<Record> records(kCount, Record(record_bytes(8)));
  std::vector<std::optional<SealedRecord>> sealed(kCount);
  std::vector<Position> positions;
  for (size_t i = 0; i < kCount; ++i) positions.push_back(*sender.reserve(8));
  {
    std::vector<std::jthread> workers;
    for (size_t worker = 0; worker < 4; ++worker) {
      workers.emplace_back([&, worker] {
        for (size_t i = worker; i < kCount; i += 4) {
          sealed[i] = sender.seal(std::move(positions[i]), {}, as_bytes("parallel"), records[i]);
        }
      });
    }
  }
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(sender.publish(*std::move(sealed[i])).ok());
    EXPECT_EQ(receive(receiver, records[i]), "parallel");
  }
}

TEST(Lane, RefusesARecordLongerThanTheFormat) {
  SendLane sender(kLane, secret(1));
  const auto refused = sender.reserve(size_t{kRecordPayloadBytesMax} + 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
}

}  // namespace
}  // namespace sealane
