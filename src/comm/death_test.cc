// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// When a rank is killed, in whatever phase: does every other rank hear of it by name, at once, and
// is nothing left behind?

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "comm/process_fixture.h"

namespace sealane {
namespace {

constexpr uint32_t kVictim = 1;

// Dies when it is about to send a record of a phase: the header tells, it is not encrypted.
class DyingFabric final : public ForwardingFabric {
 public:
  DyingFabric(std::unique_ptr<Fabric> inner, Phase phase, uint32_t records)
      : ForwardingFabric(std::move(inner)), phase_(phase), left_(records) {}

  void commit(uint32_t wire, size_t bytes) override {
    constexpr size_t kPhaseAt = 40;
    if (inner().slot(wire)[kPhaseAt] == static_cast<uint8_t>(phase_) && --left_ == 0) {
      raise(SIGKILL);
    }
    inner().commit(wire, bytes);
  }

 private:
  Phase phase_;
  uint32_t left_;
};

std::string text_of(const Status& status) { return status ? "ok" : status.error().message; }

std::string sum_until_killed(Communicator& comm, size_t count) {
  return text_of(sum_until_error(comm, count, kEndless));
}

struct Place {
  const char* name;
  TransportKind transport;
  bool spans_hosts;
};
const Place kPlaces[] = {{"shared memory", TransportKind::shm, false},
                         {"TCP", TransportKind::tcp, false},
                         {"both", TransportKind::automatic, true}};

GroupSetup setup_at(const Place& place, Algorithm algorithm) {
  GroupSetup setup;
  setup.size = 4;
  setup.transport = place.transport;
  setup.algorithm = algorithm;
  setup.timeout = std::chrono::minutes(5);
  if (place.spans_hosts) setup.hosts = two_hosts(setup.size);
  return setup;
}

// All others heard who it was, and not by waiting until the time was up.
void expect_all_heard(ProcessGroup& group) {
  EXPECT_TRUE(group.end_of(kVictim).killed);
  for (const uint32_t rank : {0u, 2u, 3u}) {
    const RankEnd end = group.end_of(rank);
    EXPECT_FALSE(end.killed);
    EXPECT_NE(end.answer.find(concat("rank ", kVictim)), std::string::npos) << end.answer;
    EXPECT_EQ(end.answer.find("no progress"), std::string::npos) << end.answer;
    EXPECT_EQ(end.answer.find("in time"), std::string::npos) << end.answer;
  }
}

ThreadGroup::Adjust dying_in(Phase phase, uint32_t records) {
  return with_wires<DyingFabric>(kVictim, phase, records);
}

TEST(Death, InReduceScatterAndAllGather) {
  for (const Place& place : kPlaces) {
    for (const Algorithm algorithm : {Algorithm::direct, Algorithm::ring}) {
      for (const Phase phase : {Phase::reduce_scatter, Phase::all_gather}) {
        SCOPED_TRACE(concat(place.name, " ", to_string(algorithm), " ", static_cast<int>(phase)));
        ProcessGroup group(setup_at(place, algorithm));
        group.start([](Communicator& comm) { return sum_until_killed(comm, 200'000); },
                    dying_in(phase, 5));
        expect_all_heard(group);
      }
    }
  }
}

TEST(Death, InExchangeAndHub) {
  for (const Place& place : kPlaces) {
    for (const auto& [algorithm, phase] : {std::pair(Algorithm::exchange, Phase::exchange),
                                           std::pair(Algorithm::hub, Phase::to_hub)}) {
      SCOPED_TRACE(concat(place.name, " ", to_string(algorithm)));
      ProcessGroup group(setup_at(place, algorithm));
      group.start([](Communicator& comm) { return sum_until_killed(comm, 1000); },
                  dying_in(phase, 3));
      expect_all_heard(group);
    }
  }
}

TEST(Death, InABarrier) {
  for (const Place& place : kPlaces) {
    SCOPED_TRACE(place.name);
    ProcessGroup group(setup_at(place, Algorithm::automatic));
    group.start(
        [](Communicator& comm) {
          while (true) {
            if (const Status status = comm.run(barrier()); !status) return text_of(status);
          }
        },
        dying_in(Phase::all_gather, 2));
    expect_all_heard(group);
  }
}

// A reader of the broadcast wire sends nothing itself: nobody waits for its records, but the root
// for room.
TEST(Death, OfAReaderOfABroadcast) {
  for (const Place& place : kPlaces) {
    SCOPED_TRACE(place.name);
    ProcessGroup group(setup_at(place, Algorithm::direct));
    group.start([](Communicator& comm) {
      Status status = comm.run(barrier());
      if (comm.self().rank == kVictim) raise(SIGKILL);
      while (status) {
        std::vector<float> values(4 << 20);
        status = comm.run({Collective::broadcast, ElementType::float32, ReduceOperator::none, 0,
                           buffer_of(values), buffer_of(values)});
        if (status) status = comm.run(barrier());
      }
      return text_of(status);
    });
    expect_all_heard(group);
  }
}

// Who only sends waits for nothing of the victim's, and TCP takes what it sends for a while.
TEST(Death, OrDepartureOfWhoReceivesIsHeardByOneWhoOnlySends) {
  for (const TransportKind transport : {TransportKind::shm, TransportKind::tcp}) {
    for (const bool dies : {true, false}) {
      SCOPED_TRACE(
          concat(transport == TransportKind::tcp ? "TCP" : "shared memory", dies ? ", dies" : ""));
      GroupSetup setup;
      setup.transport = transport;
      ProcessGroup group(setup);
      group.start([dies](Communicator& comm) {
        Status status = comm.run(barrier());
        if (comm.self().rank == kVictim && dies) raise(SIGKILL);
        if (comm.self().rank == kVictim) return std::string();
        std::vector<float> values(100'000, 1);
        const Instant until = SteadyClock().now() + std::chrono::minutes(1);
        while (status && SteadyClock().now() < until) {
          status = comm.run({Collective::send,
                             ElementType::float32,
                             ReduceOperator::none,
                             kVictim,
                             buffer_of(values),
                             {}});
        }
        return text_of(status);
      });
      EXPECT_EQ(group.end_of(kVictim).killed, dies);
      const std::string answer = group.end_of(0).answer;
      EXPECT_NE(answer.find(concat("rank ", kVictim, " is gone")), std::string::npos) << answer;
    }
  }
}

// The attestation command runs in the middle of the handshake; the victim's kills the victim. Who
// has no session with another yet cannot tell it the reason, so a rank may hear the name of one
// that left because of the victim.
TEST(Death, InTheHandshake) {
  for (const Place& place : kPlaces) {
    SCOPED_TRACE(place.name);
    ProcessGroup group(setup_at(place, Algorithm::automatic));
    const std::string script = group.options().key_file() + ".attest";
    std::ofstream(script) << "#!/bin/sh\nif test \"$1\" = produce; then echo evidence; fi\n";
    chmod(script.c_str(), 0700);
    group.start([](Communicator&) { return std::string("joined"); },
                [&](JoinOptions& options) {
                  const bool dies = options.self.rank == kVictim;
                  options.attest_command = dies ? concat("kill -9 ", getpid(), " #") : script;
                });
    EXPECT_TRUE(group.end_of(kVictim).killed);
    bool named = false;
    for (const uint32_t rank : {0u, 2u, 3u}) {
      const std::string answer = group.end_of(rank).answer;
      EXPECT_TRUE(answer.find("left while joining") != std::string::npos ||
                  answer.find("gave up") != std::string::npos)
          << answer;
      named = named || answer.find(concat("rank ", kVictim)) != std::string::npos;
    }
    EXPECT_TRUE(named);
  }
}

TEST(Death, OfARankThatHasFinishedHarmsNobody) {
  for (const Place& place : kPlaces) {
    SCOPED_TRACE(place.name);
    ProcessGroup group(setup_at(place, Algorithm::automatic));
    group.start([](Communicator& comm) {
      std::vector<float> values(100'000, 1);
      Status status = comm.run(sum_of(values));
      if (status) status = comm.run(barrier());
      if (comm.self().rank == kVictim) raise(SIGKILL);
      return text_of(status);
    });
    EXPECT_TRUE(group.end_of(kVictim).killed);
    for (const uint32_t rank : {0u, 2u, 3u}) EXPECT_EQ(group.end_of(rank).answer, "ok");
  }
}

// ---- What is left ----

std::set<std::string> descriptors(pid_t process, const std::string& kind) {
  std::set<std::string> found;
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(concat("/proc/", process, "/fd"), ignored)) {
    const std::string target = std::filesystem::read_symlink(entry.path(), ignored);
    if (target.rfind(kind, 0) == 0) found.insert(target);
  }
  return found;
}

std::set<std::string> socket_inodes_of_this_machine() {
  std::set<std::string> inodes;
  for (const char* table : {"/proc/net/unix", "/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      for (std::string word; words >> word;) inodes.insert("socket:[" + word + "]");
    }
  }
  return inodes;
}

// The runtime for serving has its own there.
std::set<std::string> names_in_shm() {
  std::set<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
    const std::string name = entry.path().filename();
    // The transparent runtime's empty files, whose bytes are only locked, stay.
    const bool of_serving =
        name.starts_with("sealane-workers") || name.starts_with("sealane-slots");
    if (name.find("sealane") != std::string::npos && !of_serving) names.insert(name);
  }
  return names;
}

TEST(Death, OfAllRanksLeavesNoSocketAndNoSharedMemory) {
  for (const Place& place : kPlaces) {
    SCOPED_TRACE(place.name);
    ProcessGroup group(setup_at(place, Algorithm::automatic));
    group.start([](Communicator& comm) {
      if (const Status status = comm.run(barrier()); !status) return text_of(status);
      return sum_until_killed(comm, 200'000);
    });
    // Wait until all are at work: each has its segment, or its data connections, by then.
    std::set<std::string> sockets;
    size_t segments = 0;
    const size_t segments_wanted = place.transport == TransportKind::tcp ? 0 : 1;
    const Instant until = SteadyClock().now() + std::chrono::minutes(5);
    while (SteadyClock().now() < until) {
      sockets.clear();
      segments = 0;
      bool all = true;
      for (uint32_t rank = 0; rank < 4; ++rank) {
        const auto own = descriptors(group.process(rank), "socket:");
        all = all && own.size() >= 3;
        sockets.insert(own.begin(), own.end());
        segments += descriptors(group.process(rank), "/memfd:sealane").size();
      }
      if (all && segments >= segments_wanted) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_FALSE(sockets.empty());
    ASSERT_GE(segments, segments_wanted);
    for (uint32_t rank = 0; rank < 4; ++rank) kill(group.process(rank), SIGKILL);
    // One that hears of another's end before its own turn ends by itself.
    for (uint32_t rank = 0; rank < 4; ++rank) group.end_of(rank);
    const auto left = socket_inodes_of_this_machine();
    for (const std::string& socket : sockets) EXPECT_EQ(left.count(socket), 0u) << socket;
    // Segments have no name: they are gone with the last descriptor, and nothing is in /dev/shm.
    EXPECT_TRUE(names_in_shm().empty());
  }
}

}  // namespace
}  // namespace sealane
