// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// May a program call exit() while NCCL's threads are inside the plugin? Handlers of exit() then
// take down what the plugin stands on (OpenSSL above all) under the feet of its threads.

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "base/text.h"
#include "nccl/ranks.h"

namespace sealane::nccl {
namespace {

constexpr int kRounds = 50;  // of connections, after everybody's handlers have run
constexpr int kStillRunning = 3;

std::atomic<bool> handlers_over{false};
std::atomic<bool> thread_over{false};

// Registered before the plugin is loaded, so it runs after every handler the plugin brings along.
void wait_for_the_thread() {
  handlers_over = true;
  const Instant end = SteadyClock().now() + patience();
  while (!thread_over && SteadyClock().now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  _exit(thread_over ? 0 : kStillRunning);
}

// What NCCL's service and progress threads do, for ever: connect, carry a message, close. Ends when
// the plugin says that it is over, or has gone on for long enough.
void connect_without_end(Player& player, size_t bytes, std::atomic<bool>& begun) {
  std::vector<uint8_t> out(bytes, 1);
  std::vector<uint8_t> in(out.size());
  for (int rounds = 0; rounds < kRounds; rounds += handlers_over ? 1 : 0) {
    auto ring = player.connect_ring(0, 0);
    if (!ring) break;
    auto receiving = player.receive(ring->receive, in.data(), in.size());
    if (!receiving) break;
    auto sending = player.send(ring->send, out.data(), out.size());
    if (!sending) break;
    if (!player.wait(*receiving) || !player.wait(*sending)) break;
    begun = true;
    player.close_send(ring->send);
    player.close_receive(ring->receive);
  }
  thread_over = true;
  while (true) pause();  // its end would be OpenSSL's to notice
}

// Messages that workers seal, and small ones, which whoever sends them seals; OpenSSL does both.
TEST(Exit, WhileThreadsAreInsideThePluginIsQuiet) {
  std::vector<std::string> environment = sealed_environment();
  environment.emplace_back("SEALANE_AEAD=openssl");
  for (int i = 0; i < 20; ++i) {
    const size_t bytes = i % 2 == 0 ? 200'000 : 1'000;
    const auto outcomes = run_job(1, patience(), environment, [&](Seat& seat) -> Status {
      atexit(wait_for_the_thread);
      // Neither is ever let go: the process ends by exit(), as a program does that has failed.
      auto* const plugin = new Result(PluginTable::load(SEALANE_NCCL_PLUGIN, 12));
      if (!*plugin) return plugin->error();
      auto* const player = new Result(Player::start(***plugin, seat));
      if (!*player) return player->error();
      std::atomic<bool> begun{false};
      std::thread(connect_without_end, std::ref(***player), bytes, std::ref(begun)).detach();
      while (!begun && !thread_over) std::this_thread::sleep_for(std::chrono::microseconds(50));
      std::exit(0);
    });
    EXPECT_EQ(outcomes[0].words, "ended with code 0") << "run " << i;
  }
}

// The connections are a static object's, which closes them when most handlers have run.
TEST(Exit, ConnectionsMayBeClosedByAHandlerThatComesLater) {
  static Player* player = nullptr;
  static Player::Pair ring;
  const auto outcomes = run_job(1, patience(), sealed_environment(), [&](Seat& seat) -> Status {
    atexit([] {
      player->close_send(ring.send);
      player->close_receive(ring.receive);
      delete player;
      _exit(0);
    });
    auto* const plugin = new Result(PluginTable::load(SEALANE_NCCL_PLUGIN, 12));
    if (!*plugin) return plugin->error();
    auto made = Player::start(***plugin, seat);
    if (!made) return made.error();
    player = made->release();
    auto connected = player->connect_ring(0, 0);
    if (!connected) return connected.error();
    ring = *connected;
    std::exit(1);
  });
  EXPECT_EQ(outcomes[0].words, "ended with code 0");
}

}  // namespace
}  // namespace sealane::nccl
