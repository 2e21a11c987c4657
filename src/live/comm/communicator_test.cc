// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does every collective deliver the right result, on every transport, in every shape?

#include "live/comm/communicator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

#include "live/comm/group_fixture.h"
#include "seal/reduce.h"

namespace sealane {
namespace {

Operation all_reduce_of(std::vector<float>& in, std::vector<float>& out,
                        ReduceOperator op = ReduceOperator::sum) {
  return {Collective::all_reduce, ElementType::float32, op, 0, buffer_of(in), buffer_of(out)};
}

// Small integers: exact in float32 whatever the order.
std::vector<float> contribution(uint32_t rank, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>((i * 7 + rank * 13) % 101);
  return values;
}

std::vector<float> expected_sum(uint32_t size, size_t count) {
  std::vector<float> sum(count);
  for (uint32_t rank = 0; rank < size; ++rank) {
    const auto values = contribution(rank, count);
    for (size_t i = 0; i < count; ++i) sum[i] += values[i];
  }
  return sum;
}

struct Case {
  TransportKind transport;
  CommMode mode;
  Algorithm algorithm;
  uint32_t size;
};

class AllReduce : public testing::TestWithParam<Case> {};

TEST_P(AllReduce, SumsEverySizeInPlaceAndOutOfPlace) {
  const Case& c = GetParam();
  GroupSetup setup;
  setup.size = c.size;
  setup.transport = c.transport;
  setup.mode = c.mode;
  setup.algorithm = c.algorithm;
  ThreadGroup group(setup);
  const auto outcomes = group.run([&](Communicator& comm) -> Status {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{3}, size_t{1023}, size_t{1024},
                               size_t{16384}, size_t{16385}, size_t{700001}}) {
      auto in = contribution(comm.self().rank, count);
      std::vector<float> out(count, -1);
      if (Status s = comm.run(all_reduce_of(in, out)); !s) return s;
      if (out != expected_sum(c.size, count)) return internal_error(concat("wrong sum ", count));
      if (Status s = comm.run(all_reduce_of(in, in)); !s) return s;
      if (in != out) return internal_error(concat("wrong sum in place ", count));
    }
    return {};
  });
  EXPECT_EQ(outcome(outcomes), "ok");
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const TransportKind transport : {TransportKind::shm, TransportKind::tcp}) {
    for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::exchange, Algorithm::direct,
                                      Algorithm::ring, Algorithm::hub}) {
      for (const uint32_t size : {2u, 3u, 5u, 9u}) {
        if (size == 9 && algorithm != Algorithm::automatic) continue;
        all.push_back({transport, CommMode::sealed, algorithm, size});
      }
    }
    all.push_back({transport, CommMode::plain, Algorithm::automatic, 2});
    all.push_back({transport, CommMode::plain, Algorithm::automatic, 4});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, AllReduce, testing::ValuesIn(cases()), [](const auto& instance) {
  const Case& c = instance.param;
  return concat(c.transport == TransportKind::shm ? "shm_" : "tcp_", to_string(c.mode), "_",
                to_string(c.algorithm), "_", c.size);
});

}  // namespace
}  // namespace sealane
