// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Do two processes hear of it when they cannot understand each other, when the other gives up, and
// in a child of fork()? Both sides in one process, over loopback, waiting for conditions.

#include "net/network.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "net/hosts_for_tests.h"

namespace sealane::net {
namespace {

constexpr uint8_t kNewer = kProtocolVersion + 1;

// Magic, version, addresses and the listener's nonce have the same places in every version, so that
// both sides can say what is wrong.
TEST(Versions, AListenerNamesTheOneOfWhoConnects) {
  Host host;
  Hello hello;
  hello.listener = Handle::parse(host.handle)->listener;
  auto bytes = hello.encode();
  bytes[8] = kNewer;
  Socket newer = host.knock();
  ASSERT_TRUE(eventually([&] { return newer.connect_error() == 0; }));
  ASSERT_EQ(newer.send(bytes), static_cast<ptrdiff_t>(Hello::kBytes));
  EXPECT_TRUE(eventually([&] { return host.accept(); }));
  ASSERT_TRUE(host.failure);
  EXPECT_NE(host.failure->message.find(concat("127.0.0.1 speaks version ", kNewer)),
            std::string::npos)
      << host.failure->message;
}

TEST(Versions, WhoConnectsNamesTheListenersAndGreetsSoThatItHearsOfIt) {
  auto newer = Socket::listen_tcp("127.0.0.1", 0);
  ASSERT_TRUE(newer.ok());
  Host host;  // for a handle to change
  Handle where = *Handle::parse(host.handle);
  where.address.port = newer->port();
  HandleBytes handle{};
  where.encode(handle);
  handle[8] = kNewer;
  Guest guest(open_network(), handle);
  EXPECT_TRUE(eventually([&] { return guest.poll(); }));
  ASSERT_TRUE(guest.failure);
  EXPECT_NE(guest.failure->message.find(concat("speaks version ", kNewer)), std::string::npos)
      << guest.failure->message;
  std::optional<Socket> heard;
  ASSERT_TRUE(eventually([&] { return (heard = newer->accept()).has_value(); }));
  std::array<uint8_t, Hello::kBytes> hello;
  size_t filled = 0;
  EXPECT_TRUE(eventually([&] {
    const ptrdiff_t count = heard->receive(MutableBytes(hello).subspan(filled));
    filled += count > 0 ? static_cast<size_t>(count) : 0;
    return filled == hello.size();
  }));
  EXPECT_EQ(Hello::listener_of(hello), where.listener);
}

TEST(Communicators, AreNotMixedUpByWhoeverCarriesHandles) {
  Host host(open_network(), 1);
  Guest guest(open_network(), host.handle, 2);
  EXPECT_TRUE(eventually([&] {
    const bool polled = guest.poll();
    return host.accept() && polled;
  }));
  ASSERT_TRUE(guest.failure && host.failure);
  EXPECT_NE(host.failure->message.find("another communicator"), std::string::npos)
      << host.failure->message;
}

// An aborted job: what nobody took is not kept alive for the other side to wait for.
TEST(Listener, ClosedWithAConnectionNobodyTookTellsWhoConnected) {
  Host host;
  Guest guest(open_network(), host.handle);
  ASSERT_TRUE(eventually([&] { return guest.poll(); }));
  ASSERT_TRUE(guest.end != nullptr);
  host.listener->close();
  std::vector<uint8_t> memory(1 << 20);
  EXPECT_TRUE(eventually([&] { return !guest.end->send(memory.data(), memory.size()).ok(); }));
}

TEST(Attempt, GivenUpBeforeItsEndWasTakenTellsTheListener) {
  Host host;
  Guest guest(open_network(), host.handle);
  const auto workers = guest.network->crew();  // that other connections keep alive
  ASSERT_TRUE(eventually([&] { return host.accept(); }));
  ASSERT_TRUE(host.end != nullptr);
  guest.attempt.reset();
  std::array<uint8_t, 16> memory{};
  auto request = host.end->receive(memory.data(), memory.size());
  EXPECT_TRUE(eventually(
      [&] { return !request.ok() || *request == nullptr || !host.end->test(**request).ok(); }));
}

// The errors of every call of a child's; the answer is how many were none.
int calls_without_error(Guest& guest, Host& host, Guest& under_way) {
  std::array<uint8_t, 16> memory{};
  HandleBytes handle{};
  int wrong = 0;
  wrong += guest.end->send(memory.data(), memory.size()).ok() ? 1 : 0;
  wrong += host.end->receive(memory.data(), memory.size()).ok() ? 1 : 0;
  wrong += host.listener->accept().ok() ? 1 : 0;
  wrong += under_way.attempt->poll().ok() ? 1 : 0;
  wrong += host.network->listen(0, handle, 0).ok() ? 1 : 0;
  guest.end->close();
  host.end->close();
  host.listener->close();
  under_way.attempt->cancel();
  return wrong;
}

int exit_of(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Whatever lock a thread of the parent held when the child was made, the child hears an error.
TEST(Fork, AChildGetsAnErrorFromEveryCallAndWaitsForNothing) {
  Host host;
  Guest guest(open_network(), host.handle);
  ASSERT_TRUE(meet(guest, host));
  Guest under_way(guest.network, host.handle);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(300);  // a hang is a death by signal
    _exit(calls_without_error(guest, host, under_way));
  }
  EXPECT_EQ(exit_of(child), 0);
  EXPECT_TRUE(carry(guest, host, 300'000));
}

// One that held the allocator's lock would hold it in a child of a bare clone for ever.
bool others_sleep() {
  const std::string self = concat(syscall(SYS_gettid));
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    if (thread.path().filename() == self) continue;
    std::ifstream file(thread.path() / "stat");
    std::string text;
    std::getline(file, text);
    const size_t name_end = text.rfind(')');
    if (name_end == std::string::npos || text.substr(name_end + 2, 1) != "S") return false;
  }
  return true;
}

void expect_errors_in_a_bare_clone() {
  Host host;
  Guest guest(open_network(), host.handle);
  ASSERT_TRUE(meet(guest, host));
  // So that an engine that keeps what it has scheduled has it; this is sealed in this thread.
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(carry(guest, host, 64));
  Guest under_way(guest.network, host.handle);
  ASSERT_TRUE(eventually(others_sleep));
  const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(300);
    _exit(calls_without_error(guest, host, under_way));
  }
  EXPECT_EQ(exit_of(child), 0);
  EXPECT_TRUE(carry(guest, host, 300'000));
}

// No handler of fork() runs for such a child; whatever the engine keeps, it seals nothing. A
// process has one engine, so each has one of its own.
TEST(Fork, AChildOfABareCloneGetsAnErrorFromEveryCallWhateverTheEngine) {
  constexpr const char* kEngine = "SEALANE_AEAD";
  constexpr const char* kInner = "SEALANE_TEST_INNER";
  if (std::getenv(kInner) != nullptr) return expect_errors_in_a_bare_clone();
  for (const Engine* engine : all_engines()) {
    if (!engine->available()) continue;
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      setenv(kInner, "1", 1);
      setenv(kEngine, std::string(engine->name()).c_str(), 1);
      execl("/proc/self/exe", "net_test", "--gtest_brief=1",
            "--gtest_filter=Fork.AChildOfABareCloneGetsAnErrorFromEveryCallWhateverTheEngine",
            nullptr);
      _exit(127);
    }
    EXPECT_EQ(exit_of(child), 0) << engine->name();
  }
}

}  // namespace
}  // namespace sealane::net
