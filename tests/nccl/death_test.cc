// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Is a rank that is killed while a connection is being made noticed by the other, wherever it was?
// (What happens to connections that exist is the conformance check `death`.)

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/text.h"
#include "nccl/faulty_calls.h"
#include "nccl/ranks.h"

namespace sealane::nccl {
namespace {

constexpr int kMessages = 40;

// It takes milliseconds (the check `death` prints them). This is for a machine that is busy
// otherwise; whoever is told by the end of a timeout is above it.
constexpr double kNoticedWithin_s = 40;

double seconds_now() {
  return std::chrono::duration<double>(SteadyClock().now().time_since_epoch()).count();
}

// Numbers of a seat: when the victim died; how long the other took to hear of it.
enum Number { kDied, kTook };

struct Death {
  int victim;
  Call call;
  int number;
};

// Rank 0 connects and sends, rank 1 accepts and receives; the victim is killed in the middle of a
// call, whatever that belongs to. The other side must be told or be done.
Status live_or_die(Player& player, const Death& death) {
  Seat& seat = player.seat();
  const Traffic traffic{kMessages, {64 << 10}, 4};
  if (seat.rank() == death.victim) {
    die_in(death.call, death.number, [&] { seat.put_number(kDied, seconds_now()); });
  }
  const auto told = [&](const Error& error) {
    seat.put_number(kTook, seconds_now() - seat.number_of(death.victim, kDied));
    return heard(error);
  };
  if (seat.rank() == 0) {
    auto comm = player.connect_to(1);
    if (!comm) return told(comm.error());
    const Status status = send_traffic(player, *comm, traffic);
    return status ? status : told(status.error());
  }
  auto comm = player.accept_from(0);
  if (!comm) return told(comm.error());
  const Status status = receive_traffic(player, *comm, traffic);
  return status ? status : told(status.error());
}

using Where = std::pair<int, Call>;

class Killed : public ::testing::TestWithParam<Where> {};

TEST_P(Killed, AtAnyPointOfAConnectionTheOtherSideHearsOfIt) {
  const auto [victim, call] = GetParam();
  // A greeting has about a dozen calls on either side, the first of them the Hello, and the joining
  // of the second stream; then come messages, one way.
  for (const int number : {1, 2, 3, 4, 5, 6, 7, 9, 12, 20}) {
    const Death death{victim, call, number};
    const auto outcomes =
        play(2, sealed_environment(), [&](Player& player) { return live_or_die(player, death); });
    const Outcome& dead = outcomes[static_cast<size_t>(victim)];
    const Outcome& other = outcomes[static_cast<size_t>(1 - victim)];
    EXPECT_TRUE(other.passed) << "call " << number << ": " << other.words;
    if (dead.passed) continue;  // it has not come to that call
    EXPECT_EQ(dead.words, "killed") << number;
    EXPECT_LT(other.numbers[kTook], kNoticedWithin_s) << "call " << number;
  }
}

INSTANTIATE_TEST_SUITE_P(WhoeverItIs, Killed,
                         ::testing::Values(Where{0, Call::receive}, Where{0, Call::send},
                                           Where{1, Call::receive}, Where{1, Call::send}),
                         [](const auto& at) {
                           return concat(at.param.first == 0 ? "Connecting" : "Accepting",
                                         at.param.second == Call::receive ? "Receives" : "Sends");
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
