// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the time of an all-reduce between two ranks goes. Two threads on two cores do what the
// ranks of an exchange do, record by record, with nothing but the loops of `seal` and two cursors
// between them: seal the own record into a slot, open the other's beside the sum of the one before.
// Slots are written through the caches or past them, there are few of them or many; and each rank
// alone seals and opens as much from its own cache, which is what AES takes whatever is around it.
//   exchange_bench [ROUNDS]     on a quiet machine

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "seal/delivery.h"
#include "seal/engine.h"
#include "seal/stream_copy.h"

namespace sealane {
namespace {

constexpr size_t kRecordBytes = 64_KiB;
constexpr size_t kSlotBytes = kRecordBytes + 64;
constexpr uint64_t kStreamedBytesMin = 4_MiB;  // of a result, as comm/runner.cc has it

struct Way {
  const char* name;
  bool sealed;
  bool alone;     // no other rank, no sum
  bool streamed;  // slots
  uint32_t slots;
};
constexpr Way kWays[] = {
    {"AES alone", true, true, false, 1},
    {"sealed, 4 slots", true, false, false, 4},
    {"sealed, 8 slots", true, false, false, 8},
    {"sealed, 8 slots, streamed", true, false, true, 8},
    {"plain, 4 slots", false, false, false, 4},
    {"plain, 8 slots", false, false, false, 8},
    {"plain, 8 slots, streamed", false, false, true, 8},
};

struct Cursors {
  alignas(64) std::atomic<uint64_t> head;
  alignas(64) std::atomic<uint64_t> tail;
};

struct Wire {
  Cursors cursors{};
  std::vector<uint8_t> memory = std::vector<uint8_t>(9 * kSlotBytes);
  std::array<Tag, 8> tags{};
  MutableBytes slot(uint64_t number, uint32_t slots) {
    const size_t past_line = reinterpret_cast<uintptr_t>(memory.data()) % 64;
    return MutableBytes(memory).subspan(64 - past_line + number % slots * kSlotBytes, kRecordBytes);
  }
};

struct Account {
  double seal = 0, open = 0, wait = 0, last_sum = 0;
  double total() const { return seal + open + wait + last_sum; }
};

std::array<Wire, 2> wires;
std::array<std::atomic<int>, 2> arrived{};

class Rank {
 public:
  Rank(int self, size_t bytes, const Key& key)
      : self_(self), in_(bytes, 1), out_(bytes), aead_((*chosen_engine())->make(key)) {}

  Account run(const Way& way) {
    meet();
    Account account;
    lap_ = SteadyClock().now();
    const uint64_t records = in_.size() / kRecordBytes;
    Delivery pending;
    uint64_t sent = 0;
    for (uint64_t taken = 0; taken < records;) {
      Wire& from = wires[static_cast<size_t>(way.alone ? self_ : 1 - self_)];
      if (taken < sent && from.cursors.head.load() > taken) {
        take(way, from, taken++, pending);
        lap(account.open);
      } else if (sent < records && (sent == taken || !way.alone) &&
                 sent - own().cursors.tail.load() < way.slots) {
        send(way, sent++);
        lap(account.seal);
      } else {
        lap(account.wait);
      }
    }
    carry_out(pending);
    lap(account.last_sum);
    meet();  // nobody looks at the cursors now
    own().cursors.head.store(0);
    own().cursors.tail.store(0);
    return account;
  }

 private:
  Wire& own() { return wires[static_cast<size_t>(self_)]; }

  void meet() {
    arrived[static_cast<size_t>(self_)].store(++met_);
    while (arrived[static_cast<size_t>(1 - self_)].load() < met_) {
    }
  }
  void lap(double& sum) {
    const Instant now = SteadyClock().now();
    sum += static_cast<double>((now - lap_).count()) / 1000;
    lap_ = now;
  }
  static Iv iv(uint64_t number) {
    Iv iv{};
    store_le(iv.data(), number);
    return iv;
  }

  // Alone, one record is sealed and opened again and again: it stays in the cache.
  void send(const Way& way, uint64_t number) {
    const Bytes own_bytes = Bytes(in_).subspan(way.alone ? 0 : number * kRecordBytes, kRecordBytes);
    const MutableBytes slot = own().slot(number, way.slots);
    if (way.sealed) {
      Delivery source = in_place(own_bytes);
      source.sealed_streamed = way.streamed;
      aead_->seal(iv(number), {}, source, slot, own().tags[number % way.slots]);
    } else if (way.streamed) {
      stream_copy(slot, own_bytes);
    } else {
      std::copy(own_bytes.begin(), own_bytes.end(), slot.begin());
    }
    own().cursors.head.store(number + 1);
  }

  void take(const Way& way, Wire& from, uint64_t number, Delivery& pending) {
    const MutableBytes slot = from.slot(number, way.slots);
    const MutableBytes opened =
        MutableBytes(scratch_).subspan(number % 2 * kRecordBytes, kRecordBytes);
    const Bytes own_bytes = Bytes(in_).subspan(number * kRecordBytes, kRecordBytes);
    const MutableBytes to = MutableBytes(out_).subspan(number * kRecordBytes, kRecordBytes);
    Delivery sum = {own_bytes,           opened, ElementType::float32,
                    ReduceOperator::sum, to,     out_.size() >= kStreamedBytesMin};
    if (way.sealed) {
      if (!aead_->open(iv(number), {}, slot, from.tags[number % way.slots], opened, pending)) {
        std::abort();
      }
      pending = way.alone ? Delivery() : sum;
    } else {
      sum.second = slot;
      carry_out(sum);
    }
    from.cursors.tail.store(number + 1);
  }

  int self_;
  std::vector<uint8_t> in_;
  std::vector<uint8_t> out_;
  std::vector<uint8_t> scratch_ = std::vector<uint8_t>(2 * kRecordBytes);
  std::unique_ptr<Aead> aead_;
  Instant lap_{};
  int met_ = 0;
};

void stay_on(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

using Accounts = std::array<std::vector<Account>, std::size(kWays)>;

// All ways in every round: what the machine does to one it does to all.
Accounts measure(int self, size_t bytes, int rounds) {
  stay_on(self);
  SeededRandom random(1);
  Rank rank(self, bytes, Key::random(random));
  Accounts accounts;
  for (int round = 0; round < rounds; ++round) {
    for (size_t way = 0; way < std::size(kWays); ++way) {
      rank.run(kWays[way]);
      accounts[way].push_back(rank.run(kWays[way]));
    }
  }
  return accounts;
}

double median(const std::vector<Account>& accounts, double Account::*part) {
  std::vector<double> values;
  for (const Account& account : accounts) values.push_back(account.*part);
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void show(size_t bytes, int rounds) {
  Accounts accounts;
  for (std::atomic<int>& rank : arrived) rank.store(0);
  std::thread other([&] { measure(1, bytes, rounds); });
  accounts = measure(0, bytes, rounds);
  other.join();
  std::printf("\n%zu bytes, %d rounds, medians of one rank, us\n", bytes, rounds);
  std::printf("%-26s %9s %9s %9s %9s %9s\n", "", "all", "seal", "open+sum", "wait", "last sum");
  for (size_t way = 0; way < std::size(kWays); ++way) {
    const std::vector<Account>& all = accounts[way];
    std::vector<double> totals;
    for (const Account& account : all) totals.push_back(account.total());
    std::sort(totals.begin(), totals.end());
    std::printf("%-26s %9.1f %9.1f %9.1f %9.1f %9.1f\n", kWays[way].name, totals[totals.size() / 2],
                median(all, &Account::seal), median(all, &Account::open),
                median(all, &Account::wait), median(all, &Account::last_sum));
  }
}

}  // namespace
}  // namespace sealane

int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 400;
  if (std::thread::hardware_concurrency() < 2) return 77;
  std::printf("engine %s\n", std::string((*sealane::chosen_engine())->name()).c_str());
  using namespace sealane;
  show(1_MiB, rounds);
  show(25_MiB, std::max(rounds / 20, 1));
}
