// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Does a listener outlive those who crowd its door, and do two processes hear of it when they
// cannot understand each other? Both sides in one process, over loopback, waiting for conditions.

#include "net/network.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <thread>
#include <vector>

#include "base/text.h"
#include "transport/socket.h"

namespace sealane::net {
namespace {

using HandleBytes = std::array<uint8_t, Handle::kBytes>;

std::shared_ptr<Network> open_network(uint8_t digit = 7) {
  std::array<uint8_t, Key::kBytes> bytes;
  bytes.fill(digit);
  NetworkOptions options;
  options.credentials = Credentials(PresharedKey{*Key::from_bytes(bytes)});
  options.interfaces = "lo";
  auto network = Network::open(std::move(options));
  if (!network) ADD_FAILURE() << network.error().message;
  return *network;
}

// True as soon as the condition holds; false only if it never does.
bool eventually(const std::function<bool()>& condition) {
  const Instant end = SteadyClock().now() + std::chrono::seconds(60);
  while (!condition()) {
    if (SteadyClock().now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// A listener, and what was heard of it.
struct Host {
  std::shared_ptr<Network> network = open_network();
  HandleBytes handle{};
  std::shared_ptr<Listener> listener;
  std::shared_ptr<ReceiveEnd> end;
  std::optional<Error> failure;

  Host() {
    auto made = network->listen(0, handle);
    EXPECT_TRUE(made.ok());
    listener = *made;
  }
  bool accept() {
    auto got = listener->accept();
    if (!got) failure = got.error();
    if (got) end = *got;
    return failure || end != nullptr;
  }
  Socket knock() const {
    const auto where = Handle::parse(handle);
    auto socket = Socket::connect_tcp(where->address.text(), where->address.port);
    EXPECT_TRUE(socket.ok());
    return std::move(*socket);
  }
};

struct Guest {
  std::shared_ptr<Network> network;
  std::shared_ptr<Attempt> attempt;
  std::shared_ptr<SendEnd> end;
  std::optional<Error> failure;

  Guest(std::shared_ptr<Network> from, const HandleBytes& handle) : network(std::move(from)) {
    auto made = network->connect(handle);
    if (made) attempt = *made;
    if (!made) failure = made.error();
  }
  bool poll() {
    if (failure) return true;
    auto got = attempt->poll();
    if (!got) failure = got.error();
    if (got) end = *got;
    return failure || end != nullptr;
  }
};

// More strangers than there is room for stand at the door, silent, and a member of the group behind
// them. When they leave he is heard: the door looks again though nobody new knocks.
TEST(Listener, AFullDoorOpensAgainWhenStrangersLeave) {
  Host host;
  std::vector<Socket> strangers;
  for (int i = 0; i < 300; ++i) {
    strangers.push_back(host.knock());
    // In order, and before the member: a connected socket is in the kernel's queue or beyond.
    ASSERT_TRUE(eventually([&] { return strangers.back().connect_error() == 0; }));
  }
  Guest guest(open_network(), host.handle);
  EXPECT_FALSE(host.accept());
  strangers.clear();
  EXPECT_TRUE(eventually([&] { return guest.poll() && host.accept(); }));
  EXPECT_TRUE(guest.end != nullptr && host.end != nullptr);
}

TEST(Listener, StrangersThatTalkNonsenseAreDroppedAndDoNoHarm) {
  Host host;
  std::vector<Socket> strangers;
  std::vector<uint8_t> nonsense(1000, 'x');
  for (int i = 0; i < 50; ++i) {
    strangers.push_back(host.knock());
    ASSERT_TRUE(eventually([&] { return strangers.back().connect_error() == 0; }));
    nonsense[0] = static_cast<uint8_t>(i);
    EXPECT_GT(strangers.back().send(nonsense), 0);
  }
  std::array<uint8_t, 1> byte;
  for (const Socket& one : strangers) {
    EXPECT_TRUE(eventually([&] { return one.receive(byte) < 0; }));  // hung up on
  }
  Guest guest(open_network(), host.handle);
  EXPECT_TRUE(eventually([&] { return guest.poll() && host.accept(); }));
  EXPECT_TRUE(guest.end != nullptr && host.end != nullptr);
}

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

// A greeting that was read from the wire and is said again by somebody without the key.
TEST(Greetings, AReplayedOneGivesNoConnection) {
  Host host;
  Guest guest(open_network(), host.handle);
  ASSERT_TRUE(eventually([&] { return guest.poll() && host.accept(); }));
  host.end.reset();
  const auto where = Handle::parse(host.handle);
  Hello hello;
  hello.streams = 2;
  hello.chunk_bytes = 128 << 10;
  hello.listener = where->listener;
  hello.process = guest.network->credence().pairs->self();
  hello.pair = guest.network->credence().pairs->with(where->process).value_or(PairId{});
  Socket replay = host.knock();
  ASSERT_TRUE(eventually([&] { return replay.connect_error() == 0; }));
  ASSERT_EQ(replay.send(hello.encode()), static_cast<ptrdiff_t>(Hello::kBytes));
  std::array<uint8_t, 1024> answer;
  EXPECT_TRUE(eventually([&] { return replay.receive(answer) > 0; }));  // asks for a proof
  std::vector<uint8_t> proof;
  append_frame(proof, FrameKind::confirm, std::array<uint8_t, 32>{});
  EXPECT_GT(replay.send(proof), 0);
  EXPECT_TRUE(eventually([&] { return host.accept(); }));
  EXPECT_TRUE(host.failure && host.end == nullptr);
}

}  // namespace
}  // namespace sealane::net
