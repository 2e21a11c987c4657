// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// What does a socket promise beyond moving bytes?

#include "transport/socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <thread>
#include <vector>

namespace sealane {
namespace {

struct Connected {
  Socket near;
  Socket far;
};

Connected connect_over_loopback() {
  const auto listener = Socket::listen_tcp("127.0.0.1", 0);
  auto near = Socket::connect_tcp("127.0.0.1", listener->port());
  std::optional<Socket> far;
  while (!far) {
    far = listener->accept();
    std::this_thread::yield();
  }
  return {std::move(*near), std::move(*far)};
}

int option(const Socket& socket, int level, int name) {
  int value = 0;
  socklen_t length = sizeof value;
  EXPECT_EQ(getsockopt(socket.descriptor(), level, name, &value, &length), 0);
  return value;
}

// Who only receives sends nothing that TCP could miss an answer to.
TEST(Socket, AsksAfterAMachineThatHasBeenSilent) {
  const Connected pair = connect_over_loopback();
  for (const Socket* socket : {&pair.near, &pair.far}) {
    EXPECT_EQ(option(*socket, SOL_SOCKET, SO_KEEPALIVE), 1);
    const int seconds =
        option(*socket, IPPROTO_TCP, TCP_KEEPIDLE) +
        option(*socket, IPPROTO_TCP, TCP_KEEPINTVL) * option(*socket, IPPROTO_TCP, TCP_KEEPCNT);
    EXPECT_LE(seconds, 60);
    // Ends connections whose receiver lives and does not read.
    EXPECT_EQ(option(*socket, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
  }
}

TEST(Socket, MovesTwoPiecesAsOne) {
  const Connected pair = connect_over_loopback();
  const std::array<uint8_t, 3> first = {1, 2, 3};
  const std::array<uint8_t, 2> second = {4, 5};
  std::array<uint8_t, 2> in_first{};
  std::array<uint8_t, 8> in_second{};
  EXPECT_EQ(pair.far.receive_both(in_first, in_second), 0);
  EXPECT_EQ(pair.near.send_both(first, second), 5);
  ptrdiff_t count = 0;
  while (count == 0) count = pair.far.receive_both(in_first, in_second);
  EXPECT_EQ(count, 5);
  EXPECT_EQ(in_first, (std::array<uint8_t, 2>{1, 2}));
  EXPECT_EQ(in_second, (std::array<uint8_t, 8>{3, 4, 5}));
}

// Who ends a connection looks at it again and again until a deadline: somebody who goes on writing
// must not keep it in one look.
TEST(Socket, OneLookAtAConnectionThatEndsReadsABoundedPart) {
  const Connected pair = connect_over_loopback();
  const std::vector<uint8_t> flood(1 << 20, 'x');
  int stuck = 0;
  for (size_t sent = 0; stuck < 100;) {
    const ptrdiff_t count = pair.near.send(flood);
    ASSERT_GE(count, 0);
    sent += static_cast<size_t>(count);
    if (count > 0) continue;
    ++stuck;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (stuck == 100) {
      ASSERT_GT(sent, 256u << 10) << "no flood: the test shows nothing";
    }
  }
  pair.far.end_sending();
  static_cast<void>(pair.far.all_arrived());
  std::array<uint8_t, 1> byte{};
  EXPECT_EQ(pair.far.receive(byte), 1);
}

}  // namespace
}  // namespace sealane
