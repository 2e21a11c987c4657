// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Types × operators × sizes × ranks × in place or not × transports: is every pair of values right
// together? Which combinations run is arithmetic, and that they cover all pairs is checked.

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "comm/group_fixture.h"
#include "seal/reduce.h"

namespace sealane {
namespace {

constexpr std::array kTypes = {ElementType::float32,  ElementType::float64, ElementType::float16,
                               ElementType::bfloat16, ElementType::int32,   ElementType::int64,
                               ElementType::uint8};
constexpr std::array kOperators = {ReduceOperator::sum, ReduceOperator::avg, ReduceOperator::min,
                                   ReduceOperator::max};
// In elements: none, one, odd, beside page and record edges of every element size.
constexpr std::array<size_t, 8> kCounts = {0, 1, 3, 511, 4096, 4097, 16'385, 65'537};
constexpr uint32_t kRanksTested = 9;
constexpr uint32_t kTransports = 3;

struct Combination {
  std::array<size_t, 6> value;  // type, operator, count, ranks, in place, transport
};

Combination combination(size_t type, size_t op, uint32_t ranks) {
  return {{type, op, (type * 4 + op + ranks * 3) % kCounts.size(), ranks,
           (type + op + ranks / 2) % 2, ranks % kTransports}};
}

// The element that stands for a small integer; exact in every type.
void append(std::vector<uint8_t>& out, ElementType type, uint32_t value) {
  static constexpr std::array<uint16_t, 5> kHalf = {0, 0x3c00, 0x4000, 0x4200, 0x4400};
  static constexpr std::array<uint16_t, 5> kBrain = {0, 0x3f80, 0x4000, 0x4040, 0x4080};
  const auto put = [&](auto element) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&element);
    out.insert(out.end(), bytes, bytes + sizeof element);
  };
  switch (type) {
    case ElementType::float32:
      return put(static_cast<float>(value));
    case ElementType::float64:
      return put(static_cast<double>(value));
    case ElementType::float16:
      return put(kHalf[value]);
    case ElementType::bfloat16:
      return put(kBrain[value]);
    case ElementType::int32:
      return put(static_cast<int32_t>(value));
    case ElementType::int64:
      return put(static_cast<int64_t>(value));
    default:
      return put(static_cast<uint8_t>(value));
  }
}

std::vector<uint8_t> contribution(uint32_t rank, size_t count, ElementType type) {
  std::vector<uint8_t> out;
  for (size_t i = 0; i < count; ++i) {
    append(out, type, static_cast<uint32_t>((i * 3 + rank * 2) % 5));
  }
  return out;
}

// Sums of small integers are exact, so the order of operands does not matter.
std::vector<uint8_t> expected(uint32_t size, size_t count, ElementType type, ReduceOperator op) {
  std::vector<uint8_t> result = contribution(0, count, type);
  for (uint32_t rank = 1; rank < size; ++rank) {
    reduce(type, op, result, contribution(rank, count, type), result);
  }
  if (op == ReduceOperator::avg) divide(type, result, size);
  return result;
}

Status run_one(Communicator& comm, const Combination& c) {
  const ElementType type = kTypes[c.value[0]];
  const ReduceOperator op = kOperators[c.value[1]];
  const size_t count = kCounts[c.value[2]];
  auto in = contribution(comm.self().rank, count, type);
  std::vector<uint8_t> other(in.size(), 0xee);
  std::vector<uint8_t>& out = c.value[4] == 1 ? in : other;
  const Status status =
      comm.run({Collective::all_reduce, type, op, 0, buffer_of(in), buffer_of(out)});
  if (!status) return status;
  if (out == expected(comm.self().size, count, type, op)) return {};
  return internal_error(concat("wrong: type ", c.value[0], " operator ", c.value[1], " count ",
                               count, " in place ", c.value[4]));
}

TEST(Pairwise, TypesOperatorsSizesRanksAndTransports) {
  std::set<std::array<size_t, 4>> seen;  // which two, and their values
  for (uint32_t ranks = 1; ranks <= kRanksTested; ++ranks) {
    GroupSetup setup;
    setup.size = ranks;
    setup.transport = std::array{TransportKind::shm, TransportKind::tcp,
                                 TransportKind::automatic}[ranks % kTransports];
    if (setup.transport == TransportKind::automatic) setup.hosts = two_hosts(ranks);
    std::vector<Combination> all;
    for (size_t type = 0; type < kTypes.size(); ++type) {
      for (size_t op = 0; op < kOperators.size(); ++op) {
        all.push_back(combination(type, op, ranks));
      }
    }
    for (const Combination& c : all) {
      for (size_t a = 0; a < c.value.size(); ++a) {
        for (size_t b = a + 1; b < c.value.size(); ++b) {
          seen.insert({a, b, c.value[a], c.value[b]});
        }
      }
    }
    ThreadGroup group(setup);
    EXPECT_EQ(outcome(group.run([&](Communicator& comm) -> Status {
                for (const Combination& c : all) {
                  if (Status status = run_one(comm, c); !status) return status;
                }
                return {};
              })),
              "ok")
        << ranks << " ranks";
  }
  // Ranks decide the transport here, so that one pair of columns has one value per row.
  const std::array<size_t, 6> sizes = {
      kTypes.size(), kOperators.size(), kCounts.size(), kRanksTested, 2, kTransports};
  size_t wanted = kRanksTested;
  for (size_t a = 0; a < sizes.size(); ++a) {
    for (size_t b = a + 1; b < sizes.size(); ++b) {
      if (a != 3 || b != 5) wanted += sizes[a] * sizes[b];
    }
  }
  EXPECT_EQ(seen.size(), wanted) << "not all pairs were tried";
}

}  // namespace
}  // namespace sealane
