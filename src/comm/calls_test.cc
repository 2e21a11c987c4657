// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Two ranks make different calls: is that an error, always, that names both, and not a time-out?

#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "comm/call.h"
#include "comm/group_fixture.h"

namespace sealane {
namespace {

constexpr uint32_t kRecordBytes = 1024;
constexpr size_t kRecordFloats = kRecordBytes / sizeof(float);

struct Make {
  Collective collective;
  size_t count;  // of floats: of one rank's part
  uint32_t root = 0;
  ReduceOperator op = ReduceOperator::none;
  ElementType type = ElementType::float32;
  Label label = {};
};

Status make_call(Communicator& comm, const Make& make) {
  const bool all_in = make.collective == Collective::reduce_scatter;
  const bool all_out = make.collective == Collective::all_gather;
  std::vector<float> in(make.count * (all_in ? comm.self().size : 1), 1);
  std::vector<float> out(make.count * (all_out ? comm.self().size : 1));
  return comm.run(
      {make.collective, make.type, make.op, make.root, buffer_of(in), buffer_of(out), make.label});
}

struct Case {
  const char* name;
  Make most;  // of all ranks
  Make odd;   // of the last one
};

std::string described(const Make& make) {
  return Call{0,
              make.collective,
              make.collective == Collective::barrier ? ElementType::none : make.type,
              make.op,
              make.root,
              make.count * sizeof(float)}
      .labelled(make.label)
      .describe();
}

constexpr ReduceOperator kSum = ReduceOperator::sum;
constexpr ReduceOperator kMax = ReduceOperator::max;

constexpr ElementType kBool{8};
constexpr ElementType kInt8{9};
constexpr ReduceOperator kProduct{5};
constexpr ReduceOperator kBitXor{8};

// Of the caller's own making, carried as an all_gather.
Make carried(Collective collective, ReduceOperator op = ReduceOperator::none,
             std::optional<uint32_t> root = {}, ElementType type = ElementType::float32) {
  return {Collective::all_gather,      10, 0, ReduceOperator::none, ElementType::float32,
          {collective, type, op, root}};
}

const Case kCases[] = {
    {"roots of a broadcast", {Collective::broadcast, 10, 0}, {Collective::broadcast, 10, 1}},
    {"roots of a sum", {Collective::reduce, 10, 0, kSum}, {Collective::reduce, 10, 1, kSum}},
    {"a broadcast and an all-gather", {Collective::broadcast, 10, 0}, {Collective::all_gather, 10}},
    {"sizes by whole records, gathered",
     {Collective::all_gather, kRecordFloats},
     {Collective::all_gather, 3 * kRecordFloats}},
    {"sizes by whole records, broadcast",
     {Collective::broadcast, kRecordFloats},
     {Collective::broadcast, 2 * kRecordFloats}},
    {"sizes by whole records, summed",
     {Collective::all_reduce, 8 * kRecordFloats, 0, kSum},
     {Collective::all_reduce, 16 * kRecordFloats, 0, kSum}},
    {"sizes of parts",
     {Collective::reduce_scatter, kRecordFloats, 0, kSum},
     {Collective::reduce_scatter, 2 * kRecordFloats, 0, kSum}},
    {"nothing and something",
     {Collective::all_reduce, 10, 0, kSum},
     {Collective::all_reduce, 0, 0, kSum}},
    {"operators", {Collective::all_reduce, 10, 0, kSum}, {Collective::all_reduce, 10, 0, kMax}},
    {"types",
     {Collective::all_reduce, 10, 0, kSum},
     {Collective::all_reduce, 10, 0, kSum, ElementType::int32}},
    {"a sum and a barrier", {Collective::all_reduce, 10, 0, kSum}, {Collective::barrier, 0}},
    {"operators of the caller's", carried(Collective::all_reduce, kProduct),
     carried(Collective::all_reduce, kBitXor)},
    {"roots of the caller's", carried(Collective::reduce, kProduct, 0),
     carried(Collective::reduce, kProduct, 1)},
    {"types of the caller's", carried(Collective::all_gather, ReduceOperator::none, {}, kBool),
     carried(Collective::all_gather, ReduceOperator::none, {}, kInt8)},
    {"a product and what it travels as",
     carried(Collective::all_reduce, kProduct),
     {Collective::all_gather, 10}},
    {"a product and a sum",
     carried(Collective::all_reduce, kProduct),
     {Collective::all_reduce, 10, 0, kSum}},
    {"calls of the caller's", carried(Collective::gather, ReduceOperator::none, 0),
     carried(Collective::scatter, ReduceOperator::none, 0)},
};

class DifferentCalls : public testing::TestWithParam<TransportKind> {};

TEST_P(DifferentCalls, AreAnErrorThatNamesBothSides) {
  for (const uint32_t size : {2u, 3u}) {
    for (const Algorithm algorithm : {Algorithm::direct, Algorithm::ring}) {
      for (const Case& c : kCases) {
        SCOPED_TRACE(concat(c.name, ", ", size, " ranks, ", to_string(algorithm)));
        GroupSetup setup;
        setup.size = size;
        setup.algorithm = algorithm;
        setup.transport = GetParam();
        setup.record_bytes = kRecordBytes;
        setup.timeout = std::chrono::minutes(5);
        ThreadGroup group(setup);
        const auto outcomes = group.run([&](Communicator& comm) -> Status {
          const bool odd = comm.self().rank + 1 == size;
          if (Status status = make_call(comm, odd ? c.odd : c.most); !status) return status;
          return comm.run(barrier());  // who was done with its part hears of it here
        });
        std::string all;
        for (const Status& status : outcomes) {
          ASSERT_FALSE(status.ok());
          EXPECT_EQ(status.error().message.find("no progress"), std::string::npos);
          all += status.error().message + "\n";
        }
        // Who was done with its part may be found out in the call after it.
        EXPECT_TRUE(all.find(described(c.most)) != std::string::npos ||
                    all.find(described(c.odd)) != std::string::npos)
            << all;
        EXPECT_NE(all.find("where this rank called"), std::string::npos) << all;
        EXPECT_NE(all.find("all ranks must make the same calls"), std::string::npos) << all;
      }
    }
  }
}

TEST_P(DifferentCalls, AreNotThoseOfOneLabel) {
  for (const CommMode mode : {CommMode::sealed, CommMode::plain}) {
    GroupSetup setup;
    setup.size = 3;
    setup.mode = mode;
    setup.transport = GetParam();
    ThreadGroup group(setup);
    const auto outcomes = group.run([&](Communicator& comm) -> Status {
      for (const Make& make : {carried(Collective::all_reduce, kProduct),
                               carried(Collective::reduce, kBitXor, 2, kInt8),
                               carried(Collective::all_to_all, ReduceOperator::none, {}, kBool)}) {
        if (Status status = make_call(comm, make); !status) return status;
      }
      return {};
    });
    for (const Status& status : outcomes) EXPECT_TRUE(status.ok()) << status.error().message;
  }
}

TEST_P(DifferentCalls, AMessageIsAsLongAsWhoReceivesItThinks) {
  for (const size_t sent : {kRecordFloats, 3 * kRecordFloats, size_t{0}}) {
    GroupSetup setup;
    setup.transport = GetParam();
    setup.record_bytes = kRecordBytes;
    setup.timeout = std::chrono::minutes(5);
    ThreadGroup group(setup);
    const auto outcomes = group.run([&](Communicator& comm) -> Status {
      std::vector<float> values(comm.self().rank == 0 ? sent : 2 * kRecordFloats);
      if (comm.self().rank == 0) {
        return comm.run({Collective::send,
                         ElementType::float32,
                         ReduceOperator::none,
                         1,
                         buffer_of(values),
                         {}});
      }
      return comm.run({Collective::receive,
                       ElementType::float32,
                       ReduceOperator::none,
                       0,
                       {},
                       buffer_of(values)});
    });
    ASSERT_FALSE(outcomes[1].ok());
    EXPECT_NE(outcomes[1].error().message.find(
                  concat("rank 0: called send 0 of ", sent * sizeof(float),
                         " bytes float32 to rank 1 where this rank called send 0 of 2048")),
              std::string::npos)
        << outcomes[1].error().message;
  }
}

Operation message_of(Collective collective, uint32_t peer, std::vector<float>& values) {
  const bool sends = collective == Collective::send;
  return {collective,
          ElementType::float32,
          ReduceOperator::none,
          peer,
          sends ? buffer_of(values) : Buffer(),
          sends ? Buffer() : buffer_of(values)};
}

// Rank 1 never sends what rank 0 waits for: it waits for rank 0 itself.
TEST_P(DifferentCalls, AMessageAndACollectiveAreAnErrorThatNamesBothSides) {
  const Make collectives[] = {
      {Collective::barrier, 0},         {Collective::all_gather, 4},
      {Collective::broadcast, 4, 1},    {Collective::broadcast, 4, 0},
      {Collective::reduce, 4, 0, kSum}, {Collective::all_reduce, 4, 0, kSum}};
  for (const Make& made : collectives) {
    SCOPED_TRACE(described(made));
    GroupSetup setup;
    setup.transport = GetParam();
    setup.timeout = std::chrono::minutes(5);
    ThreadGroup group(setup);
    const auto outcomes = group.run([&](Communicator& comm) -> Status {
      if (comm.self().rank == 1) return make_call(comm, made);
      std::vector<float> values(4);
      return comm.run(message_of(Collective::receive, 1, values));
    });
    std::string all;
    for (const Status& status : outcomes) {
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.error().message.find("no progress"), std::string::npos);
      all += status.error().message + "\n";
    }
    EXPECT_NE(all.find(described(made)), std::string::npos) << all;
    EXPECT_NE(all.find("send 0 of 16 bytes float32 to rank 0"), std::string::npos) << all;
  }
}

// Rank 0 comes to wait for rank 2, which waits for it, only once rank 1 is there.
TEST_P(DifferentCalls, AreHeardOfByEachRankThatIsWaitedForInTurn) {
  GroupSetup setup;
  setup.size = 3;
  setup.transport = GetParam();
  setup.timeout = std::chrono::minutes(1);
  ThreadGroup group(setup);
  std::atomic<Communicator*> rank0 = nullptr;
  const Make sum{Collective::all_reduce, 4, 0, kSum};
  const auto outcomes = group.run([&](Communicator& comm) -> Status {
    std::vector<float> values(4);
    if (comm.self().rank == 2) return comm.run(message_of(Collective::receive, 0, values));
    if (comm.self().rank == 0) rank0 = &comm;
    while (comm.self().rank == 1 && (rank0 == nullptr || rank0.load()->awaited() == kNobody)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return make_call(comm, sum);
  });
  std::string all;
  for (const Status& status : outcomes) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message.find("no progress"), std::string::npos);
    all += status.error().message + "\n";
  }
  EXPECT_NE(all.find(described(sum)), std::string::npos) << all;
  EXPECT_NE(all.find("send 0 of 16 bytes float32 to rank 2"), std::string::npos) << all;
}

// It has heard that rank 1 waits in the barrier before it takes what was sent before that.
TEST_P(DifferentCalls, AreNotAMessageThatIsTakenLateAndTheCollectiveBehindIt) {
  GroupSetup setup;
  setup.transport = GetParam();
  ThreadGroup group(setup);
  EXPECT_EQ(outcome(group.run([&](Communicator& comm) -> Status {
              std::vector<float> values(1000);
              const bool sends = comm.self().rank == 1;
              if (!sends) std::this_thread::sleep_for(std::chrono::milliseconds(300));
              for (int i = 0; i < 2; ++i) {
                const auto collective = sends ? Collective::send : Collective::receive;
                const Operation message = message_of(collective, sends ? 0 : 1, values);
                if (Status status = comm.run(message); !status) return status;
              }
              return comm.run(barrier());
            })),
            "ok");
}

INSTANTIATE_TEST_SUITE_P(Over, DifferentCalls,
                         testing::Values(TransportKind::shm, TransportKind::tcp),
                         [](const auto& over) {
                           return over.param == TransportKind::shm ? "memory" : "tcp";
                         });

TEST(Call, SurvivesItsEncoding) {
  const Call call{7,    Collective::broadcast, ElementType::int64, ReduceOperator::none,
                  1023, uint64_t{1} << 40};
  EXPECT_EQ(Call::decode(call.encode()), call);
  EXPECT_FALSE(Call::decode(as_bytes("nonsense")));
  EXPECT_FALSE(Call::of(RecordHeader{}));
}

// Two labels that differ in anything are two calls to everybody: on the wire and in words.
TEST(Call, IsAnotherOneUnderAnotherLabel) {
  const Call carried{3, Collective::all_gather, ElementType::uint8, ReduceOperator::none, 0, 64};
  std::vector<Call> calls = {carried};
  for (const Collective collective : {Collective::all_reduce, Collective::reduce}) {
    for (uint8_t op = 1; op <= static_cast<uint8_t>(kLastNamedOperator); ++op) {
      for (uint8_t type = 1; type <= static_cast<uint8_t>(kLastNamedType); ++type) {
        for (uint32_t root = 0; root < (collective == Collective::reduce ? 3 : 1); ++root) {
          calls.push_back(carried.labelled(
              {collective, ElementType{type}, static_cast<ReduceOperator>(op), root}));
        }
      }
    }
  }
  for (const Collective collective : {Collective::gather, Collective::scatter}) {
    for (uint32_t root = 0; root < 3; ++root) {
      calls.push_back(carried.labelled({collective, kInt8, ReduceOperator::none, root}));
    }
  }
  calls.push_back(carried.labelled({Collective::all_to_all, kInt8, {}, {}}));
  std::set<std::string> words;
  std::set<std::vector<uint8_t>> encodings;
  for (const Call& call : calls) {
    EXPECT_EQ(Call::decode(call.encode()), call);
    words.insert(call.describe());
    encodings.insert(call.encode());
  }
  EXPECT_EQ(words.size(), calls.size());
  EXPECT_EQ(encodings.size(), calls.size());
  EXPECT_EQ(carried.labelled({Collective::reduce, kBool, kBitXor, 2}).describe(),
            "reduce 3 of 64 bytes bool bxor to rank 2");
  EXPECT_EQ(carried.labelled({Collective::gather, ElementType::float16, {}, 1}).describe(),
            "gather 3 of float16 to rank 1");
  EXPECT_EQ(carried.labelled({}), carried);
}

}  // namespace
}  // namespace sealane
