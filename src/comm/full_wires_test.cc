// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A wire may be full when a record for it is ready, and other records come first. Does each still
// carry what is its own?

#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"
#include "base/try.h"
#include "comm/group_fixture.h"

namespace sealane {
namespace {

constexpr uint32_t kRanks = 3;
constexpr size_t kValues = 1'100'000;  // a result that is written past the caches

// Where the first sums of its own are ready, the wire to everybody has no room before a sum of
// somebody else's was taken, and nothing else can be done. Nobody waits for nothing: own sums are
// only made when one of somebody else's is there.
class FullFabric final : public ForwardingFabric {
 public:
  using ForwardingFabric::ForwardingFabric;

  bool writable(uint32_t wire) override {
    if (taken_in_all_ >= kTimes) return inner().writable(wire);
    if (wire == kEverybody) full_ = true;
    return full_ == (wire == kEverybody && taken_) && inner().writable(wire);
  }
  bool readable(uint32_t wire) override {
    if (taken_in_all_ >= kTimes) return inner().readable(wire);
    return inner().readable(wire) && (wire > kEverybody ? full_ && !taken_ : !full_ && any_sum());
  }
  void commit(uint32_t wire, size_t bytes) override {
    if (wire == kEverybody) full_ = taken_ = false;
    inner().commit(wire, bytes);
  }
  void pop(uint32_t wire) override {
    if (wire > kEverybody) {
      ++taken_in_all_;
      taken_ = true;
    }
    inner().pop(wire);
  }

 private:
  static constexpr uint32_t kEverybody = kRanks;  // behind it those from everybody
  static constexpr int kTimes = 10;

  bool any_sum() { return inner().readable(kEverybody + 1) || inner().readable(kEverybody + 2); }

  bool full_ = false;
  bool taken_ = false;
  int taken_in_all_ = 0;
};

float value_of(uint32_t rank, size_t at) { return static_cast<float>((at * 7 + rank * 13) % 1021); }

// In memory of one piece, or of many that no record fits into.
Status sum(Communicator& comm, ReduceOperator op, size_t piece) {
  std::vector<float> values(kValues);
  for (size_t i = 0; i < kValues; ++i) values[i] = value_of(comm.self().rank, i);
  std::vector<MutableBytes> pieces;
  for (size_t at = 0; at < kValues; at += piece) {
    const size_t count = std::min(piece, kValues - at);
    pieces.push_back({reinterpret_cast<uint8_t*>(values.data() + at), count * sizeof(float)});
  }
  const Buffer buffer(pieces);
  SEALANE_TRY(comm.run({Collective::all_reduce, ElementType::float32, op, 0, buffer, buffer}));
  for (size_t i = 0; i < kValues; ++i) {
    float wanted = value_of(0, i) + value_of(1, i) + value_of(2, i);
    if (op == ReduceOperator::avg) wanted /= kRanks;
    if (std::abs(values[i] - wanted) > 1e-3f) return internal_error(concat("wrong from ", i));
  }
  return {};
}

TEST(FullWires, CarryWhatIsTheirOwn) {
  for (const size_t piece : {kValues, size_t{10'007}}) {
    for (const ReduceOperator op : {ReduceOperator::sum, ReduceOperator::avg}) {
      GroupSetup setup;
      setup.size = kRanks;
      setup.algorithm = Algorithm::direct;
      ThreadGroup group(setup);
      const auto outcomes = group.run([&](Communicator& comm) { return sum(comm, op, piece); },
                                      with_wires<FullFabric>(0));
      EXPECT_EQ(outcome(outcomes), "ok")
          << "pieces of " << piece << (op == ReduceOperator::sum ? ", sum" : ", average");
    }
  }
}

}  // namespace
}  // namespace sealane
