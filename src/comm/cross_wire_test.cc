// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A genuine record, copied unchanged to a wire it was not meant for: is it refused by whoever reads
// that wire, and does it do no harm while nobody does? Which wires an algorithm reads is written
// down here and compared with its schedule.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "comm/group_fixture.h"

namespace sealane {
namespace {

constexpr uint32_t kVictim = 1;
constexpr size_t kCount = 200'000;    // floats: several records
constexpr size_t kFewCount = 10'000;  // less than one record, as an exchange of three needs
constexpr uint32_t kSums = 20;

struct Setting {
  Algorithm algorithm;
  uint32_t size;

  size_t count() const { return algorithm == Algorithm::exchange && size > 2 ? kFewCount : kCount; }
  Schedule schedule(uint32_t rank) const {
    Request request;
    request.algorithm = algorithm;
    request.rank = rank;
    request.size = size;
    request.bytes = count() * sizeof(float);
    request.record_bytes = 64_KiB;
    request.channel_records = 8;
    return make_schedule(request);
  }
};
constexpr Setting kSettings[] = {
    {Algorithm::exchange, 2}, {Algorithm::direct, 2}, {Algorithm::ring, 2}, {Algorithm::hub, 2},
    {Algorithm::exchange, 3}, {Algorithm::direct, 3}, {Algorithm::ring, 3}, {Algorithm::hub, 3}};

// Does the all-reduce have `reader` read `from`'s wire to it, or to everybody?
bool reads(const Setting& setting, uint32_t reader, uint32_t from, bool broadcast) {
  switch (setting.algorithm) {
    case Algorithm::exchange:
      return broadcast == (setting.size > 2);
    case Algorithm::ring:
      return !broadcast && reader == (from + 1) % setting.size;
    case Algorithm::hub:
      return broadcast ? from == 0 : reader == 0;
    default:
      return true;
  }
}

// Out wires are numbered as in transport/fabric.h: a rank, or the size for everybody.
bool anybody_reads(const Setting& setting, uint32_t wire) {
  for (uint32_t reader = 0; reader < setting.size; ++reader) {
    const bool reached = wire == setting.size || wire == reader;
    if (reader != kVictim && reached && reads(setting, reader, kVictim, wire == setting.size)) {
      return true;
    }
  }
  return false;
}

bool victim_sends_elsewhere(const Setting& setting, uint32_t wire) {
  const Schedule schedule = setting.schedule(kVictim);
  return std::any_of(schedule.steps.begin(), schedule.steps.end(), [&](const Step& step) {
    return step.to != kNobody && (step.to == kEveryone ? setting.size : step.to) != wire;
  });
}

TEST(CrossWire, SchedulesReadTheWiresWrittenDownHereAndNoOthers) {
  for (const Setting& setting : kSettings) {
    for (uint32_t reader = 0; reader < setting.size; ++reader) {
      const Schedule schedule = setting.schedule(reader);
      for (uint32_t from = 0; from < setting.size; ++from) {
        if (from == reader) continue;
        for (const bool broadcast : {false, true}) {
          const bool read =
              std::any_of(schedule.steps.begin(), schedule.steps.end(), [&](const Step& step) {
                return step.from == from && step.from_broadcast == broadcast;
              });
          EXPECT_EQ(read, reads(setting, reader, from, broadcast))
              << to_string(setting.algorithm) << " of " << setting.size << ": rank " << reader
              << " from " << from << (broadcast ? " to everybody" : "");
        }
      }
    }
  }
}

// Copies one record that goes elsewhere to `wire`, where it comes before all that follow.
class CrossingFabric final : public ForwardingFabric {
 public:
  CrossingFabric(std::unique_ptr<Fabric> inner, uint32_t wire, std::atomic<bool>* crossed)
      : ForwardingFabric(std::move(inner)), wire_(wire), crossed_(crossed) {}

  void commit(uint32_t wire, size_t bytes) override {
    const bool now = !*crossed_ && wire != wire_ && ++seen_ > kGenuine && inner().writable(wire_);
    std::vector<uint8_t> copy;
    if (now) copy.assign(inner().slot(wire).begin(), inner().slot(wire).begin() + bytes);
    inner().commit(wire, bytes);
    if (!now) return;
    std::copy(copy.begin(), copy.end(), inner().slot(wire_).begin());
    inner().commit(wire_, bytes);
    *crossed_ = true;
  }

 private:
  static constexpr uint32_t kGenuine = 3;  // records that pass before
  uint32_t wire_;
  uint32_t seen_ = 0;
  std::atomic<bool>* crossed_;
};

// What the victim sends to that rank, or to everybody, is read by somebody.
Status read_wire(Communicator& comm, uint32_t wire) {
  std::vector<float> nothing, one(1, 1);
  const auto pass = [&](Collective collective, uint32_t peer) {
    return comm.run({collective, ElementType::float32, ReduceOperator::none, peer,
                     buffer_of(collective == Collective::send ? one : nothing),
                     buffer_of(collective == Collective::send ? nothing : one)});
  };
  Status status;
  if (comm.self().rank == kVictim && wire < comm.self().size) {
    status = pass(Collective::send, wire);
  } else if (comm.self().rank == wire) {
    status = pass(Collective::receive, kVictim);
  }
  return status ? comm.run(barrier()) : status;
}

// Nobody reads the wire while others still add up: that would end their sums, too.
void wait_for_all(std::atomic<uint32_t>& arrived, uint32_t all) {
  ++arrived;
  for (int ms = 0; arrived < all && ms < 20'000; ++ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void cross_to(const Setting& setting, TransportKind transport, uint32_t wire) {
  SCOPED_TRACE(concat(to_string(setting.algorithm), " of ", setting.size, " over ",
                      transport == TransportKind::shm ? "memory" : "tcp", " to wire ", wire));
  GroupSetup group_setup;
  group_setup.size = setting.size;
  group_setup.transport = transport;
  group_setup.algorithm = setting.algorithm;
  ThreadGroup group(group_setup);
  std::atomic<bool> crossed = false;
  std::atomic<uint32_t> arrived = 0;
  // A rank that is still joining when another meets the record hears of it there.
  std::vector<Status> sums(setting.size, Status(internal_error("never joined")));
  const auto ends = group.run(
      [&](Communicator& comm) {
        Status& status = sums[comm.self().rank];
        status = sum_until_error(comm, setting.count(), kSums);
        if (!status) return status;
        wait_for_all(arrived, setting.size);
        return read_wire(comm, wire);
      },
      with_wires<CrossingFabric>(kVictim, wire, &crossed));
  EXPECT_TRUE(crossed) << "nothing was crossed: this shows nothing";
  const bool read = anybody_reads(setting, wire);
  for (uint32_t rank = 0; rank < setting.size; ++rank) {
    // Never a wrong sum; an error on every rank if the wire is read, and if not, none before it is.
    EXPECT_EQ(sums[rank].ok(), !read) << "rank " << rank << ": " << outcome(sums);
    ASSERT_FALSE(ends[rank].ok()) << "rank " << rank << " never heard of it";
    EXPECT_EQ(ends[rank].error().message.find("WRONG"), std::string::npos);
  }
  EXPECT_NE(outcome(ends).find(concat("rank ", kVictim)), std::string::npos) << outcome(ends);
}

TEST(CrossWire, ARecordOnAnotherWireIsRefusedWhereItIsReadAndHarmlessWhereItIsNot) {
  for (const TransportKind transport : {TransportKind::shm, TransportKind::tcp}) {
    for (const Setting& setting : kSettings) {
      for (uint32_t wire = 0; wire <= setting.size; ++wire) {
        if (wire == kVictim || !victim_sends_elsewhere(setting, wire)) continue;
        cross_to(setting, transport, wire);
      }
    }
  }
}

}  // namespace
}  // namespace sealane
