// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A process with a group forks: can the child use, hang on or keep alive what is not its own?

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include "live/comm/group_fixture.h"

namespace sealane {
namespace {

constexpr unsigned kPatienceSeconds = 20;  // of a child that hangs

// Exit status of a child that runs `body`; -1 if it had to be ended.
template <typename Body>
int in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(kPatienceSeconds);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Fork, AChildSealsNothingAndTheParentGoesOn) {
  for (const TransportKind transport : {TransportKind::shm, TransportKind::tcp}) {
    GroupSetup setup;
    setup.transport = transport;
    ThreadGroup group(setup);
    const auto outcomes = group.run([](Communicator& comm) -> Status {
      std::vector<float> values(1000, 1);
      if (Status status = comm.run(sum_of(values)); !status) return status;
      if (comm.self().rank == 0) {
        const int refused = in_child([&] {
          const Status ran = comm.run(sum_of(values));
          const Status started = comm.start(sum_of(values)).get();
          const bool both = !ran && ran.error().kind == ErrorKind::usage && !started &&
                            started.error().message.find("fork()") != std::string::npos;
          return both ? 0 : 1;
        });
        if (refused != 0) return internal_error(concat("child: ", refused));
      }
      if (Status status = comm.run(sum_of(values)); !status) return status;
      return values == std::vector<float>(1000, 4) ? Status() : Status(internal_error("wrong"));
    });
    EXPECT_EQ(outcome(outcomes), "ok");
  }
}

TEST(Fork, AChildCanEndTheCommunicatorWhoseThreadIsNotThere) {
  GroupSetup setup;
  setup.size = 1;
  const ThreadGroup group(setup);
  auto comm = Communicator::create(group.options(0));
  ASSERT_TRUE(comm.ok());
  std::vector<float> values(10, 1);
  ASSERT_TRUE((*comm)->start(sum_of(values)).get().ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // its thread goes back to sleep
  EXPECT_EQ(in_child([&] {
              comm->reset();
              return 0;
            }),
            0);
  EXPECT_TRUE((*comm)->start(sum_of(values)).get().ok());
}

TEST(Fork, AChildDoesNotKeepADeadRankAlive) {
  GroupSetup setup;
  setup.timeout = std::chrono::seconds(5);
  const ThreadGroup group(setup);
  const pid_t rank1 = fork();
  if (rank1 == 0) {
    setpgid(0, 0);
    auto comm = Communicator::create(group.options(1));
    if (fork() == 0) {
      alarm(kPatienceSeconds);
      while (true) pause();
    }
    _exit(0);
  }
  auto comm = Communicator::create(group.options(0));
  ASSERT_TRUE(comm.ok()) << comm.error().message;
  std::vector<float> values(10, 1);
  const Status status = (*comm)->run(sum_of(values));
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("rank 1 is gone"), std::string::npos)
      << status.error().message;
  kill(-rank1, SIGKILL);  // the child that outlived it
  waitpid(rank1, nullptr, 0);
}

}  // namespace
}  // namespace sealane
