// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The links between ranks once they are up: is tampering heard, and is a peer's word kept short?

#include "comm/control.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"

namespace sealane {
namespace {

Key key_of(uint8_t fill) {
  const std::vector<uint8_t> bytes(Key::kBytes, fill);
  return *Key::from_bytes(bytes);
}

// Ranks 0 and 1 with a complete session, and the attacker's hands on the wire.
class ControlPair : public testing::Test {
 protected:
  ControlPair() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    wire_to_[1] = Socket(dup(ends[0]));
    wire_to_[0] = Socket(dup(ends[1]));
    rank0_.link(1) = link(Socket(ends[0]), 0, std::nullopt);
    rank1_.link(0) = link(Socket(ends[1]), 1, 0);
    for (int i = 0; i < 10; ++i) {
      rank0_.link(1)->pump();
      rank1_.link(0)->pump();
    }
    EXPECT_TRUE(rank0_.link(1)->session().complete());
    EXPECT_TRUE(rank1_.link(0)->session().complete());
  }

  std::unique_ptr<ControlLink> link(Socket socket, uint32_t rank, std::optional<uint32_t> peer) {
    auto session = Session::create({{"g", 2, rank}, peer, &credentials_, &broadcast_, nullptr});
    return std::make_unique<ControlLink>(std::move(socket), std::move(*session));
  }

  const Credentials credentials_ = PresharedKey{key_of(1)};
  const Key broadcast_ = key_of(2);
  Control rank0_{2};
  Control rank1_{2};
  Socket wire_to_[2];
};

TEST_F(ControlPair, TamperingIsFinalAndNamesTheRank) {
  const std::vector<uint8_t> forged = {0x17, 3, 3, 0, 20, 1, 2, 3, 4, 5, 6, 7, 8,
                                       9,    1, 2, 3, 4,  5, 6, 7, 8, 9, 1, 2};
  ASSERT_EQ(wire_to_[0].send(forged), 25);
  rank0_.pump();
  ASSERT_TRUE(rank0_.aborted());
  EXPECT_EQ(rank0_.aborted()->kind, ErrorKind::crypto);
  EXPECT_NE(rank0_.aborted()->message.find("rank 1"), std::string::npos);
  EXPECT_NE(rank0_.aborted()->message.find("tampered with"), std::string::npos);
}

// Who writes faster than we read would hold us there, with the lock that a fork() waits for.
TEST_F(ControlPair, NothingIsReadAnyMoreOfALinkThatHasFailed) {
  const std::vector<uint8_t> flood(128 << 10, 'x');
  ASSERT_GT(wire_to_[0].send(flood), 64 << 10);
  rank0_.pump();
  ASSERT_TRUE(rank0_.aborted());
  int unread = 0;
  ASSERT_EQ(ioctl(rank0_.link(1)->descriptor(), FIONREAD, &unread), 0);
  EXPECT_GT(unread, 32 << 10);
  rank0_.pump();
  int later = 0;
  ASSERT_EQ(ioctl(rank0_.link(1)->descriptor(), FIONREAD, &later), 0);
  EXPECT_EQ(later, unread);
}

TEST_F(ControlPair, AReasonOfAnyLengthArrivesCut) {
  rank1_.abort(std::string(2 << 20, 'x'));
  rank0_.pump();
  ASSERT_TRUE(rank0_.aborted());
  EXPECT_EQ(rank0_.aborted()->message, concat("rank 1 gave up: ", std::string(kPeerTextMax, 'x')));
}

TEST_F(ControlPair, WhatAPeerSaysIsCutAndHasNoControlCharacters) {
  const std::string rude = "\x1b[31m\n" + std::string(500'000, 'y');
  rank1_.send(0, ControlKind::abort, as_bytes(rude));
  for (int i = 0; i < 100 && !rank0_.aborted(); ++i) {
    rank0_.pump();
    rank1_.pump();
  }
  ASSERT_TRUE(rank0_.aborted());
  EXPECT_EQ(rank0_.aborted()->message.size(),
            std::string("rank 1 gave up: ").size() + kPeerTextMax);
  EXPECT_NE(rank0_.aborted()->message.find("?[31m?yyy"), std::string::npos);
}

TEST_F(ControlPair, DescriptorsArriveAlsoIfTheWireWasFull) {
  const std::vector<uint8_t> filler(900'000);
  ControlLink& from = *rank1_.link(0);
  from.send(filler);
  from.send(filler);
  ASSERT_TRUE(from.unsent()) << "the wire never was full: the test shows nothing";
  from.send(as_bytes("one"), STDOUT_FILENO);
  from.send(as_bytes("two"), STDERR_FILENO);
  ControlLink& to = *rank0_.link(1);
  for (int i = 0; i < 1000 && from.unsent(); ++i) {
    to.pump();
    from.pump();
  }
  to.pump();
  for (int i = 0; i < 2; ++i) {
    const auto descriptor = to.take_descriptor();
    ASSERT_TRUE(descriptor);
    close(*descriptor);
  }
  EXPECT_FALSE(to.take_descriptor());
}

TEST_F(ControlPair, MoreDescriptorsThanAreDueAreRefusedAndClosed) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(wire_to_[0].send(as_bytes("x"), ends[1]), 1);
  rank0_.pump();
  ASSERT_TRUE(rank0_.aborted());
  EXPECT_EQ(rank0_.aborted()->message,
            "rank 1, control connection: passed 3 descriptors where the protocol has at most 2");
  EXPECT_FALSE(rank0_.link(1)->take_descriptor());
  EXPECT_TRUE(rank0_.gone(1));
  // What is still on the wire goes with it; then nobody holds the pipe's other end.
  rank0_.link(1).reset();
  rank1_.link(0).reset();
  wire_to_[0] = Socket();
  wire_to_[1] = Socket();
  close(ends[1]);
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 0) << "a descriptor was kept";
  close(ends[0]);
}

TEST_F(ControlPair, DescriptorsThatWereTakenCountToo) {
  ControlLink& from = *rank1_.link(0);
  ControlLink& to = *rank0_.link(1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(to.failure());
    from.send(as_bytes("one more"), STDOUT_FILENO);
    to.pump();
    if (const auto descriptor = to.take_descriptor()) close(*descriptor);
  }
  EXPECT_TRUE(to.failure());
}

}  // namespace
}  // namespace sealane
