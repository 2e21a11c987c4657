// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Two ranks make different calls: is that an error, always, that names both, and not a time-out?

#include <gtest/gtest.h>

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
};

Status make_call(Communicator& comm, const Make& make) {
  const bool all_in = make.collective == Collective::reduce_scatter;
  const bool all_out = make.collective == Collective::all_gather;
  std::vector<float> in(make.count * (all_in ? comm.self().size : 1), 1);
  std::vector<float> out(make.count * (all_out ? comm.self().size : 1));
  return comm.run({make.collective, make.type, make.op, make.root, buffer_of(in), buffer_of(out)});
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
      .describe();
}

constexpr ReduceOperator kSum = ReduceOperator::sum;
constexpr ReduceOperator kMax = ReduceOperator::max;

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
        setup.timeout = std::chrono::seconds(60);
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

TEST_P(DifferentCalls, AMessageIsAsLongAsWhoReceivesItThinks) {
  for (const size_t sent : {kRecordFloats, 3 * kRecordFloats, size_t{0}}) {
    GroupSetup setup;
    setup.transport = GetParam();
    setup.record_bytes = kRecordBytes;
    setup.timeout = std::chrono::seconds(60);
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

}  // namespace
}  // namespace sealane
