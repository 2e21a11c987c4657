// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Does our plugin do for every version of the interface what NCCL relies on, and do the checks
// notice a plugin that does not?

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/text.h"
#include "nccl/conformance.h"
#include "nccl/faulty_calls.h"
#include "nccl/player.h"
#include "nccl/ranks.h"

namespace sealane::nccl {
namespace {

namespace fs = std::filesystem;

Subject ours(int version, uint64_t messages = 300) {
  return {SEALANE_NCCL_PLUGIN, version, sealed_environment(), messages};
}

class OurPlugin : public ::testing::TestWithParam<int> {};

TEST_P(OurPlugin, DoesWhatNcclReliesOn) {
  for (const Check& check : all_checks()) {
    const Finding finding = run_check(ours(GetParam()), check.name);
    EXPECT_TRUE(finding.passed) << check.name << ": " << finding.words;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryVersion, OurPlugin,
                         ::testing::Range(PluginTable::kOldest, PluginTable::kNewest + 1));

// For a run under a sanitizer: SEALANE_TEST_MESSAGES=100000.
TEST(ManyMessages, ComeInOrderAndWhole) {
  const char* const text = getenv("SEALANE_TEST_MESSAGES");
  const uint64_t messages = text == nullptr ? 2000 : std::strtoull(text, nullptr, 10);
  ASSERT_GT(messages, 0U) << "SEALANE_TEST_MESSAGES should be a number";
  for (const char* check : {"order", "requests", "communicators"}) {
    const Finding finding = run_check(ours(PluginTable::kNewest, messages), check);
    EXPECT_TRUE(finding.passed) << check << ": " << finding.words;
  }
}

// Right plugins that are not ours: the checks find nothing where there is nothing.
TEST(PollingPlugin, PassesTheSameChecks) {
  for (const char* name : {"ordered", "tls"}) {
    const std::string path = concat(SEALANE_POLLING_DIR "/libnccl-net-polling-", name, ".so");
    for (const Check& check : all_checks()) {
      if (check.name == "close" || check.name == "listener") continue;  // never promised
      const Finding finding = run_check({path, 8, {}, 200}, check.name);
      EXPECT_TRUE(finding.passed) << name << ": " << check.name << ": " << finding.words;
    }
  }
}

struct Faulty {
  const char* fault;
  const char* check;  // that must notice
  const char* words;
};

class FaultyPlugin : public ::testing::TestWithParam<Faulty> {};

TEST_P(FaultyPlugin, IsNoticed) {
  const std::string path =
      concat(SEALANE_POLLING_DIR "/libnccl-net-polling-", GetParam().fault, ".so");
  // What is noticed by the end of the patience takes that long, and on a busy machine so does the
  // rest.
  const Duration usual = patience();
  Finding finding;
  for (const int seconds : {5, 20, 80}) {
    set_patience(std::chrono::seconds(seconds));
    finding = run_check({path, 8, {}, 200}, GetParam().check);
    if (finding.words.find(GetParam().words) != std::string::npos) break;
  }
  set_patience(usual);
  EXPECT_FALSE(finding.passed);
  EXPECT_NE(finding.words.find(GetParam().words), std::string::npos) << finding.words;
}

INSTANTIATE_TEST_SUITE_P(OneFaultEach, FaultyPlugin,
                         ::testing::Values(Faulty{"Reorder", "requests", "is not what was sent"},
                                           Faulty{"Early", "order", "is not what was sent"},
                                           Faulty{"Block", "waiting", "waits for the receiver"},
                                           Faulty{"Leak", "requests", "gives nothing"},
                                           Faulty{"Deaf", "death", "goes unnoticed"},
                                           Faulty{"Blames", "death", "before that rank was gone"},
                                           Faulty{"Tears", "flags", "before the data"},
                                           Faulty{"Refuses", "order", "irecvConsumed returned"},
                                           Faulty{"Together", "split", "returned"}),
                         [](const auto& one) { return std::string(one.param.fault); });

// ---- What the plugin promises beyond the interface ----

// Rank 1 receives while a bit is flipped on the wire. Passes if it got an error and memory that
// holds nothing but what was there before or what was sent.
Status receive_tampered(Player& player, void* comm) {
  std::vector<uint8_t> memory(4 << 20, 0x5a);
  flip_a_bit_after(1 << 20);
  auto request = player.receive(comm, memory.data(), memory.size());
  if (!request) return request.error();
  const auto size = player.wait(*request);
  if (!bit_was_flipped()) return internal_error("no bit was flipped");
  if (size) return crypto_error("a message that was changed on the way was delivered as genuine");
  for (size_t i = 0; i < memory.size(); ++i) {
    if (memory[i] != 0x5a && memory[i] != pattern(3, i)) {
      return crypto_error("bytes were delivered before they were verified");
    }
  }
  return {};
}

std::vector<Outcome> tamper_with(const Loaded& loaded,
                                 const std::vector<std::string>& environment) {
  const auto body = [](Player& player) -> Status {
    if (player.seat().rank() == 1) {
      auto comm = player.accept_from(0);
      if (!comm) return comm.error();
      return receive_tampered(player, *comm);
    }
    auto comm = player.connect_to(1);
    if (!comm) return comm.error();
    std::vector<uint8_t> memory(4 << 20);
    fill_pattern(memory, 3);
    // The sender must hear of it, whether this message was out already or not.
    for (int i = 0; i < 1000; ++i) {
      auto request = player.send(*comm, memory.data(), memory.size());
      if (!request) return {};
      if (!player.wait(*request)) return {};
    }
    return crypto_error("the sender heard nothing");
  };
  return play(2, environment, body, loaded);
}

TEST(Tampering, EndsBothSidesAndDeliversNothing) {
  const auto outcomes = tamper_with({}, sealed_environment());
  for (const Outcome& outcome : outcomes) {
    EXPECT_TRUE(outcome.passed) << outcome.words;
    EXPECT_NE(outcome.plugin_line.find("rank "), std::string::npos) << outcome.plugin_line;
  }
}

TEST(Tampering, AnUnverifiedDeliveryIsNoticed) {
  const auto outcomes =
      tamper_with({SEALANE_POLLING_DIR "/libnccl-net-polling-Unverified.so", 8}, {});
  EXPECT_EQ(outcomes[1].words, "bytes were delivered before they were verified");
}

Status connect_only(Player& player) {
  Seat& seat = player.seat();
  auto ring = player.connect_ring(1 - seat.rank(), 1 - seat.rank());
  if (!ring) return ring.error();
  seat.reach(0);
  return seat.await(1 - seat.rank(), 0, patience());
}

TEST(Keys, AnotherKeyEndsBothSidesWithALineThatNamesThePeer) {
  auto environment = sealed_environment();
  environment.push_back("1:SEALANE_KEY_FILE=" + key_file('b'));
  for (const Outcome& outcome : play(2, environment, connect_only)) {
    EXPECT_TRUE(outcome.ended) << outcome.words;
    EXPECT_FALSE(outcome.passed);
    EXPECT_NE(outcome.plugin_line.find("rank "), std::string::npos) << outcome.plugin_line;
  }
}

TEST(Keys, WithoutOneThePluginRefusesAndSaysWhatToSet) {
  const auto outcomes = play(1, {"SEALANE_KEY_FILE=", "NCCL_SOCKET_IFNAME=lo"}, connect_only);
  EXPECT_FALSE(outcomes[0].passed);
  EXPECT_NE(outcomes[0].plugin_line.find("SEALANE_KEY_FILE"), std::string::npos)
      << outcomes[0].plugin_line;
}

TEST(Keys, TwoProcessesThatSayTheyAreTheSameRankAreRefused) {
  auto environment = sealed_environment();
  environment.push_back("1:RANK=0");
  for (const Outcome& outcome : play(2, environment, connect_only)) {
    EXPECT_TRUE(outcome.ended) << outcome.words;
    EXPECT_FALSE(outcome.passed);
  }
}

TEST(Keys, ProcessesWithoutRanksConnectByKeyAlone) {
  auto environment = sealed_environment();
  environment.insert(environment.end(), {"RANK=", "WORLD_SIZE="});
  for (const Outcome& outcome : play(2, environment, connect_only)) {
    EXPECT_TRUE(outcome.passed) << outcome.words << " " << outcome.plugin_line;
  }
}

TEST(Keys, AProcessConnectsToItself) {
  const auto outcomes = play(1, sealed_environment(), [](Player& player) -> Status {
    auto ring = player.connect_ring(0, 0);
    if (!ring) return ring.error();
    std::vector<uint8_t> out(300'000);
    std::vector<uint8_t> in(300'000);
    fill_pattern(out, 9);
    auto receiving = player.receive(ring->receive, in.data(), in.size());
    auto sending = player.send(ring->send, out.data(), out.size());
    if (!receiving || !sending) return internal_error("no request");
    if (auto size = player.wait(*sending); !size) return size.error();
    if (auto size = player.wait(*receiving); !size) return size.error();
    return check_pattern(in, 9);
  });
  EXPECT_TRUE(outcomes[0].passed) << outcomes[0].words;
}

using Change = void (*)(HandleBytes&);

// What a bootstrap nobody vouches for may carry: an error, no hang and no connection.
TEST(Handles, ThatAreNotOursAreRefused) {
  const Change changes[] = {
      [](HandleBytes& handle) { handle[0] ^= 0xff; },  // of another plugin
      [](HandleBytes& handle) { handle[8] ^= 0xff; },  // another version
      [](HandleBytes& handle) { handle[127] = 1; },    // grown
      [](HandleBytes& handle) { std::fill(handle.begin() + 40, handle.end(), 0); },  // cut
      [](HandleBytes& handle) { handle.fill(0); },  // nothing at all
      [](HandleBytes& handle) { handle.fill(0xff); },
  };
  const auto outcomes = play(1, sealed_environment(), [&](Player& player) -> Status {
    auto listener = player.listen_for(0);
    if (!listener) return listener.error();
    const HandleBytes handle = *player.seat().take_handle(0, 0, patience());
    for (const Change change : changes) {
      HandleBytes changed = handle;
      change(changed);
      player.seat().leave_handle(0, 1, changed);
      auto comm = player.connect_to(0, 1);
      if (comm) return internal_error("was taken");
      if (Status status = heard(comm.error()); !status) return status;
    }
    return {};
  });
  EXPECT_TRUE(outcomes[0].passed) << outcomes[0].words;
  EXPECT_FALSE(outcomes[0].plugin_line.empty());
}

TEST(Handles, AReplayedOneOfAListenerThatIsGoneIsAnErrorAndNoHang) {
  const auto outcomes = play(1, sealed_environment(), [](Player& player) -> Status {
    auto listener = player.listen_for(0);
    if (!listener) return listener.error();
    player.close_listen(*listener);
    // The worker closes the door soon; who comes before that may still be let in.
    const Instant end = SteadyClock().now() + patience();
    while (SteadyClock().now() < end) {
      auto comm = player.connect_to(0);
      if (!comm) return heard(comm.error());
      player.close_send(*comm);
    }
    return internal_error("connects for ever");
  });
  EXPECT_TRUE(outcomes[0].passed) << outcomes[0].words;
}

// A communicator that was aborted while it connected asks no more; its sockets are not kept until
// the last communicator of the process has ended.
TEST(Finalize, EndsWhatItsCommunicatorBeganWhileAnotherGoesOn) {
  const auto outcomes = run_job(1, patience(), sealed_environment(), [](Seat& seat) -> Status {
    const auto descriptors = [] {
      return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
    };
    auto plugin = PluginTable::load(SEALANE_NCCL_PLUGIN, 12);
    if (!plugin) return plugin.error();
    auto stays = Player::start(**plugin, seat, 1);
    if (!stays) return stays.error();
    auto goes = Player::start(**plugin, seat, 2);
    if (!goes) return goes.error();
    auto listener = (*stays)->listen_for(0);
    if (!listener) return listener.error();
    HandleBytes handle = *seat.take_handle(0, 0, patience());
    const auto before = descriptors();
    void* comm = nullptr;
    const Code code = (*plugin)->connect((*goes)->context(), 0, handle, &comm);
    if (code != kSuccess || comm != nullptr) return internal_error("nothing was begun");
    goes->reset();
    const Instant end = SteadyClock().now() + patience();
    while (descriptors() != before) {
      if (SteadyClock().now() > end) return internal_error("a socket is left");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    (*stays)->close_listen(*listener);
    return {};
  });
  EXPECT_TRUE(outcomes[0].passed) << outcomes[0].words;
}

// With a key for both, and with keys that differ, so that no connection comes about.
TEST(Finalize, LeavesNoThreadBehind) {
  const auto body = [](Seat& seat) -> Status {
    const auto threads = [] {
      return std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator());
    };
    std::thread([] {}).join();  // a sanitizer's own begins with the first
    const auto before = threads();
    auto plugin = PluginTable::load(SEALANE_NCCL_PLUGIN, 12);
    if (!plugin) return plugin.error();
    {
      auto player = Player::start(**plugin, seat);
      if (!player) return player.error();
      auto ring = (*player)->connect_ring(1 - seat.rank(), 1 - seat.rank());
      seat.put_number(0, ring ? 1 : 0);
      if (ring && threads() == before) return internal_error("no worker was started");
      // Who closes at once may close what the other has not accepted yet.
      seat.reach(0);
      if (Status status = seat.await(1 - seat.rank(), 0, patience()); !status) return status;
      if (ring) (*player)->close_send(ring->send);
      if (ring) (*player)->close_receive(ring->receive);
    }
    // A thread that was joined is listed until the kernel has put it away.
    const Instant end = SteadyClock().now() + patience();
    while (threads() != before) {
      if (SteadyClock().now() > end) return internal_error("a thread is left");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return {};
  };
  for (const bool same_key : {true, false}) {
    auto environment = sealed_environment();
    if (!same_key) environment.push_back("1:SEALANE_KEY_FILE=" + key_file('b'));
    for (const Outcome& outcome : run_job(2, patience(), environment, body)) {
      EXPECT_TRUE(outcome.passed) << outcome.words;
      EXPECT_EQ(outcome.numbers[0], same_key ? 1 : 0);
    }
  }
}

}  // namespace
}  // namespace sealane::nccl
