// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Groups of ranks of another group: can anybody be one of them who is not, and does ending a group
// end it for all?

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "comm/group_fixture.h"

namespace sealane {
namespace {

// A part of the group, joined by what the ranks share since they met in it.
JoinOptions part_of(const ThreadGroup& group, Communicator& comm, const std::string& name,
                    const std::vector<uint32_t>& ranks) {
  JoinOptions options = group.options(comm.self().rank);
  const auto place = std::find(ranks.begin(), ranks.end(), comm.self().rank) - ranks.begin();
  options.self = {name, static_cast<uint32_t>(ranks.size()), static_cast<uint32_t>(place)};
  options.key_file.clear();
  auto keys = comm.pair_keys(ranks);
  EXPECT_TRUE(keys.ok());
  options.pair_keys = std::make_shared<const PairKeys>(std::move(*keys));
  return options;
}

GroupSetup three_ranks() {
  GroupSetup setup;
  setup.size = 3;
  return setup;
}

TEST(Parts, JoinWithoutAKeyAndCanHavePartsThemselves) {
  ThreadGroup group(three_ranks());
  const auto outcomes = group.run([&](Communicator& comm) -> Status {
    if (comm.self().rank == 1) return {};
    auto part = Communicator::create(part_of(group, comm, "part", {2, 0}));
    if (!part) return part.error();
    if (Status status = sum_until_error(**part, 100, 3); !status) return status;
    EXPECT_EQ((*part)->self().rank, comm.self().rank == 2 ? 0u : 1u);
    auto again = Communicator::create(part_of(group, **part, "again", {1, 0}));
    return again ? sum_until_error(**again, 100, 3) : Status(again.error());
  });
  EXPECT_EQ(outcome(outcomes), "ok");
}

// It has its own secrets with everybody, knows the name of the part and where it meets, and comes
// first.
TEST(Parts, ARankOfTheGroupCannotPoseAsAnother) {
  for (const TransportKind transport : {TransportKind::shm, TransportKind::tcp}) {
    GroupSetup setup = three_ranks();
    setup.transport = transport;
    setup.timeout = std::chrono::minutes(5);
    ThreadGroup group(setup);
    const auto outcomes = group.run([&](Communicator& comm) -> Status {
      if (comm.self().rank == 1) return {};
      const uint32_t other = comm.self().rank == 0 ? 1 : 2;
      auto part = Communicator::create(part_of(group, comm, "part", {0, other}));
      return part ? sum_until_error(**part, 100, 1) : Status(part.error());
    });
    for (const uint32_t rank : {0u, 2u}) {
      ASSERT_FALSE(outcomes[rank].ok());
      const std::string& message = outcomes[rank].error().message;
      EXPECT_NE(message.find("does not have the secret"), std::string::npos) << message;
    }
  }
}

TEST(Parts, AreOfDifferentRanksOfTheGroupAndThisOne) {
  ThreadGroup group(three_ranks());
  const auto outcomes = group.run([](Communicator& comm) -> Status {
    const uint32_t rank = comm.self().rank;
    EXPECT_FALSE(comm.pair_keys({rank, rank}).ok());
    EXPECT_FALSE(comm.pair_keys({rank, 3}).ok());
    EXPECT_FALSE(comm.pair_keys({(rank + 1) % 3}).ok());
    EXPECT_FALSE(comm.pair_keys({}).ok());
    EXPECT_TRUE(comm.pair_keys({rank}).ok());
    return {};
  });
  EXPECT_EQ(outcome(outcomes), "ok");
}

// Nobody else comes to their sums: only the end of the group ends them.
TEST(Abort, EndsWhatRunsAndWhatIsQueuedOnAllRanksAtOnce) {
  for (const TransportKind transport : {TransportKind::shm, TransportKind::tcp}) {
    GroupSetup setup = three_ranks();
    setup.transport = transport;
    setup.timeout = std::chrono::seconds(600);
    ThreadGroup group(setup);
    std::atomic<int> waiting = 0;
    const auto outcomes = group.run([&](Communicator& comm) -> Status {
      if (comm.self().rank == 2) {
        while (waiting < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        comm.abort();
        return comm.run(barrier());
      }
      std::vector<float> first(100, 1), second(100, 1);
      const auto running = comm.start(sum_of(first));
      const auto queued = comm.start(sum_of(second));
      // It sleeps in the sum when it hears of the end.
      while (comm.awaited() == kNobody) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++waiting;
      EXPECT_FALSE(running.get().ok());
      return queued.get();
    });
    for (const Status& status : outcomes) {
      ASSERT_FALSE(status.ok());
      EXPECT_NE(status.error().message.find("the group was aborted"), std::string::npos)
          << status.error().message;
    }
    EXPECT_NE(outcomes[0].error().message.find("rank 2 gave up"), std::string::npos);
  }
}

TEST(Abort, EndsTheOperationThatWaitsOnTheRankItself) {
  GroupSetup setup = three_ranks();
  setup.timeout = std::chrono::seconds(600);
  ThreadGroup group(setup);
  const auto outcomes = group.run([&](Communicator& comm) -> Status {
    if (comm.self().rank != 0) {  // in no operation, but it listens
      while (!comm.failure()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return *comm.failure();
    }
    std::vector<float> values(100, 1);
    const auto running = comm.start(sum_of(values));
    while (comm.awaited() == kNobody) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_FALSE(comm.failure());
    comm.abort();
    comm.abort();
    return running.get();
  });
  for (const Status& status : outcomes) {
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("all_reduce 0: the group was aborted"), std::string::npos)
        << status.error().message;
  }
}

TEST(Gone, IsToldOfARankThatHasLeftAndOfNoOther) {
  for (const TransportKind transport : {TransportKind::shm, TransportKind::tcp}) {
    GroupSetup setup = three_ranks();
    setup.transport = transport;
    ThreadGroup group(setup);
    std::atomic<int> seen = 0;
    const auto outcomes = group.run([&](Communicator& comm) -> Status {
      if (comm.self().rank == 1) return sum_until_error(comm, 10, 1);
      EXPECT_FALSE(comm.gone(1));  // it waits for this one in the sum
      if (Status status = sum_until_error(comm, 10, 1); !status) return status;
      while (!comm.gone(1)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_FALSE(comm.gone(2 - comm.self().rank));
      EXPECT_FALSE(comm.gone(comm.self().rank));
      EXPECT_TRUE(comm.gone(3));
      EXPECT_FALSE(comm.failure());  // who is not waited for may leave
      ++seen;
      while (seen < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return {};
    });
    EXPECT_EQ(outcome(outcomes), "ok");
  }
}

// The other rank says that it is ready and leaves while this one asks whether it is still wanted:
// what was said before counts.
TEST(GivenUp, DoesNotEndAJoinWhoseLastWordWasSaidBefore) {
  for (int round = 0; round < 5; ++round) {
    ThreadGroup group(three_ranks());
    const auto outcomes = group.run([&](Communicator& comm) -> Status {
      if (comm.self().rank == 2) return {};
      JoinOptions options = part_of(group, comm, "part", {0, 1});
      if (comm.self().rank == 0) {
        options.given_up = [&] {
          for (int look = 0; look < 100 && !comm.gone(1); ++look) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
          return comm.gone(1);
        };
      }
      auto part = Communicator::create(options);
      return part ? Status() : Status(part.error());
    });
    EXPECT_EQ(outcome(outcomes), "ok");
  }
}

// Joining through a store, where the other rank never leaves an address.
TEST(GivenUp, EndsAJoinThatWaits) {
  ThreadGroup group(three_ranks());
  JoinOptions options = group.options(0);
  std::atomic<bool> asked = false;
  options.timeout = std::chrono::seconds(600);
  options.store.set = [](const std::string&, const std::string&) { return Status(); };
  options.store.get = [&](const std::string&, Duration timeout) -> Result<std::string> {
    asked = true;
    std::this_thread::sleep_for(timeout);
    return io_error("nobody came");
  };
  options.given_up = [&] { return asked.load(); };
  const auto comm = Communicator::create(options);
  ASSERT_FALSE(comm.ok());
  EXPECT_NE(comm.error().message.find("given up joining"), std::string::npos);
}

}  // namespace
}  // namespace sealane
