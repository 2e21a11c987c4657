// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "nccl/conformance.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "base/check.h"
#include "base/text.h"
#include "base/try.h"
#include "nccl/communicator_checks.h"
#include "nccl/player.h"

namespace sealane::nccl {
namespace {

// How long a check may take before it hangs.
Duration job_patience(const Subject& subject) {
  return std::chrono::seconds(150) + subject.messages * std::chrono::milliseconds(20);
}

// The body of a rank: which plugin, which seat.
using Body = Status (*)(const Subject&, const PluginTable&, Seat&);

// One connection from rank 0 to rank 1, and what each does with it.
template <typename Sender, typename Receiver>
Status one_way(const PluginTable& plugin, Seat& seat, Sender sender, Receiver receiver) {
  SEALANE_LET(auto player, Player::start(plugin, seat));
  if (seat.rank() == 0) {
    SEALANE_LET(auto comm, player->connect_to(1));
    Status status = sender(*player, comm);
    player->close_send(comm);
    return status;
  }
  SEALANE_LET(auto comm, player->accept_from(0));
  Status status = receiver(*player, comm);
  player->close_receive(comm);
  return status;
}

Status stream(const PluginTable& plugin, Seat& seat, const Traffic& traffic) {
  return one_way(
      plugin, seat,
      [&](Player& player, void* comm) -> Status {
        SEALANE_TRY(send_traffic(player, comm, traffic));
        return seat.await(1, 0, patience());  // NCCL closes when both are done
      },
      [&](Player& player, void* comm) -> Status {
        const Status status = receive_traffic(player, comm, traffic);
        seat.reach(0);
        return status;
      });
}

Status check_table(const Subject&, const PluginTable& plugin, Seat& seat) {
  if (const auto missing = plugin.missing()) {
    return usage_error(concat("the table of version ", plugin.version(), " has no ", *missing));
  }
  // A plugin is asked while somebody plays.
  SEALANE_LET([[maybe_unused]] const auto player, Player::start(plugin, seat));
  int devices = 0;
  plugin.devices(&devices);
  for (int device = 0; device < devices; ++device) {
    DeviceProperties properties;
    if (const Code code = plugin.properties(device, &properties); code != kSuccess) {
      return failed("getProperties", code);
    }
    if (properties.name.empty()) return usage_error("a device without a name");
    if ((properties.pointer_support & kPointerHost) == 0) {
      return usage_error("a device that does not take host memory");
    }
    if (properties.receives_max < 1) return usage_error("a device that receives nothing");
  }
  if (DeviceProperties none; plugin.properties(devices, &none) == kSuccess) {
    return usage_error("a device that does not exist has properties");
  }
  return {};
}

Status check_order(const Subject& subject, const PluginTable& plugin, Seat& seat) {
  return stream(plugin, seat, {subject.messages, {64, 4096, 40'000, 8, 300, 70'000}, kRequestsMax});
}

Status check_sizes(const Subject&, const PluginTable& plugin, Seat& seat) {
  const std::vector<size_t> sizes = {0,       1,       7,       511,       4096, 65'536,
                                     131'072, 131'073, 524'288, 1'048'576, 0,    3'000'001};
  return stream(plugin, seat, {sizes.size() * 2, sizes, 4});
}

Status check_shorter(const Subject&, const PluginTable& plugin, Seat& seat) {
  return stream(plugin, seat, {100, {0, 100, 5000, 200'000}, 8, 1 << 20});
}

// Requests are given back: more messages than any plugin has requests.
Status check_requests(const Subject& subject, const PluginTable& plugin, Seat& seat) {
  return stream(plugin, seat, {std::max<uint64_t>(subject.messages, 500), {16}, kRequestsMax});
}

// The sender fills its window while nothing is received. Only then does the receiver begin: a
// plugin that waits inside a call never gets there.
Status check_waiting(const Subject&, const PluginTable& plugin, Seat& seat) {
  constexpr size_t kBytes = 1 << 20;
  constexpr int kMessages = 16;
  std::vector<uint8_t> memory(kBytes);
  return one_way(
      plugin, seat,
      [&](Player& player, void* comm) -> Status {
        std::vector<void*> requests;
        fill_pattern(memory, 7);
        for (int i = 0; i < kMessages; ++i) {
          SEALANE_LET(auto request, player.send(comm, memory.data(), kBytes));
          requests.push_back(request);
          for (void* one : requests) {
            int done = 0;
            if (one == nullptr) continue;
            if (const Code code = plugin.test(one, &done, nullptr); code != kSuccess) {
              return failed("test", code);
            }
            if (done != 0) *std::find(requests.begin(), requests.end(), one) = nullptr;
          }
        }
        seat.reach(0);
        for (void* one : requests) {
          if (one == nullptr) continue;
          SEALANE_TRY(player.wait(one));
        }
        return seat.await(1, 1, patience());
      },
      [&](Player& player, void* comm) -> Status {
        const Status status = seat.await(0, 0, patience());
        if (!status) return crypto_error("isend or test waits for the receiver");
        for (int i = 0; i < kMessages; ++i) {
          SEALANE_LET(auto request, player.receive(comm, memory.data(), kBytes));
          SEALANE_TRY(player.wait(request));
          SEALANE_TRY(check_pattern(memory, 7));
        }
        seat.reach(1);
        return {};
      });
}

// LL: eight bytes, half data, half flag. LL128: lines of 128 bytes, the flag in the last eight. A
// GPU takes what a flag vouches for while the rest is still coming; here a thread does.
struct Line {
  uint64_t words[16];
};

Status check_flags(const Subject&, const PluginTable& plugin, Seat& seat) {
  constexpr size_t kLines = 4096;
  constexpr uint64_t kRounds = 30;
  static Line lines[kLines];
  return one_way(
      plugin, seat,
      [&](Player& player, void* comm) -> Status {
        for (uint64_t round = 1; round <= kRounds; ++round) {
          for (size_t i = 0; i < kLines; ++i) {
            for (size_t w = 0; w < 15; ++w) lines[i].words[w] = round << 32 | (i * 16 + w);
            lines[i].words[15] = round;
          }
          SEALANE_LET(auto request, player.send(comm, lines, sizeof lines));
          SEALANE_TRY(player.wait(request));
          SEALANE_TRY(seat.await(1, static_cast<int>(round % 30), patience()));
        }
        return {};
      },
      [&](Player& player, void* comm) -> Status {
        for (uint64_t round = 1; round <= kRounds; ++round) {
          std::atomic<bool> torn{false};
          std::atomic<bool> stop{false};
          std::thread device([&] {
            for (size_t i = 0; i < kLines; ++i) {
              while (__atomic_load_n(&lines[i].words[15], __ATOMIC_ACQUIRE) != round) {
                if (stop) return;
                sched_yield();
              }
              for (size_t w = 0; w < 15; ++w) {
                const uint64_t word = __atomic_load_n(&lines[i].words[w], __ATOMIC_RELAXED);
                if (word != (round << 32 | (i * 16 + w))) torn = true;
              }
            }
          });
          Status status;
          auto request = player.receive(comm, lines, sizeof lines);
          if (!request) status = request.error();
          if (status) {
            if (auto size = player.wait(*request); !size) status = size.error();
          }
          stop = !status.ok();
          device.join();
          if (!status) return status;
          if (torn) return crypto_error("a flag was there before the data it vouches for");
          seat.reach(static_cast<int>(round % 30));
        }
        return {};
      });
}

// After a close nobody touches the memory of requests that were under way.
Status check_close(const Subject&, const PluginTable& plugin, Seat& seat) {
  constexpr size_t kBytes = 8 << 20;
  auto* const memory = static_cast<uint8_t*>(
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  SEALANE_CHECK(memory != MAP_FAILED, "out of memory");
  const auto forbid = [&] { mprotect(memory, kBytes, PROT_NONE); };
  SEALANE_LET(auto player, Player::start(plugin, seat));
  if (seat.rank() == 0) {
    SEALANE_LET(auto comm, player->connect_to(1));
    for (int i = 0; i < 4; ++i) {
      SEALANE_TRY(player->send(comm, memory, kBytes));
    }
    seat.reach(2);
    SEALANE_TRY(seat.await(1, 0, patience()));
    player->close_send(comm);
  } else {
    SEALANE_LET(auto comm, player->accept_from(0));
    for (int i = 0; i < 4; ++i) {
      SEALANE_TRY(player->receive(comm, memory, kBytes));
    }
    seat.reach(0);
    SEALANE_TRY(seat.await(0, 2, patience()));
    player->close_receive(comm);
  }
  forbid();
  seat.reach(1);
  return seat.await(1 - seat.rank(), 1, patience());
}

// Ranks 1 to 5 are killed, each at another point, and rank 0 hears of each by itself. Which of them
// send and which receive: rank 4 receives, rank 5 only listens.
enum Phase : int { kReceiving = 1, kIdle, kClosing, kSending, kListening };
constexpr double kNoticedWithin_s = 30;  // generous: events take milliseconds, time-outs a minute
constexpr std::string_view kTooSoon = "an error before that rank was gone";
constexpr std::string_view kPhaseNames[] = {"",        "receiving", "idle",
                                            "closing", "sending",   "listening"};

double seconds_now() {
  return std::chrono::duration<double>(SteadyClock().now().time_since_epoch()).count();
}

Status die_when_told(Player& player, Seat& seat) {
  const int phase = seat.rank();
  void* comm = nullptr;
  if (phase == kListening) {
    SEALANE_TRY(player.listen_for(0));
  } else {
    SEALANE_LET(comm, phase == kSending ? player.accept_from(0) : player.connect_to(0));
  }
  SEALANE_TRY(seat.await(0, phase, patience()));
  seat.put_number(0, seconds_now());
  if (phase == kClosing) player.close_send(comm);
  kill(getpid(), SIGKILL);
  return internal_error("alive after SIGKILL");
}

// Posts requests until one says that the other side is gone.
Status until_told(Player& player, void* comm, bool sends, std::vector<uint8_t>& memory) {
  for (int i = 0; i < 10'000; ++i) {
    auto request = sends ? player.send(comm, memory.data(), memory.size())
                         : player.receive(comm, memory.data(), memory.size());
    if (!request) return {};
    const auto size = player.wait(*request);
    if (size && !sends) return crypto_error("a message nobody sent has arrived");
    if (size) continue;
    if (size.error().message.find("never done") == std::string::npos) return {};
    return crypto_error("the death of the other rank goes unnoticed");
  }
  return crypto_error("a dead rank takes messages");
}

Status outlive(Player& player, Seat& seat, int phase, void* comm) {
  std::vector<uint8_t> memory(1 << 20);
  if (phase == kReceiving) {  // the request is there before the death
    SEALANE_TRY(player.receive(comm, memory.data(), memory.size()));
  }
  // The ranks before it are gone, this one is there.
  if (phase == kSending && !player.send(comm, memory.data(), memory.size())) {
    return crypto_error(std::string(kTooSoon));
  }
  const pid_t victim = seat.process_of(phase);
  seat.reach(phase);
  if (phase == kIdle || phase == kListening) {  // nothing is asked of the plugin before it is over
    const Instant end = SteadyClock().now() + patience();
    while (kill(victim, 0) == 0 && SteadyClock().now() < end) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
  if (phase == kListening) {
    if (player.connect_to(phase)) return crypto_error("connected to a dead rank");
  } else if (Status status = until_told(player, comm, phase == kSending, memory); !status) {
    return status;
  }
  const double died = seat.number_of(phase, 0);
  if (died == 0) return crypto_error(std::string(kTooSoon));
  const double took = seconds_now() - died;
  seat.put_number(phase, took);
  if (took <= kNoticedWithin_s) return {};
  return crypto_error(concat("noticed only after ", static_cast<int>(took), " s"));
}

Status check_death(const Subject&, const PluginTable& plugin, Seat& seat) {
  SEALANE_LET(auto player, Player::start(plugin, seat));
  if (seat.rank() != 0) return die_when_told(*player, seat);
  std::array<void*, 6> comms{};
  for (const int phase : {kReceiving, kIdle, kClosing, kSending}) {
    SEALANE_LET(auto comm,
                phase == kSending ? player->connect_to(phase) : player->accept_from(phase));
    comms[static_cast<size_t>(phase)] = comm;
  }
  for (const int phase : {kReceiving, kIdle, kClosing, kSending, kListening}) {
    const Status status = outlive(*player, seat, phase, comms[static_cast<size_t>(phase)]);
    if (!status) {
      return crypto_error(concat(kPhaseNames[phase], ": ", status.error().message));
    }
  }
  return {};
}

std::string death_figures(const Outcome& survivor) {
  std::string text = "noticed after";
  for (const int phase : {kReceiving, kIdle, kClosing, kSending, kListening}) {
    const auto us = static_cast<int64_t>(survivor.numbers[static_cast<size_t>(phase)] * 1e6);
    text += concat(phase == kReceiving ? " " : ", ", us / 1000, ".", us / 100 % 10, " ms (",
                   kPhaseNames[phase], ")");
  }
  return text;
}

// A child that forks off and ends does no harm (DataLoader workers do that).
Status check_fork(const Subject&, const PluginTable& plugin, Seat& seat) {
  const Traffic traffic{50, {20'000}, 8};
  const auto forked = [] {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    int status = 0;
    waitpid(child, &status, 0);
  };
  return one_way(
      plugin, seat,
      [&](Player& player, void* comm) -> Status {
        forked();
        SEALANE_TRY(send_traffic(player, comm, traffic));
        return seat.await(1, 0, patience());
      },
      [&](Player& player, void* comm) -> Status {
        forked();
        const Status status = receive_traffic(player, comm, traffic);
        seat.reach(0);
        return status;
      });
}

struct Entry {
  Check check;
  Body body;
  int ranks = 2;
};

constexpr Entry kChecks[] = {
    {{"table", "every function is there, devices have properties"}, check_table, 1},
    {{"order", "messages come in order, whole, 32 of them under way"}, check_order},
    {{"sizes", "any size from nothing to megabytes, any alignment"}, check_sizes},
    {{"shorter", "a message may be shorter than its receive, test says so"}, check_shorter},
    {{"requests", "requests are given back when test says done"}, check_requests},
    {{"waiting", "isend and test return though nobody receives yet"}, check_waiting},
    {{"flags", "data is there before the flag behind it (LL, LL128)"}, check_flags},
    {{"close", "after a close the memory of requests is not touched"}, check_close},
    {{"communicators", "two communicators share nothing but the process"}, check_communicators},
    {{"split", "communicators that share a context end one by one"}, check_split},
    {{"threads", "connections come and go while another thread sends"}, check_threads},
    {{"abort", "what was begun and given up stands in nobody's way"}, check_abort},
    {{"listener", "one listener accepts several connections"}, check_listener},
    {{"death", "a peer killed at any point: an error, and no hang"}, check_death, 6},
    {{"fork", "a child of fork() that ends does no harm"}, check_fork},
};

}  // namespace

std::vector<Check> all_checks() {
  std::vector<Check> checks;
  for (const Entry& entry : kChecks) checks.push_back(entry.check);
  return checks;
}

Finding run_check(const Subject& subject, std::string_view name) {
  const Entry* entry = nullptr;
  for (const Entry& one : kChecks) {
    if (one.check.name == name) entry = &one;
  }
  SEALANE_CHECK(entry != nullptr, "a check that does not exist");
  const auto outcomes =
      run_job(entry->ranks, job_patience(subject), subject.environment, [&](Seat& seat) -> Status {
        SEALANE_LET(auto plugin, PluginTable::load(subject.path, subject.version));
        return entry->body(subject, *plugin, seat);
      });
  Finding finding{entry->check, true, "", ""};
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (outcomes[rank].passed) continue;
    if (entry->body == check_death && rank != 0 && outcomes[rank].words == "killed") continue;
    finding.passed = false;
    if (!finding.words.empty()) finding.words += "; ";
    finding.words += concat("rank ", rank, ": ", outcomes[rank].words);
    if (!outcomes[rank].plugin_line.empty())
      finding.words += " (" + outcomes[rank].plugin_line + ")";
  }
  if (entry->body == check_death && finding.passed) finding.figures = death_figures(outcomes[0]);
  return finding;
}

}  // namespace sealane::nccl
