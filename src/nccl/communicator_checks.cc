// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "nccl/communicator_checks.h"

#include <algorithm>
#include <thread>

#include "base/text.h"
#include "base/try.h"
#include "nccl/player.h"

namespace sealane::nccl {
namespace {

// One all-reduce with sums nobody else has.
Status sum_right(Ring& ring, int rank, float scale) {
  std::vector<float> values(100'000);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = scale * static_cast<float>(i % 97 + static_cast<size_t>(rank));
  }
  SEALANE_TRY(ring.all_reduce(values));
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != scale * static_cast<float>(2 * (i % 97) + 1)) {
      return crypto_error(concat("a sum is wrong at element ", i));
    }
  }
  return {};
}

int rounds_of(const Subject& subject) {
  return static_cast<int>(std::min<uint64_t>(subject.messages / 50, 20)) + 1;
}

// Both have come to that point: who closes earlier may close what the other has not received yet.
Status meet_at(Seat& seat, int point) {
  seat.reach(point);
  return seat.await(1 - seat.rank(), point, patience());
}

void close_both(Player& player, const Player::Pair& pair) {
  player.close_send(pair.send);
  player.close_receive(pair.receive);
}

}  // namespace

// Two communicators, both ways, at the same time; each gets its own bytes.
Status check_communicators(const Subject& subject, const PluginTable& plugin, Seat& seat) {
  SEALANE_LET(auto first, Player::start(plugin, seat, 1));
  SEALANE_LET(auto second, Player::start(plugin, seat, 2));
  const int other = 1 - seat.rank();
  SEALANE_LET(auto one, first->connect_ring(other, other, 0));
  SEALANE_LET(auto two, second->connect_ring(other, other, 1));
  Ring first_ring(*first, one, 64 << 10);
  Ring second_ring(*second, two, 64 << 10);
  for (int round = 0; round < rounds_of(subject); ++round) {
    SEALANE_TRY(sum_right(first_ring, seat.rank(), 1));
    SEALANE_TRY(sum_right(second_ring, seat.rank(), 1000));
  }
  const Status status = meet_at(seat, 0);
  close_both(*first, one);
  close_both(*second, two);
  return status;
}

// A communicator that was split from another has its context, and goes on when the other's
// connections are closed.
Status check_split(const Subject& subject, const PluginTable& plugin, Seat& seat) {
  SEALANE_LET(auto player, Player::start(plugin, seat));
  const int other = 1 - seat.rank();
  SEALANE_LET(auto whole, player->connect_ring(other, other, 0));
  SEALANE_LET(auto part, player->connect_ring(other, other, 1));
  Ring whole_ring(*player, whole, 64 << 10);
  Ring part_ring(*player, part, 64 << 10);
  for (int round = 0; round < rounds_of(subject); ++round) {
    SEALANE_TRY(sum_right(whole_ring, seat.rank(), 1));
    SEALANE_TRY(sum_right(part_ring, seat.rank(), 1000));
  }
  SEALANE_TRY(meet_at(seat, 0));
  close_both(*player, whole);
  SEALANE_TRY(sum_right(part_ring, seat.rank(), 3));
  const Status status = meet_at(seat, 1);
  close_both(*player, part);
  return status;
}

// NCCL's service thread makes and closes connections while its progress thread sends and receives.
Status check_threads(const Subject& subject, const PluginTable& plugin, Seat& seat) {
  constexpr int kConnections = kLinksMax - 1;
  SEALANE_LET(auto player, Player::start(plugin, seat));
  const int other = 1 - seat.rank();
  SEALANE_LET(auto ring, player->connect_ring(other, other, 0));
  Status served;
  std::thread service([&] {
    for (int link = 1; link <= kConnections && served; ++link) {
      auto made = player->connect_ring(other, other, link);
      served = made ? meet_at(seat, link) : Status(made.error());
      if (made) close_both(*player, *made);
    }
  });
  Ring moving(*player, ring, 64 << 10);
  Status moved;
  for (int round = 0; moved && round < 10 * rounds_of(subject); ++round) {
    moved = sum_right(moving, seat.rank(), static_cast<float>(round + 1));
  }
  service.join();
  if (!moved) return moved;
  if (!served) return served;
  const Status status = meet_at(seat, 0);
  close_both(*player, ring);
  return status;
}

// ncclCommAbort: connections that were begun are never asked for again, listeners are closed with
// whoever stands before them, requests are under way. The next communicator works as the first.
Status check_abort(const Subject&, const PluginTable& plugin, Seat& seat) {
  std::vector<uint8_t> memory(1 << 20);
  const int other = 1 - seat.rank();
  {
    SEALANE_LET(auto player, Player::start(plugin, seat, 1));
    SEALANE_LET(auto ring, player->connect_ring(other, other, 0));
    SEALANE_LET(auto listener, player->listen_for(other, 1));
    SEALANE_LET(auto handle, seat.take_handle(other, 1, patience()));
    void* comm = nullptr;
    const Code code = plugin.connect(player->context(), 0, handle, &comm);
    if (code != kSuccess) return failed("connect", code);
    SEALANE_TRY(player->receive(ring.receive, memory.data(), memory.size()));
    SEALANE_TRY(meet_at(seat, 0));
    if (comm != nullptr) player->close_send(comm);
    player->close_listen(listener);
    close_both(*player, ring);
  }
  SEALANE_LET(auto player, Player::start(plugin, seat, 2));
  SEALANE_LET(auto ring, player->connect_ring(other, other, 2));
  Ring moving(*player, ring, 64 << 10);
  SEALANE_TRY(sum_right(moving, seat.rank(), 1));
  const Status status = meet_at(seat, 1);
  close_both(*player, ring);
  return status;
}

// One listener, two connections.
Status check_listener(const Subject&, const PluginTable& plugin, Seat& seat) {
  SEALANE_LET(auto player, Player::start(plugin, seat));
  const Traffic traffic{20, {1000, 300'000}, 4};
  if (seat.rank() == 0) {
    for (int i = 0; i < 2; ++i) {
      SEALANE_LET(auto comm, player->connect_to(1));
      SEALANE_TRY(send_traffic(*player, comm, traffic));
      SEALANE_TRY(seat.await(1, i, patience()));
      player->close_send(comm);
    }
    return {};
  }
  SEALANE_LET(auto listener, player->listen_for(0));
  for (int i = 0; i < 2; ++i) {
    SEALANE_LET(auto comm, player->accept_on(listener));
    SEALANE_TRY(receive_traffic(*player, comm, traffic));
    seat.reach(i);
    player->close_receive(comm);
  }
  player->close_listen(listener);
  return {};
}

}  // namespace sealane::nccl
