// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Do two processes hear of it when they cannot understand each other, when the other gives up, and
// in a child of fork()? Both sides in one process, over loopback, waiting for conditions.

#include "net/network.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

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

// Whatever lock a thread of the parent held when the child was made, the child hears an error.
TEST(Fork, AChildGetsAnErrorFromEveryCallAndWaitsForNothing) {
  Host host;
  Guest guest(open_network(), host.handle);
  ASSERT_TRUE(meet(guest, host));
  Guest under_way(guest.network, host.handle);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);  // a hang is a death by signal
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
    _exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(carry(guest, host, 300'000));
}

}  // namespace
}  // namespace sealane::net
