// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Is a rank that is killed while a connection is being made noticed by the other, wherever it was?
// (What happens to connections that exist is the conformance check `death`.)

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "nccl/ranks.h"
#include "nccl/tampered_receive.h"

namespace sealane::nccl {
namespace {

constexpr int kMessages = 40;

// Rank 0 connects and sends, rank 1 accepts and receives; the victim is killed in the middle of its
// receive number `receives`, whatever that belongs to. The other side must be told or be done.
Status live_or_die(Player& player, int victim, int receives) {
  const Traffic traffic{kMessages, {64 << 10}, 4};
  if (player.seat().rank() == victim) die_in_receive(receives);
  if (player.seat().rank() == 0) {
    auto comm = player.connect_to(1);
    if (!comm) return heard(comm.error());
    const Status status = send_traffic(player, *comm, traffic);
    return status ? status : heard(status.error());
  }
  auto comm = player.accept_from(0);
  if (!comm) return heard(comm.error());
  const Status status = receive_traffic(player, *comm, traffic);
  return status ? status : heard(status.error());
}

class Killed : public ::testing::TestWithParam<int> {};

TEST_P(Killed, AtAnyReceiveOfAConnectionThatIsMadeTheOtherSideHearsOfIt) {
  const int victim = GetParam();
  // The greeting of a connecting process has about a dozen receives; an accepting one goes on to
  // receive the messages.
  for (const int receives : {1, 2, 3, 5, 7, 9}) {
    const auto outcomes = play(2, sealed_environment(), [&](Player& player) {
      return live_or_die(player, victim, receives);
    });
    EXPECT_EQ(outcomes[static_cast<size_t>(victim)].words, "killed") << receives;
    const Outcome& other = outcomes[static_cast<size_t>(1 - victim)];
    EXPECT_TRUE(other.passed) << "receive " << receives << ": " << other.words;
  }
}

INSTANTIATE_TEST_SUITE_P(WhoeverItIs, Killed, ::testing::Values(0, 1), [](const auto& one) {
  return std::string(one.param == 0 ? "Connecting" : "Accepting");
});

// The sender dies when it has its end and the receiver's is not complete yet.
TEST(Death, BetweenTheStreamsOfAConnectionIsNoticed) {
  const auto outcomes = play(2, sealed_environment(), [](Player& player) -> Status {
    if (player.seat().rank() == 0) {
      auto comm = player.connect_to(1);
      if (!comm) return comm.error();
      kill(getpid(), SIGKILL);
    }
    auto listener = player.listen_for(0);
    if (!listener) return listener.error();
    auto comm = player.accept_on(*listener);
    if (!comm) return heard(comm.error());
    uint8_t byte = 0;
    auto request = player.receive(*comm, &byte, 1);
    if (!request) return heard(request.error());
    const auto size = player.wait(*request);
    return size ? Status(internal_error("received")) : heard(size.error());
  });
  EXPECT_TRUE(outcomes[1].passed) << outcomes[1].words;
}

}  // namespace
}  // namespace sealane::nccl
