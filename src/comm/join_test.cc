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

#include <algorithm>
#include <array>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "comm/endpoint.h"
#include "comm/group_fixture.h"
#include "comm/rendezvous.h"
#include "seal/find_in_memory_for_tests.h"

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
  ASSERT_EQ(symlink(victim.c_str(), (meet() + "/g.2.0.0.new").c_str()), 0);
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

// They come from the rendezvous, which nobody trusts: no name server hears of them, and none that
// does not answer makes a join last longer than it may.
TEST(Join, AddressesOfOtherRanksAreNumbersAndTriedInTime) {
  auto listener = Socket::listen_tcp("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok());
  Endpoint endpoint;
  endpoint.port = listener->port();
  const Instant soon = SteadyClock().now() + std::chrono::minutes(5);
  endpoint.addresses = {"localhost"};
  EXPECT_FALSE(connect_to(endpoint, false, true, soon).ok()) << "a name was looked up";
  endpoint.addresses = {"127.0.0.1"};
  EXPECT_TRUE(connect_to(endpoint, false, true, soon).ok());
  while (listener->accept()) {
  }
  EXPECT_FALSE(connect_to(endpoint, false, true, Instant()).ok());
  EXPECT_FALSE(listener->accept()) << "somebody connected past the deadline";
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
        << Endpoint{"here", "nobody", 0, {}, {}}.encode() << "\n";
  }
  const pid_t child = fork();
  if (child == 0) {
    alarm(300);
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

// The command's own bound is a minute.
TEST(Join, AnAttestationCommandDoesNotOutlastTheTimeOut) {
  GroupSetup setup;
  setup.timeout = std::chrono::seconds(2);
  ThreadGroup group(setup);
  const Instant start = SteadyClock().now();
  const auto outcomes = group.run(
      nothing, [&](JoinOptions& options) { options.attest_command = "exec sleep 1000 #"; });
  EXPECT_LT(SteadyClock().now() - start, std::chrono::seconds(50));
  for (const Status& status : outcomes) EXPECT_FALSE(status.ok());
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
  for (const TransportKind transport : {TransportKind::shm, TransportKind::tcp}) {
    setup.transport = transport;
    ThreadGroup group(setup);
    std::thread rank0([&] { EXPECT_TRUE(Communicator::create(group.options(0)).ok()); });
    EXPECT_EQ(endpoint_of_rank0(group).port != 0, transport == TransportKind::tcp);
    EXPECT_TRUE(Communicator::create(group.options(1)).ok());  // its address stays until then
    rank0.join();
  }
}

// ---- Ranks that will not meet end at once, and know why ----

std::unique_ptr<Rendezvous> at(const std::string& where) {
  JoinOptions options;
  options.rendezvous = where;
  return std::move(*make_rendezvous(options));
}

constexpr Duration kLong = std::chrono::minutes(10);  // nobody waits that long here

// Rank 0 has met everybody and given up before rank 1, slow, looks for its address.
TEST(Join, WhoGivesUpLeavesWordForThoseWhoHaveNotMetItYet) {
  const TemporaryDirectory directory;
  const std::string where = "file:" + directory.path() + "/meet";
  const Instant deadline = SteadyClock().now() + kLong;
  auto slow = at(where);
  auto third = at(where);
  const auto leave_address = [&](Rendezvous& rendezvous, uint32_t rank, const char* text) {
    static_cast<void>(rendezvous.exchange({"g", 3, rank}, text, Instant()));
  };
  leave_address(*slow, 1, "address of 1");
  leave_address(*third, 2, "address of 2");
  {
    auto first = at(where);
    const auto met = first->exchange({"g", 3, 0}, "address of 0", deadline);
    ASSERT_TRUE(met.ok());
    first->tell({"g", 3, 1}, (*met)[1], "rank 2 left while joining");
  }
  const auto texts = slow->exchange({"g", 3, 1}, "address of 1", deadline);
  ASSERT_FALSE(texts.ok());
  EXPECT_EQ(texts.error().message, "rank 0 of 3 of group 'g' gave up: rank 2 left while joining");
}

TEST(Join, WordLeftForAnEarlierJobDoesNotCount) {
  const TemporaryDirectory directory;
  const std::string where = "file:" + directory.path() + "/meet";
  auto crashed = at(where);
  static_cast<void>(crashed->exchange({"g", 2, 0}, "old 0", Instant()));
  crashed->tell({"g", 2, 1}, "old 1", "trouble");
  const auto first = at(where);
  const auto second = at(where);
  std::thread rank0([&] {
    EXPECT_TRUE(first->exchange({"g", 2, 0}, "new 0", SteadyClock().now() + kLong).ok());
  });
  EXPECT_TRUE(second->exchange({"g", 2, 1}, "new 1", SteadyClock().now() + kLong).ok());
  rank0.join();
}

// What every rank of a group says when they were given different things.
std::vector<std::string> complaints(ThreadGroup& group, const ThreadGroup::Adjust& adjust) {
  std::vector<std::string> texts;
  for (const Status& status : group.run(nothing, adjust)) {
    texts.push_back(status ? "ok" : status.error().message);
  }
  return texts;
}

uint16_t free_port() { return Socket::listen_tcp("", 0)->port(); }

TEST(Join, OtherNamesOrSizesEndAtOnceWithAHint) {
  for (const bool tcp : {false, true}) {
    for (const bool name : {false, true}) {
      SCOPED_TRACE(concat(tcp ? "tcp" : "file", name ? ", name" : ", size"));
      GroupSetup setup;
      setup.timeout = kLong;
      ThreadGroup group(setup);
      const std::string meeting = concat("tcp:127.0.0.1:", free_port());
      const auto texts = complaints(group, [&](JoinOptions& options) {
        if (tcp) options.rendezvous = meeting;
        if (options.self.rank == 0) return;
        if (name) options.self.group = "other";
        if (!name) options.self.size = 3;
      });
      for (const std::string& text : texts) {
        EXPECT_NE(text.find("give all ranks the same group name and size"), std::string::npos)
            << text;
        EXPECT_NE(text.find("rank 0 of 2 of group 'test'"), std::string::npos) << text;
        EXPECT_NE(text.find(name ? "rank 1 of 2 of group 'other'" : "rank 1 of 3 of group 'test'"),
                  std::string::npos)
            << text;
      }
    }
  }
}

// It comes to the meeting place, and hangs up before the last rank is there.
TEST(Join, ARankThatDiesAtTheMeetingPlaceIsNamed) {
  const uint16_t port = free_port();
  const std::string where = concat("tcp:127.0.0.1:", port);
  std::thread guest([&] {
    Socket victim;
    const std::string text = "g 3\naddress of 2";
    std::vector<uint8_t> frame(8 + text.size());
    store_le<uint32_t>(frame.data(), 2);
    store_le(frame.data() + 4, static_cast<uint32_t>(text.size()));
    std::copy(text.begin(), text.end(), frame.begin() + 8);
    while (victim.send(frame) <= 0) {
      auto socket = Socket::connect_tcp("127.0.0.1", port);
      if (!socket) continue;
      victim = std::move(*socket);
      wait_for_sockets({{victim.descriptor(), true}}, std::chrono::milliseconds(50));
    }
  });
  const auto texts = at(where)->exchange({"g", 3, 0}, "own", SteadyClock().now() + kLong);
  guest.join();
  ASSERT_FALSE(texts.ok());
  EXPECT_EQ(texts.error().message, "rank 2 left while joining");
}

TEST(Join, AWrongKeyIsBlamedOnItsHolderByAll) {
  for (const TransportKind transport : {TransportKind::shm, TransportKind::tcp}) {
    for (const uint32_t culprit : {0u, 1u, 2u}) {
      SCOPED_TRACE(concat("rank ", culprit));
      GroupSetup setup;
      setup.size = 3;
      setup.timeout = kLong;
      setup.transport = transport;
      if (transport == TransportKind::tcp) setup.hosts = {"a", "b", "c"};
      ThreadGroup group(setup);
      const TemporaryDirectory elsewhere;
      ASSERT_TRUE(write_key_file(elsewhere.path() + "/key").ok());
      const auto texts = complaints(group, [&](JoinOptions& options) {
        if (options.self.rank == culprit) options.key_file = elsewhere.path() + "/key";
      });
      for (const std::string& text : texts) {
        EXPECT_NE(text.find(concat("rank ", culprit, " has another key than the others")),
                  std::string::npos)
            << text;
      }
    }
  }
}

// Rank 1 has met the others, found out rank 2, left word for rank 0 and taken its address back; of
// what is left, two keys, nobody could tell which is the wrong one.
TEST(Join, WhoComesLateBelievesThoseWhoSawAllKeys) {
  GroupSetup setup;
  setup.size = 3;
  setup.timeout = kLong;
  ThreadGroup group(setup);
  Status joined;
  std::thread rank0([&] {
    auto comm = Communicator::create(group.options(0));
    if (!comm) joined = comm.error();
  });
  const std::string place = group.options(0).rendezvous.substr(5) + "/test.3.";
  while (content(place + "0").empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const std::string own = content(place + "0");
  Endpoint other;
  other.host = "elsewhere";
  other.unix_name = "nobody";
  other.key_id = "another";
  std::ofstream(place + "2.aside") << other.encode() << "\n";
  std::filesystem::rename(place + "2.aside", place + "2");
  const std::string why = "rank 2 has another key than the others";
  std::ofstream(place + "0.note.aside")
      << own << "rank 1 of 3 of group 'test' gave up: " << why << "\n";
  std::filesystem::rename(place + "0.note.aside", place + "0.note");
  rank0.join();
  ASSERT_FALSE(joined.ok());
  EXPECT_NE(joined.error().message.find(why), std::string::npos) << joined.error().message;
}

// ---- Whoever stands between the ranks connects them as he likes ----

// What all processes of two jobs have left, where the attacker lets each see what suits him.
class RedirectingStore {
 public:
  // To whom of that rank a process of that job and rank is led.
  using Lead = std::function<int(int job, uint32_t rank, uint32_t asked)>;
  explicit RedirectingStore(Lead lead) : lead_(std::move(lead)) {}

  ExternalStore seen_by(int job, uint32_t rank) {
    return {[=, this](const std::string&, const std::string& text) -> Status {
              const std::lock_guard lock(mutex_);
              texts_[{job, rank}] = text;
              came_.notify_all();
              return {};
            },
            [=, this](const std::string& key, Duration patience) -> Result<std::string> {
              const auto asked = static_cast<uint32_t>(key.back() - '0');
              const std::pair whom(lead_(job, rank, asked), asked);
              std::unique_lock lock(mutex_);
              if (came_.wait_for(lock, patience, [&] { return texts_.contains(whom); })) {
                return texts_[whom];
              }
              return io_error("nobody came");
            }};
  }

 private:
  const Lead lead_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::map<std::pair<int, uint32_t>, std::string> texts_;
};

// Two jobs of one name and key, or two lives of one job. Each process has one session with every
// other rank, and all are genuine; but whom rank 0 takes for rank 2 is not whom rank 1 takes for
// it. Sums that each gets would be of other ranks.
TEST(Join, RanksThatDoNotAllMeetTheSameProcessesAreNoGroup) {
  for (const TransportKind transport : {TransportKind::shm, TransportKind::tcp}) {
    for (const bool redirected : {true, false}) {
      SCOPED_TRACE(redirected ? "redirected" : "left alone");
      GroupSetup setup;
      setup.size = 3;
      setup.transport = transport;
      const ThreadGroup group(setup);
      RedirectingStore store([&](int job, uint32_t rank, uint32_t asked) {
        return redirected && rank != 0 && asked != 0 && rank != asked ? 1 - job : job;
      });
      std::vector<std::string> texts(6);
      std::vector<std::vector<float>> sums(6, std::vector<float>(1));
      std::vector<std::thread> processes;
      for (uint32_t i = 0; i < 6; ++i) {
        processes.emplace_back([&, i] {
          JoinOptions options = group.options(i % 3);
          options.store = store.seen_by(static_cast<int>(i / 3), i % 3);
          auto comm = Communicator::create(std::move(options));
          sums[i][0] = static_cast<float>(1 << i);
          const Status status = comm ? (*comm)->run(sum_of(sums[i])) : Status(comm.error());
          texts[i] = status ? concat("sum ", static_cast<int>(sums[i][0])) : status.error().message;
        });
      }
      for (std::thread& process : processes) process.join();
      // Who is slow may only see that the others have gone.
      const auto says = [](const char* what) {
        return [=](const std::string& text) { return text.find(what) != std::string::npos; };
      };
      EXPECT_EQ(std::any_of(texts.begin(), texts.end(), says("met other processes")), redirected);
      for (uint32_t i = 0; i < 6; ++i) {
        EXPECT_EQ(says(i < 3 ? "sum 7" : "sum 56")(texts[i]), !redirected) << i << ": " << texts[i];
        EXPECT_EQ(says("sum ")(texts[i]), !redirected) << i << ": " << texts[i];
      }
    }
  }
}

// ---- Key files ----

TEST(KeyFile, OfAGroupIsReadIfThatGroupIsNamed) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/key";
  ASSERT_TRUE(write_key_file(path).ok());
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  const std::string group = concat(status.st_gid);
  for (const mode_t mode : {0440, 0640}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    const auto refused = read_key_file(path);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message.find("SEALANE_KEY_GROUP=" + group), std::string::npos)
        << refused.error().message;
    EXPECT_FALSE(read_key_file(path, concat(status.st_gid + 1)).ok());
    EXPECT_TRUE(read_key_file(path, group).ok());
  }
  for (const mode_t mode : {0444, 0460, 0660, 0604}) {  // writable by the group, or anybody's
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_FALSE(read_key_file(path, group).ok());
  }
}

// ---- What a joined rank keeps ----

TEST(Join, LeavesTheGroupsKeyNowhereInMemory) {
  if (!kMemoryIsSearchable) GTEST_SKIP() << "a sanitizer's memory is too large to search";
  GroupSetup setup;
  ThreadGroup group(setup);
  const pid_t rank1 = fork();
  if (rank1 == 0) {
    alarm(300);
    std::optional<Needle> needle;
    {
      const auto key = read_key_file(group.key_file());
      needle.emplace(key->secret());
      if (needle->places().empty()) _exit(2);
    }
    auto comm = Communicator::create(group.options(1));
    if (!comm) _exit(3);
    _exit(needle->places().empty() ? 0 : 1);
  }
  const auto comm = Communicator::create(group.options(0));
  EXPECT_TRUE(comm.ok());
  int status = 0;
  waitpid(rank1, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace sealane
