// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does every schedule, carried out by every rank over bounded wires in any order, deliver each
// contribution exactly once, the same bits to all, and never come to a standstill?

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "core/collective/choose.h"
#include "core/collective/execution.h"
#include "core/collective/schedule.h"

namespace sealane {
namespace {

constexpr uint32_t kRecordBytes = 64;
constexpr uint64_t kWordBytes = 8;

struct Record {
  std::vector<uint64_t> words;
  uint32_t origin;
  uint32_t block;
  uint64_t number;
  Phase phase;
  bool broadcast;
};

using Combine = uint64_t (*)(uint64_t first, uint64_t second);
uint64_t add(uint64_t first, uint64_t second) { return first + second; }
// Neither commutative nor associative: any difference in order shows.
uint64_t stir(uint64_t first, uint64_t second) { return first * 0x9e3779b97f4a7c15 + second + 1; }

struct Rank {
  Schedule schedule;
  std::unique_ptr<Execution> execution;
  std::vector<uint64_t> in, out, stash;
};

class World {
 public:
  World(const Request& request, uint32_t capacity, uint64_t seed, Combine combine)
      : size_(request.size), capacity_(capacity), random_(seed), combine_(combine), ranks_(size_) {
    for (uint32_t r = 0; r < size_; ++r) {
      Request mine = request;
      mine.rank = r;
      if (request.collective == Collective::send && r != 0) mine.collective = Collective::receive;
      if (request.collective == Collective::send) mine.root = 1 - r;
      Rank& rank = ranks_[r];
      rank.schedule = make_schedule(mine);
      rank.execution = std::make_unique<Execution>(rank.schedule, kRecordBytes);
      const uint64_t words = request.bytes / kWordBytes;
      const bool many_in = request.collective == Collective::reduce_scatter;
      const bool many_out = request.collective == Collective::all_gather;
      rank.in.resize(words * (many_in ? size_ : 1));
      rank.out.resize(words * (many_out ? size_ : 1));
      for (uint64_t i = 0; i < rank.in.size(); ++i) rank.in[i] = contribution(r, i);
    }
  }

  static uint64_t contribution(uint32_t rank, uint64_t index) {
    uint64_t mixed = (rank * 1000003ull + index + 1) * 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9;
    return mixed ^ mixed >> 32;
  }

  // False if nothing can move before all are done.
  bool run() {
    std::vector<uint32_t> order(size_);
    for (uint32_t r = 0; r < size_; ++r) order[r] = r;
    while (true) {
      bool moved = false;
      bool done = true;
      for (size_t i = size_; i > 1; --i) std::swap(order[i - 1], order[random_.below(i)]);
      for (const uint32_t r : order) {
        uint64_t turns = 1 + random_.below(4);
        while (turns-- > 0 && step(r)) moved = true;
        done = done && ranks_[r].execution->done();
      }
      if (done) return queues_empty();
      if (!moved) return false;
    }
  }

  std::vector<Rank>& ranks() { return ranks_; }

 private:
  using Wire = std::pair<std::pair<uint32_t, uint32_t>, bool>;  // from, to, broadcast

  struct Wires {
    World& world;
    uint32_t rank;
    bool readable(const Step& step) {
      return !world.wires_[{{step.from, rank}, step.from_broadcast}].empty();
    }
    bool writable(const Step& step) {
      if (step.to != kEveryone) return world.room({{rank, step.to}, false});
      for (uint32_t to = 0; to < world.size_; ++to) {
        if (to != rank && !world.room({{rank, to}, true})) return false;
      }
      return true;
    }
  };

  bool room(const Wire& wire) { return wires_[wire].size() < capacity_; }
  bool queues_empty() const {
    for (const auto& [wire, queue] : wires_) {
      if (!queue.empty()) return false;
    }
    return true;
  }

  bool step(uint32_t r) {
    Wires wires{*this, r};
    const auto task = ranks_[r].execution->poll(wires);
    if (!task) return false;
    perform(r, *task);
    ranks_[r].execution->handle_done(*task);
    return true;
  }

  void push(uint32_t r, const Step& step, const Record& record) {
    if (step.to != kEveryone) return wires_[{{r, step.to}, false}].push_back(record);
    for (uint32_t to = 0; to < size_; ++to) {
      if (to != r) wires_[{{r, to}, true}].push_back(record);
    }
  }

  void perform(uint32_t r, const Task& task) {
    Rank& rank = ranks_[r];
    const Step& step = rank.schedule.steps[task.step];
    const Block& block = rank.schedule.blocks[step.block];
    const uint64_t in = (block.in_offset + task.offset) / kWordBytes;
    const uint64_t out = (block.out_offset + task.offset) / kWordBytes;
    const uint64_t count = task.bytes / kWordBytes;
    Record record{{}, r, step.block, task.record, step.phase, step.kind == StepKind::publish};
    if (step.from != kNobody) {
      auto& queue = wires_[{{step.from, r}, step.from_broadcast}];
      record = queue.front();
      queue.pop_front();
      ASSERT_EQ(record.words.size(), count);
      ASSERT_EQ(record.block, step.block);
      ASSERT_EQ(record.number, task.record);
      ASSERT_EQ(record.phase, step.phase);
      ASSERT_EQ(record.origin, step.origin);
      ASSERT_EQ(record.broadcast, step.broadcast_lane);
    }
    const auto fold = [&](uint64_t own, uint64_t other) {
      return step.record_first ? combine_(other, own) : combine_(own, other);
    };
    switch (step.kind) {
      case StepKind::copy:
        std::copy_n(rank.in.begin() + in, count, rank.out.begin() + out);
        break;
      case StepKind::stash:
        rank.stash.assign(rank.in.begin() + in, rank.in.begin() + in + count);
        break;
      case StepKind::send:
        record.words.assign(rank.in.begin() + in, rank.in.begin() + in + count);
        push(r, step, record);
        break;
      case StepKind::publish: {
        const auto from =
            step.operand == Operand::in ? rank.in.begin() + in : rank.out.begin() + out;
        record.words.assign(from, from + count);
        push(r, step, record);
        break;
      }
      case StepKind::fold:
        for (uint64_t i = 0; i < count; ++i) {
          const uint64_t own = step.operand == Operand::in ? rank.in[in + i] : rank.out[out + i];
          rank.out[out + i] = fold(own, record.words[i]);
        }
        break;
      case StepKind::fold_stash:
        for (uint64_t i = 0; i < count; ++i) {
          rank.out[out + i] = combine_(rank.out[out + i], rank.stash[i]);
        }
        break;
      case StepKind::relay:
        for (uint64_t i = 0; i < count; ++i)
          record.words[i] = fold(rank.in[in + i], record.words[i]);
        record.origin = r;
        push(r, step, record);
        break;
      case StepKind::forward:
        push(r, step, record);
        [[fallthrough]];
      case StepKind::receive:
        std::copy(record.words.begin(), record.words.end(), rank.out.begin() + out);
        break;
    }
  }

  uint32_t size_;
  uint32_t capacity_;
  SeededRandom random_;
  Combine combine_;
  std::vector<Rank> ranks_;
  std::map<Wire, std::deque<Record>> wires_;
};

Request request_of(Collective collective, Algorithm algorithm, uint32_t size, uint64_t bytes,
                   uint32_t capacity) {
  Request request;
  request.collective = collective;
  request.algorithm = algorithm;
  request.size = size;
  request.bytes = bytes;
  request.record_bytes = kRecordBytes;
  request.channel_records = capacity;
  return request;
}

uint64_t sum_of(uint32_t size, uint64_t index) {
  uint64_t sum = 0;
  for (uint32_t r = 0; r < size; ++r) sum += World::contribution(r, index);
  return sum;
}

TEST(Collective, AllReduceDeliversEveryContributionOnceToAll) {
  for (const Algorithm algorithm :
       {Algorithm::exchange, Algorithm::direct, Algorithm::ring, Algorithm::hub}) {
    for (uint32_t size = 2; size <= 9; ++size) {
      for (const uint64_t words : {0, 1, 7, 8, 9, 200, 1000}) {
        for (const uint32_t capacity : {2, 3, 8}) {
          const Request request =
              request_of(Collective::all_reduce, algorithm, size, words * kWordBytes, capacity);
          if (!possible(request)) continue;
          SCOPED_TRACE(concat(to_string(algorithm), " ranks ", size, " words ", words, " capacity ",
                              capacity));
          World world(request, capacity, size * 31 + words, add);
          ASSERT_TRUE(world.run());
          for (const Rank& rank : world.ranks()) {
            for (uint64_t i = 0; i < words; ++i) ASSERT_EQ(rank.out[i], sum_of(size, i));
          }
        }
      }
    }
  }
}

TEST(Collective, AllRanksGetTheSameBitsWhateverTheTiming) {
  for (const Algorithm algorithm :
       {Algorithm::exchange, Algorithm::direct, Algorithm::ring, Algorithm::hub}) {
    for (const uint32_t size : {2, 3, 4, 7}) {
      std::vector<uint64_t> first;
      for (uint64_t seed = 0; seed < 20; ++seed) {
        const uint64_t words = algorithm == Algorithm::exchange && size > 2 ? 8 : 300;
        World world(request_of(Collective::all_reduce, algorithm, size, words * kWordBytes, 2), 2,
                    seed, stir);
        ASSERT_TRUE(world.run());
        if (first.empty()) first = world.ranks()[0].out;
        for (const Rank& rank : world.ranks()) ASSERT_EQ(rank.out, first);
      }
    }
  }
}

TEST(Collective, TheOtherCollectivesDeliver) {
  for (const Algorithm algorithm : {Algorithm::direct, Algorithm::ring}) {
    for (uint32_t size = 2; size <= 6; ++size) {
      for (const uint64_t words : {1, 8, 9, 100}) {
        SCOPED_TRACE(concat(to_string(algorithm), " ranks ", size, " words ", words));
        const auto request = [&](Collective collective) {
          Request made = request_of(collective, algorithm, size, words * kWordBytes, 3);
          made.root = size - 1;
          return made;
        };
        World gather(request(Collective::all_gather), 3, 1, add);
        ASSERT_TRUE(gather.run());
        World scatter(request(Collective::reduce_scatter), 3, 2, add);
        ASSERT_TRUE(scatter.run());
        World broadcast(request(Collective::broadcast), 3, 3, add);
        ASSERT_TRUE(broadcast.run());
        World reduce(request(Collective::reduce), 3, 4, add);
        ASSERT_TRUE(reduce.run());
        World barrier(request(Collective::barrier), 3, 5, add);
        ASSERT_TRUE(barrier.run());
        for (uint32_t r = 0; r < size; ++r) {
          for (uint64_t i = 0; i < words; ++i) {
            for (uint32_t from = 0; from < size; ++from) {
              ASSERT_EQ(gather.ranks()[r].out[from * words + i], World::contribution(from, i));
            }
            ASSERT_EQ(scatter.ranks()[r].out[i], sum_of(size, r * words + i));
            ASSERT_EQ(broadcast.ranks()[r].out[i], World::contribution(size - 1, i));
          }
        }
        for (uint64_t i = 0; i < words; ++i) {
          ASSERT_EQ(reduce.ranks()[size - 1].out[i], sum_of(size, i));
        }
      }
    }
  }
}

TEST(Collective, SendMeetsReceive) {
  World world(request_of(Collective::send, Algorithm::direct, 2, 800, 2), 2, 1, add);
  ASSERT_TRUE(world.run());
  EXPECT_EQ(world.ranks()[1].out, world.ranks()[0].in);
}

struct ReadyWires {
  bool readable(const Step&) { return true; }
  bool writable(const Step&) { return true; }
};

TEST(Collective, EveryRecordHasItsOwnNumberAndItIsTheSameOnAllRanks) {
  for (const Algorithm algorithm : {Algorithm::direct, Algorithm::ring}) {
    std::map<uint32_t, std::pair<uint32_t, uint64_t>> owner;  // of a number: block and record
    for (uint32_t rank = 0; rank < 4; ++rank) {
      Request request;
      request.rank = rank;
      request.size = 4;
      request.bytes = uint64_t{600} << 20;
      request.record_bytes = 64 << 10;
      request.channel_records = 8;
      request.algorithm = algorithm;
      const Schedule schedule = make_schedule(request);
      Execution execution(schedule, request.record_bytes);
      ReadyWires wires;
      while (const auto task = execution.poll(wires)) {
        const std::pair record(schedule.steps[task->step].block, task->record);
        const auto found = owner.try_emplace(task->number, record).first;
        ASSERT_EQ(found->second, record) << "number " << task->number << " serves two records";
        execution.handle_done(*task);
      }
      ASSERT_TRUE(execution.done());
    }
  }
}

// Its own part, which it copies, is one long block; the segments that travel are short.
TEST(Collective, ALongPartThatGoesRoundARingHasNumbersForItsRecords) {
  Request request;
  request.collective = Collective::all_gather;
  request.algorithm = Algorithm::ring;
  request.size = 8;
  request.bytes = uint64_t{16} << 30;
  request.record_bytes = 64 << 10;
  request.channel_records = 16;
  const Schedule schedule = make_schedule(request);
  Execution execution(schedule, request.record_bytes);
  ReadyWires wires;
  EXPECT_TRUE(execution.poll(wires));
}

// The root of a broadcast waits for whoever makes no room, and names nobody else.
TEST(Collective, ARecordToEveryoneWaitsForTheLaggards) {
  struct FullWires {
    bool readable(const Step& step) { return step.phase == Phase::agreement; }
    bool writable(const Step&) { return false; }
    void add_laggards(std::vector<uint32_t>& peers) { peers.push_back(2); }
  } wires;
  Request request;
  request.collective = Collective::broadcast;
  request.size = 4;
  request.bytes = 1 << 20;
  request.record_bytes = 64 << 10;
  request.channel_records = 8;
  request.algorithm = Algorithm::direct;
  const Schedule schedule = make_schedule(request);
  Execution execution(schedule, request.record_bytes);
  ReadyWires ready;
  while (const auto task = execution.poll(ready)) {
    if (schedule.steps[task->step].to == kEveryone) break;
    execution.handle_done(*task);
  }
  EXPECT_EQ(execution.waiting_for(wires), std::vector<uint32_t>{2});
}

TEST(Collective, AThousandRanks) {
  for (const uint32_t size : {64u, 1024u}) {
    World world(request_of(Collective::all_reduce, Algorithm::ring, size, size * 64, 4), 4, 9, add);
    ASSERT_TRUE(world.run());
    for (uint64_t i = 0; i < size * 8; i += 97) {
      const uint64_t sum = sum_of(size, i);
      for (uint32_t r = 0; r < size; r += 31) ASSERT_EQ(world.ranks()[r].out[i], sum);
    }
  }
  World direct(request_of(Collective::all_reduce, Algorithm::direct, 128, 128 * 64, 2), 2, 9, add);
  ASSERT_TRUE(direct.run());
  EXPECT_EQ(direct.ranks()[77].out[5], sum_of(128, 5));
}

TEST(Choose, FollowsSizeRanksAndWires) {
  Request request = request_of(Collective::all_reduce, Algorithm::automatic, 2, 100 << 20, 8);
  request.record_bytes = 64 << 10;
  // Two ranks that share memory: folding the other's record costs what copying it would.
  EXPECT_EQ(choose(request, {.shared_memory = true}), Algorithm::exchange);
  EXPECT_EQ(choose(request, {.shared_memory = false}), Algorithm::direct);
  request.size = 4;
  EXPECT_EQ(choose(request, {.shared_memory = true}), Algorithm::direct);
  request.bytes = 1024;
  EXPECT_EQ(choose(request, {.shared_memory = true}), Algorithm::exchange);
  request.size = 64;
  request.bytes = 1 << 30;
  EXPECT_EQ(choose(request, {.shared_memory = false}), Algorithm::ring);
  request.algorithm = Algorithm::hub;
  EXPECT_EQ(choose(request, {.shared_memory = false}), Algorithm::hub);
}

}  // namespace
}  // namespace sealane
