// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Can whoever shares the host or the rendezvous with a group harm its user, or keep it from
// joining?

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <fstream>
#include <memory>

#include "live/comm/endpoint.h"
#include "live/comm/group_fixture.h"
#include "live/comm/rendezvous.h"

namespace sealane {
namespace {

const auto nothing = [](Communicator&) { return Status(); };

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class RendezvousDirectory : public testing::Test {
 protected:
  std::string meet() const { return directory_.path() + "/meet"; }

  Result<std::vector<std::string>> come(Duration patience) const {
    JoinOptions options;
    options.rendezvous = "file:" + meet();
    auto rendezvous = make_rendezvous(options);
    if (!rendezvous) return rendezvous.error();
    return (*rendezvous)->exchange({"g", 2, 0}, "own", SteadyClock().now() + patience);
  }

  TemporaryDirectory directory_;
};

TEST_F(RendezvousDirectory, WritesThroughNoLink) {
  const std::string victim = directory_.path() + "/victim";
  std::ofstream(victim) << "precious";
  mkdir(meet().c_str(), 0700);
  ASSERT_EQ(symlink(victim.c_str(), (meet() + "/g.2.0.new").c_str()), 0);
  ASSERT_EQ(symlink(victim.c_str(), (meet() + "/g.2.0").c_str()), 0);
  EXPECT_FALSE(come(std::chrono::milliseconds(20)).ok());
  EXPECT_EQ(content(victim), "precious");
}

TEST_F(RendezvousDirectory, ReadsThroughNoLinkAndWaitsForNoPipe) {
  mkdir(meet().c_str(), 0700);
  const std::string elsewhere = directory_.path() + "/elsewhere";
  std::ofstream(elsewhere) << "address\n";
  ASSERT_EQ(symlink(elsewhere.c_str(), (meet() + "/g.2.1").c_str()), 0);
  EXPECT_FALSE(come(std::chrono::milliseconds(20)).ok());
  unlink((meet() + "/g.2.1").c_str());
  ASSERT_EQ(mkfifo((meet() + "/g.2.1").c_str(), 0600), 0);
  EXPECT_FALSE(come(std::chrono::milliseconds(20)).ok());
}

TEST_F(RendezvousDirectory, IsRefusedIfOthersCanWriteToItOrItIsALink) {
  mkdir(meet().c_str(), 0700);
  for (const mode_t mode : {0720, 0702}) {
    chmod(meet().c_str(), mode);
    const auto texts = come(std::chrono::milliseconds(20));
    ASSERT_FALSE(texts.ok());
    EXPECT_NE(texts.error().message.find("chmod go-w"), std::string::npos);
  }
  rmdir(meet().c_str());
  mkdir((meet() + "-real").c_str(), 0700);
  ASSERT_EQ(symlink((meet() + "-real").c_str(), meet().c_str()), 0);
  const auto texts = come(std::chrono::milliseconds(20));
  ASSERT_FALSE(texts.ok());
  EXPECT_EQ(texts.error().kind, ErrorKind::io);
}

TEST(Join, AnAddressLeftByACrashedJobDoesNotCount) {
  for (const TransportKind transport : {TransportKind::shm, TransportKind::tcp}) {
    GroupSetup setup;
    setup.transport = transport;
    ThreadGroup group(setup);
    const pid_t crashed = fork();
    if (crashed == 0) {
      auto comm = Communicator::create(group.options(0));
      _exit(0);
    }
    const std::string left = group.options(0).rendezvous.substr(5) + "/test.2.0";
    while (content(left).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    kill(crashed, SIGKILL);
    waitpid(crashed, nullptr, 0);
    const auto outcomes = group.run(nothing, [](JoinOptions& options) {
      if (options.self.rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    });
    EXPECT_EQ(outcome(outcomes), "ok");
  }
}

// Rank 0's own address, once it is there.
Endpoint endpoint_of_rank0(const ThreadGroup& group) {
  JoinOptions options = group.options(0);
  const std::string path = options.rendezvous.substr(5) + "/test.2.0";
  while (content(path).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return *Endpoint::decode(content(path));
}

Socket knock(const Endpoint& endpoint, bool tcp) {
  auto socket = connect_to(endpoint, true, tcp, SteadyClock().now() + std::chrono::seconds(5));
  return socket ? std::move(*socket) : Socket();
}

TEST(Join, AGroupThatNeedsMoreOpenFilesThanAreAllowedIsRefusedWithTheRemedy) {
  GroupSetup setup;
  setup.size = 500;
  setup.hosts.assign(setup.size, "here");
  const ThreadGroup group(setup);
  const std::string meet = group.options(0).rendezvous.substr(5);
  mkdir(meet.c_str(), 0700);
  for (uint32_t rank = 1; rank < setup.size; ++rank) {
    std::ofstream(concat(meet, "/test.500.", rank))
        << Endpoint{"here", "nobody", 0, {}}.encode() << "\n";
  }
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const rlimit few = {200, 200};
    setrlimit(RLIMIT_NOFILE, &few);
    const auto comm = Communicator::create(group.options(0));
    const bool refused = !comm && comm.error().kind == ErrorKind::usage &&
                         comm.error().message.find("ulimit -n") != std::string::npos;
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(Join, AStrangerThatClaimsARankDoesNotEndIt) {
  GroupSetup setup;
  setup.transport = TransportKind::tcp;
  ThreadGroup group(setup);
  const std::vector<uint8_t> wrong(Key::kBytes, 9);
  const Credentials credentials = PresharedKey{*Key::from_bytes(wrong)};
  const Key broadcast = *Key::from_bytes(wrong);
  auto session = Session::create({{"test", 2, 1}, 0, &credentials, &broadcast, nullptr});
  ASSERT_TRUE(session.ok());
  Socket stranger;
  const auto outcomes = group.run(nothing, [&](JoinOptions& options) {
    if (options.self.rank == 0) return;
    stranger = knock(endpoint_of_rank0(group), true);  // before the true rank 1
    stranger.send(as_bytes("C"));
    stranger.send((*session)->poll_transmit());
  });
  EXPECT_EQ(outcome(outcomes), "ok");
}

TEST(Join, SilentStrangersCannotFillTheHouse) {
  ThreadGroup group({});
  std::vector<Socket> strangers;
  const auto outcomes = group.run(nothing, [&](JoinOptions& options) {
    if (options.self.rank == 0) return;
    const Endpoint door = endpoint_of_rank0(group);
    for (int i = 0; i < 100; ++i) strangers.push_back(knock(door, false));
  });
  EXPECT_EQ(outcome(outcomes), "ok");
}

TEST(Join, AKeyInMemoryIsGoneOnceItHasDoneItsWork) {
  ThreadGroup group({});
  std::vector<std::weak_ptr<const Key>> keys(2);
  const auto give = [&](JoinOptions& options) {
    const std::array<uint8_t, Key::kBytes> bytes{1, 2, 3};
    options.key = std::make_shared<const Key>(*Key::from_bytes(bytes));
    keys[options.self.rank] = options.key;
  };
  const auto look = [&](Communicator& joined) -> Status {
    if (keys[joined.self().rank].expired()) return {};
    return internal_error("the key is still there");
  };
  EXPECT_EQ(outcome(group.run(look, give)), "ok");
}

TEST(Join, SharedMemoryOpensNoPort) {
  GroupSetup setup;
  setup.timeout = std::chrono::milliseconds(300);
  for (const TransportKind transport : {TransportKind::shm, TransportKind::tcp}) {
    setup.transport = transport;
    ThreadGroup group(setup);
    std::thread rank0([&] { EXPECT_FALSE(Communicator::create(group.options(0)).ok()); });
    EXPECT_EQ(endpoint_of_rank0(group).port != 0, transport == TransportKind::tcp);
    rank0.join();
  }
}

}  // namespace
}  // namespace sealane
