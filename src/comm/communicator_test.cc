// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does every collective deliver the right result, on every transport, in every shape?

#include "comm/communicator.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <stdexcept>
#include <system_error>

#include "comm/group_fixture.h"

namespace sealane {
namespace {

// Small integers: exact in float32 whatever the order.
// Repeats itself, and is copied from there on: a remainder for each element takes longer than its
// way.
constexpr size_t kPeriod = 101;
void repeat(std::vector<float>& values) {
  for (size_t i = kPeriod; i < values.size(); i += kPeriod) {
    std::copy_n(values.begin(), std::min(kPeriod, values.size() - i),
                values.begin() + static_cast<ptrdiff_t>(i));
  }
}

std::vector<float> contribution(uint32_t rank, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < std::min(count, kPeriod); ++i) {
    values[i] = static_cast<float>((i * 7 + rank * 13) % kPeriod);
  }
  repeat(values);
  return values;
}

std::vector<float> expected_sum(uint32_t size, size_t count) {
  std::vector<float> sum(count);
  for (uint32_t rank = 0; rank < size; ++rank) {
    const auto values = contribution(rank, std::min(count, kPeriod));
    for (size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
  }
  repeat(sum);
  return sum;
}

struct Case {
  TransportKind transport;
  CommMode mode;
  Algorithm algorithm;
  uint32_t size;
};

class AllReduce : public testing::TestWithParam<Case> {};

TEST_P(AllReduce, SumsEverySizeInPlaceAndOutOfPlace) {
  const Case& c = GetParam();
  GroupSetup setup;
  setup.size = c.size;
  setup.transport = c.transport;
  setup.mode = c.mode;
  setup.algorithm = c.algorithm;
  ThreadGroup group(setup);
  const auto outcomes = group.run([&](Communicator& comm) -> Status {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{3}, size_t{1023}, size_t{1024},
                               size_t{16384}, size_t{16385}, size_t{700001}}) {
      auto in = contribution(comm.self().rank, count);
      std::vector<float> out(count, -1);
      if (Status s = comm.run(all_reduce_of(in, out)); !s) return s;
      if (out != expected_sum(c.size, count)) return internal_error(concat("wrong sum ", count));
      if (Status s = comm.run(all_reduce_of(in, in)); !s) return s;
      if (in != out) return internal_error(concat("wrong sum in place ", count));
    }
    return {};
  });
  EXPECT_EQ(outcome(outcomes), "ok");
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const TransportKind transport : {TransportKind::shm, TransportKind::tcp}) {
    for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::exchange, Algorithm::direct,
                                      Algorithm::ring, Algorithm::hub}) {
      for (const uint32_t size : {2u, 3u, 5u, 9u}) {
        if (size == 9 && algorithm != Algorithm::automatic) continue;
        all.push_back({transport, CommMode::sealed, algorithm, size});
      }
    }
    all.push_back({transport, CommMode::plain, Algorithm::automatic, 2});
    all.push_back({transport, CommMode::plain, Algorithm::automatic, 4});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, AllReduce, testing::ValuesIn(cases()), [](const auto& instance) {
  const Case& c = instance.param;
  return concat(c.transport == TransportKind::shm ? "shm_" : "tcp_", to_string(c.mode), "_",
                to_string(c.algorithm), "_", c.size);
});

// ---- The other collectives, types and shapes ----

Status other_collectives(Communicator& comm) {
  const uint32_t rank = comm.self().rank;
  const uint32_t size = comm.self().size;
  const size_t count = 50'003;
  const auto run = [&](Collective collective, std::vector<float>& in, std::vector<float>& out,
                       uint32_t root = 0, ReduceOperator op = ReduceOperator::none) {
    return comm.run({collective, ElementType::float32, op, root, buffer_of(in), buffer_of(out)});
  };
  auto mine = contribution(rank, count);
  std::vector<float> nothing, received(count);
  if (rank == 0) {  // first, so that the numbers of later calls would not agree if pairs counted
    if (Status s = run(Collective::send, mine, nothing, size - 1); !s) return s;
  } else if (rank == size - 1) {
    if (Status s = run(Collective::receive, nothing, received, 0); !s) return s;
    if (received != contribution(0, count)) return internal_error("receive");
  }
  std::vector<float> all(count * size);
  if (Status s = run(Collective::all_gather, mine, all); !s) return s;
  for (uint32_t r = 0; r < size; ++r) {
    const auto part = contribution(r, count);
    if (!std::equal(part.begin(), part.end(), all.begin() + static_cast<ptrdiff_t>(r * count))) {
      return internal_error("all_gather");
    }
  }
  auto wide = contribution(rank, count * size);
  std::vector<float> part(count);
  if (Status s = run(Collective::reduce_scatter, wide, part, 0, ReduceOperator::sum); !s) return s;
  const auto sums = expected_sum(size, count * size);
  if (!std::equal(part.begin(), part.end(), sums.begin() + static_cast<ptrdiff_t>(rank * count))) {
    return internal_error("reduce_scatter");
  }
  for (uint32_t root = 0; root < size; ++root) {
    auto data = contribution(rank, count);
    if (Status s = run(Collective::broadcast, data, data, root); !s) return s;
    if (data != contribution(root, count)) return internal_error("broadcast");
    std::vector<float> result(rank == root ? count : 0);
    if (Status s = run(Collective::reduce, mine, result, root, ReduceOperator::sum); !s) return s;
    if (rank == root && result != expected_sum(size, count)) return internal_error("reduce");
  }
  return comm.run(barrier());
}

TEST(Collectives, AllOfThemOnEveryTransportAndAlgorithm) {
  for (const TransportKind transport : {TransportKind::shm, TransportKind::tcp}) {
    for (const Algorithm algorithm : {Algorithm::direct, Algorithm::ring}) {
      for (const uint32_t size : {2u, 4u}) {
        GroupSetup setup;
        setup.size = size;
        setup.transport = transport;
        setup.algorithm = algorithm;
        ThreadGroup group(setup);
        EXPECT_EQ(outcome(group.run(other_collectives)), "ok") << to_string(algorithm);
      }
    }
  }
}

TEST(Collectives, BetweenHostsByMemoryAndByTcp) {
  for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::direct, Algorithm::ring,
                                    Algorithm::hub, Algorithm::exchange}) {
    for (const uint32_t size : {4u, 5u}) {
      GroupSetup setup;
      setup.size = size;
      setup.transport = TransportKind::automatic;
      setup.algorithm = algorithm;
      setup.hosts = two_hosts(size);
      ThreadGroup group(setup);
      EXPECT_EQ(outcome(group.run([&](Communicator& comm) -> Status {
                  for (const size_t count : {size_t{1}, size_t{300'001}}) {
                    auto values = contribution(comm.self().rank, count);
                    if (Status s = comm.run(all_reduce_of(values, values)); !s) return s;
                    if (values != expected_sum(size, count)) return internal_error("wrong");
                  }
                  return other_collectives(comm);
                })),
                "ok")
          << to_string(algorithm);
    }
  }
}

TEST(Collectives, SharedMemoryOnlyIsRefusedBetweenHosts) {
  GroupSetup setup;
  setup.size = 4;
  setup.hosts = two_hosts(4);
  ThreadGroup group(setup);
  const auto outcomes = group.run([](Communicator&) { return Status(); });
  EXPECT_NE(outcome(outcomes).find("--transport tcp or auto"), std::string::npos);
}

TEST(Collectives, SeveralConnectionsPerPair) {
  for (const uint32_t streams : {2u, 3u, 8u}) {
    GroupSetup setup;
    setup.size = 3;
    setup.transport = TransportKind::tcp;
    setup.tcp_streams = streams;
    ThreadGroup group(setup);
    EXPECT_EQ(outcome(group.run(other_collectives)), "ok") << streams;
  }
}

TEST(Collectives, ManyTensorsTravelAsOne) {
  GroupSetup setup;
  setup.size = 3;
  ThreadGroup group(setup);
  EXPECT_EQ(outcome(group.run([](Communicator& comm) -> Status {
              std::vector<std::vector<float>> tensors;
              std::vector<MutableBytes> pieces;
              for (const size_t count : {1, 0, 5, 30000, 3, 17000, 1}) {
                tensors.push_back(contribution(comm.self().rank, count));
                pieces.emplace_back(reinterpret_cast<uint8_t*>(tensors.back().data()),
                                    count * sizeof(float));
              }
              const Buffer all(pieces);
              Status status = comm.run(
                  {Collective::all_reduce, ElementType::float32, ReduceOperator::sum, 0, all, all});
              if (!status) return status;
              for (const auto& tensor : tensors) {
                if (tensor != expected_sum(3, tensor.size())) return internal_error("wrong");
              }
              return {};
            })),
            "ok");
}

// Results of 4 MiB and more are stored past the caches: out of place, in place, in two tensors.
TEST(Collectives, LongResultsGoPastTheCaches) {
  for (const Algorithm algorithm :
       {Algorithm::exchange, Algorithm::direct, Algorithm::ring, Algorithm::hub}) {
    GroupSetup setup;
    setup.size = algorithm == Algorithm::exchange ? 2 : 3;
    setup.algorithm = algorithm;
    ThreadGroup group(setup);
    EXPECT_EQ(outcome(group.run([&](Communicator& comm) -> Status {
                const size_t count = 1'300'007;
                const auto sum = expected_sum(setup.size, count);
                auto in = contribution(comm.self().rank, count);
                std::vector<float> out(count, -1);
                if (Status s = comm.run(all_reduce_of(in, out)); !s) return s;
                if (out != sum) return internal_error("wrong out of place");
                auto* bytes = reinterpret_cast<uint8_t*>(in.data());
                const size_t cut = 700'001 * sizeof(float);
                const Buffer both({{bytes, cut}, {bytes + cut, count * sizeof(float) - cut}});
                if (Status s = comm.run({Collective::all_reduce, ElementType::float32,
                                         ReduceOperator::sum, 0, both, both});
                    !s) {
                  return s;
                }
                return in == sum ? Status() : Status(internal_error("wrong in two tensors"));
              })),
              "ok")
        << to_string(algorithm);
  }
}

TEST(Collectives, AsynchronousOnesKeepTheirOrder) {
  ThreadGroup group({});
  EXPECT_EQ(outcome(group.run([](Communicator& comm) -> Status {
              std::vector<std::vector<float>> data(20);
              std::vector<std::shared_future<Status>> started;
              std::atomic<int> called{0};
              for (auto& values : data) {
                values = contribution(comm.self().rank, 3000);
                started.push_back(
                    comm.start(all_reduce_of(values, values), [&](const Status&) { ++called; }));
              }
              auto last = contribution(comm.self().rank, 10);
              if (Status s = comm.run(all_reduce_of(last, last)); !s) return s;
              for (const auto& future : started) {
                if (const Status& s = future.get(); !s) return s;
              }
              for (const auto& values : data) {
                if (values != expected_sum(2, 3000)) return internal_error("wrong");
              }
              return called == 20 ? Status() : Status(internal_error("callbacks missing"));
            })),
            "ok");
}

// As a continuation in PyTorch does (powerSGD's, say): more than once, and in one another.
TEST(Collectives, ACallbackCanWaitForOtherOperations) {
  GroupSetup setup;
  setup.timeout = std::chrono::minutes(5);
  ThreadGroup group(setup);
  constexpr size_t kDepth = 20;
  EXPECT_EQ(outcome(group.run([&](Communicator& comm) -> Status {
              std::vector<std::vector<float>> data(2 * kDepth, contribution(comm.self().rank, 10));
              std::vector<Status> waited(2 * kDepth);
              std::function<void(size_t)> deeper = [&](size_t level) {
                auto& started = data[2 * level];
                auto& run = data[2 * level + 1];
                waited[2 * level] = comm.start(all_reduce_of(started, started),
                                               [&, level](const Status&) {
                                                 if (level + 1 < kDepth) deeper(level + 1);
                                               })
                                        .get();
                waited[2 * level + 1] = comm.run(all_reduce_of(run, run));
              };
              deeper(0);
              for (const Status& status : waited) {
                if (!status) return status;
              }
              for (const auto& values : data) {
                if (values != expected_sum(2, 10)) return internal_error("wrong");
              }
              return {};
            })),
            "ok");
}

// Two callbacks of rank 0's wait, so a third thread runs what comes then; meanwhile they return,
// and the third is one too many when it has finished the first of two operations that nobody is
// called back for. Whether those that sleep then learn of the second depends on who woke whom: many
// rounds.
TEST(Collectives, AThreadThatIsOneTooManyLeavesNothingBehind) {
  constexpr size_t kRounds = 50;
  struct Round {
    std::latch both_wait{2}, released{1}, both_sleep{1};
  };
  std::vector<Round> rounds(kRounds);
  const auto first_rank = [](Communicator& comm, Round& round) -> Status {
    std::array<std::vector<float>, 4> data;
    std::array<std::shared_future<Status>, 4> started;
    data.fill(contribution(0, 10));
    for (size_t i = 0; i < 2; ++i) {
      started[i] = comm.start(sum_of(data[i]), [&](const Status&) {
        round.both_wait.count_down();
        round.released.wait();
      });
    }
    round.both_wait.wait();
    for (size_t i = 2; i < 4; ++i) started[i] = comm.start(sum_of(data[i]));
    round.released.count_down();
    for (size_t i = 0; i < 2; ++i) started[i].wait();
    round.both_sleep.count_down();
    if (started[3].wait_for(std::chrono::minutes(5)) != std::future_status::ready) {
      return internal_error("nobody runs what is queued");
    }
    for (const auto& future : started) {
      if (const Status& s = future.get(); !s) return s;
    }
    return {};
  };
  const auto second_rank = [](Communicator& comm, Round& round) -> Status {
    for (size_t i = 0; i < 4; ++i) {
      auto values = contribution(1, 10);
      if (i == 2) round.both_sleep.wait();
      if (Status s = comm.run(sum_of(values)); !s) return s;
    }
    return {};
  };
  ThreadGroup group({});
  EXPECT_EQ(outcome(group.run([&](Communicator& comm) -> Status {
              for (Round& round : rounds) {
                const auto rank = comm.self().rank == 0 ? +first_rank : +second_rank;
                if (Status s = rank(comm, round); !s) return s;
              }
              return {};
            })),
            "ok");
}

// Python's lock, say: who holds it calls in here, and what a callback held needs it to be let go.
TEST(Collectives, WhatACallbackHoldsIsLetGoWithNoLockHeld) {
  ThreadGroup group({});
  EXPECT_EQ(outcome(group.run([](Communicator& comm) -> Status {
              std::timed_mutex of_the_program;
              std::latch letting_go(1);
              const auto let_go = std::make_shared<std::promise<bool>>();
              const auto end = [&, let_go](const int* held) {
                letting_go.count_down();
                const bool locked = of_the_program.try_lock_for(std::chrono::minutes(5));
                if (locked) of_the_program.unlock();
                delete held;
                let_go->set_value(locked);
              };
              auto values = contribution(comm.self().rank, 10);
              of_the_program.lock();
              comm.start(sum_of(values),
                         [held = std::shared_ptr<int>(new int(0), end)](const Status&) {});
              letting_go.wait();
              const auto next = comm.start(barrier());
              of_the_program.unlock();
              if (!let_go->get_future().get()) return internal_error("a lock was held");
              return next.get();
            })),
            "ok");
}

// A rank whose threads are counted: one more than that cannot be made.
class CountedThreads {
 public:
  explicit CountedThreads(int allowed) : left_(allowed) {}
  void allow(int more) { left_ = more; }
  ThreadGroup::Adjust of_rank(uint32_t rank) {
    return [this, rank](JoinOptions& options) {
      if (options.self.rank != rank) return;
      options.make_thread = [this](std::function<void()> body) {
        if (left_-- <= 0) throw std::system_error(EAGAIN, std::system_category());
        return std::thread(std::move(body));
      };
    };
  }

 private:
  std::atomic<int> left_;
};

TEST(Collectives, WhatNoThreadCanRunIsAnErrorAndItsMemoryTheCallersAgain) {
  CountedThreads threads(0);
  ThreadGroup group({});
  EXPECT_EQ(outcome(group.run(
                [&](Communicator& comm) -> Status {
                  if (comm.self().rank == 0) {
                    auto lost = std::make_unique<std::vector<float>>(contribution(0, 10));
                    Status heard;
                    const auto done =
                        comm.start(sum_of(*lost), [&](const Status& status) { heard = status; });
                    const bool ready =
                        done.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
                    if (!ready || done.get().ok() || heard.ok()) return internal_error("started");
                    if (done.get().error().kind != ErrorKind::io) return done.get();
                    lost.reset();
                    threads.allow(2);
                  }
                  // As if it had never been asked for, whoever runs what comes now.
                  std::array<std::vector<float>, 2> data;
                  data.fill(contribution(comm.self().rank, 10));
                  if (Status s = comm.run(sum_of(data[0])); !s) return s;
                  if (const Status s = comm.start(sum_of(data[1])).get(); !s) return s;
                  const bool right =
                      data[0] == expected_sum(2, 10) && data[1] == expected_sum(2, 10);
                  return right ? Status() : Status(internal_error("wrong"));
                },
                threads.of_rank(0))),
            "ok");
}

// While another thread of the program's is in an operation, which waits for rank 1.
TEST(Collectives, WhatNoThreadCanRunIsAnErrorAlsoBehindAnotherOperation) {
  CountedThreads threads(0);
  ThreadGroup group({});
  std::latch refused(1);
  EXPECT_EQ(outcome(group.run(
                [&](Communicator& comm) -> Status {
                  auto values = contribution(comm.self().rank, 10);
                  if (comm.self().rank == 1) {
                    refused.wait();
                    return comm.run(sum_of(values));
                  }
                  Status first;
                  std::thread other([&] { first = comm.run(sum_of(values)); });
                  while (comm.awaited() != 1) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                  }
                  std::vector<float> queued(10);
                  const auto done = comm.start(sum_of(queued));
                  const bool ready =
                      done.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
                  refused.count_down();
                  other.join();
                  if (!first) return first;
                  return ready && !done.get() ? Status() : Status(internal_error("queued"));
                },
                threads.of_rank(0))),
            "ok");
}

TEST(Collectives, GoOnWithAsManyThreadsAsThereAre) {
  for (const int allowed : {1, 2}) {
    CountedThreads threads(allowed);
    ThreadGroup group({});
    EXPECT_EQ(outcome(group.run(
                  [&](Communicator& comm) -> Status {
                    std::vector<std::vector<float>> data(6, contribution(comm.self().rank, 10));
                    std::vector<std::shared_future<Status>> started;
                    std::atomic<int> called{0};
                    for (auto& values : data) {
                      started.push_back(comm.start(sum_of(values), [&](const Status&) {
                        std::this_thread::sleep_for(std::chrono::milliseconds(20));
                        ++called;
                      }));
                    }
                    for (const auto& future : started) {
                      if (const Status& s = future.get(); !s) return s;
                    }
                    for (const auto& values : data) {
                      if (values != expected_sum(2, 10)) return internal_error("wrong");
                    }
                    return called == 6 ? Status() : Status(internal_error("callbacks missing"));
                  },
                  threads.of_rank(0))),
              "ok")
        << allowed;
  }
}

bool is_refused(const std::shared_future<Status>& started) {
  const bool ready = started.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  return ready && !started.get() && started.get().error().kind == ErrorKind::io;
}

// It would wait for what it starts, and keep the thread that were to come to that.
TEST(Collectives, WhatACallbackStartsWithTheLastThreadIsAnErrorAtOnce) {
  CountedThreads threads(1);
  std::vector<float> inner(10);
  ThreadGroup group({});
  EXPECT_EQ(outcome(group.run(
                [&](Communicator& comm) -> Status {
                  auto values = contribution(comm.self().rank, 10);
                  if (comm.self().rank == 1) {
                    if (Status s = comm.run(sum_of(values)); !s) return s;
                    return sum_until_error(comm, 10, 2);
                  }
                  bool refused = false;
                  const auto done = comm.start(sum_of(values), [&](const Status&) {
                    refused = is_refused(comm.start(sum_of(inner)));
                  });
                  if (const Status& s = done.get(); !s) return s;
                  if (!refused) return internal_error("accepted");
                  return sum_until_error(comm, 10, 2);
                },
                threads.of_rank(0))),
            "ok");
}

// The thread that is in an operation meanwhile is the program's, and goes its own way after it.
TEST(Collectives, WhatACallbackStartsWithTheLastThreadIsAnErrorAlsoBehindAnotherOperation) {
  CountedThreads threads(1);
  std::vector<float> inner(10);
  ThreadGroup group({});
  std::latch refused_or_not(1);
  EXPECT_EQ(outcome(group.run(
                [&](Communicator& comm) -> Status {
                  auto values = contribution(comm.self().rank, 10);
                  auto second = contribution(comm.self().rank, 10);
                  if (comm.self().rank == 1) {
                    if (Status s = comm.run(sum_of(values)); !s) return s;
                    refused_or_not.wait();
                    return comm.run(sum_of(second));
                  }
                  bool refused = false;
                  std::latch in_callback(1);
                  const auto done = comm.start(sum_of(values), [&](const Status&) {
                    in_callback.count_down();
                    while (comm.awaited() != 1) {
                      std::this_thread::sleep_for(std::chrono::milliseconds(1));
                    }
                    refused = is_refused(comm.start(sum_of(inner)));
                    refused_or_not.count_down();
                  });
                  in_callback.wait();
                  if (Status s = comm.run(sum_of(second)); !s) return s;
                  if (const Status& s = done.get(); !s) return s;
                  return refused ? Status() : Status(internal_error("accepted"));
                },
                threads.of_rank(0))),
            "ok");
}

TEST(Collectives, WhatACallbackThrowsIsDropped) {
  ThreadGroup group({});
  EXPECT_EQ(outcome(group.run([](Communicator& comm) -> Status {
              for (int i = 0; i < 2; ++i) {
                auto values = contribution(comm.self().rank, 10);
                const auto done = comm.start(all_reduce_of(values, values), [&](const Status&) {
                  if (i == 0) throw std::runtime_error("of the program");
                  throw i;
                });
                if (const Status& s = done.get(); !s) return s;
              }
              return {};
            })),
            "ok");
}

// Throws when it is asked for room for the n-th record.
class ThrowingFabric final : public ForwardingFabric {
 public:
  ThrowingFabric(std::unique_ptr<Fabric> inner, int when)
      : ForwardingFabric(std::move(inner)), left_(when) {}
  MutableBytes slot(uint32_t wire) override {
    if (--left_ == 0) throw std::bad_alloc();
    return inner().slot(wire);
  }

 private:
  int left_;
};

TEST(Collectives, AnExceptionInsideIsAnErrorOfTheWholeGroup) {
  ThreadGroup group({});
  const auto outcomes = group.run(
      [](Communicator& comm) -> Status {
        for (int i = 0; i < 5; ++i) {
          auto values = contribution(comm.self().rank, 100'000);
          const Status first = comm.run(all_reduce_of(values, values));
          if (first) continue;
          const Status again = comm.start(all_reduce_of(values, values)).get();
          if (again.ok()) return internal_error("the error was not final");
          return again;
        }
        return {};
      },
      with_wires<ThrowingFabric>(1, 7));
  for (const Status& status : outcomes) {
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("unexpected"), std::string::npos)
        << status.error().message;
  }
}

TEST(Collectives, RekeyInTheMiddle) {
  for (const TransportKind transport : {TransportKind::shm, TransportKind::tcp}) {
    GroupSetup setup;
    setup.size = 3;
    setup.transport = transport;
    setup.limits.messages = 4;
    ThreadGroup group(setup);
    EXPECT_EQ(outcome(group.run([](Communicator& comm) -> Status {
                for (int i = 0; i < 3; ++i) {
                  auto values = contribution(comm.self().rank, 1'000'003);
                  if (Status s = comm.run(all_reduce_of(values, values)); !s) return s;
                  if (values != expected_sum(3, values.size())) return internal_error("wrong");
                }
                return {};
              })),
              "ok");
  }
}

TEST(Collectives, AGibibyte) {
  ThreadGroup group({});
  EXPECT_EQ(outcome(group.run([](Communicator& comm) -> Status {
              // In large pages where there are any: giving it 262,144 small ones takes longer than
              // the sum.
              struct Free {
                void operator()(uint8_t* memory) const { std::free(memory); }
              };
              const std::unique_ptr<uint8_t, Free> memory(
                  static_cast<uint8_t*>(std::aligned_alloc(2_MiB, 1_GiB)));
              const std::span<uint8_t> values(memory.get(), 1_GiB);
              madvise(values.data(), values.size(), MADV_HUGEPAGE);
              std::memset(values.data(), static_cast<int>(comm.self().rank + 1), values.size());
              Status status =
                  comm.run({Collective::all_reduce, ElementType::uint8, ReduceOperator::sum, 0,
                            Buffer({values}), Buffer({values})});
              if (!status) return status;
              const bool all_the_same =
                  std::memcmp(values.data(), values.data() + 1, values.size() - 1) == 0;
              return values[0] == 3 && all_the_same ? Status() : Status(internal_error("wrong"));
            })),
            "ok");
}

TEST(Collectives, AloneTheResultIsTheContribution) {
  GroupSetup setup;
  setup.size = 1;
  ThreadGroup group(setup);
  EXPECT_EQ(outcome(group.run([](Communicator& comm) -> Status {
              auto in = contribution(0, 100'000);
              std::vector<float> out(in.size());
              if (Status s = comm.run(all_reduce_of(in, out)); !s) return s;
              return out == in ? Status() : Status(internal_error("wrong"));
            })),
            "ok");
}

// Rank 1 had sent something that rank 0 never took.
TEST(Collectives, WhatARankHadSentBeforeItLeftCanBeReceived) {
  for (const TransportKind transport : {TransportKind::shm, TransportKind::tcp}) {
    for (const size_t count : {1'000, 50'000}) {
      GroupSetup setup;
      setup.transport = transport;
      ThreadGroup group(setup);
      const auto message = [](Collective collective, std::vector<float>& values, uint32_t peer) {
        const bool sends = collective == Collective::send;
        return Operation{collective,
                         ElementType::float32,
                         ReduceOperator::none,
                         peer,
                         sends ? buffer_of(values) : Buffer(),
                         sends ? Buffer() : buffer_of(values)};
      };
      std::latch sent(1);
      EXPECT_EQ(outcome(group.run([&](Communicator& comm) -> Status {
                  auto values = contribution(0, count);
                  if (comm.self().rank == 0) {
                    sent.wait();
                    return comm.run(message(Collective::send, values, 1));
                  }
                  std::vector<float> untaken(10);
                  const Status status = comm.run(message(Collective::send, untaken, 0));
                  sent.count_down();
                  if (!status) return status;
                  while (!comm.gone(0)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                  std::vector<float> received(count);
                  if (Status s = comm.run(message(Collective::receive, received, 0)); !s) return s;
                  return received == values ? Status() : Status(internal_error("wrong"));
                })),
                "ok")
          << count;
    }
  }
}

TEST(Collectives, CallsThatDifferAreNamed) {
  ThreadGroup group({});
  const auto outcomes = group.run([](Communicator& comm) -> Status {
    auto values = contribution(comm.self().rank, comm.self().rank == 0 ? 100 : 200);
    return comm.run(all_reduce_of(values, values));
  });
  EXPECT_FALSE(outcomes[0].ok());
  EXPECT_FALSE(outcomes[1].ok());
  EXPECT_NE(outcome(outcomes).find("rank 1"), std::string::npos) << outcome(outcomes);
}

// More than there can be: some wrap when they are rounded up, some are more records than a header
// numbers. The memory is one page, which nobody may touch.
TEST(Collectives, AbsurdSizesAreUsageErrorsAndHarmless) {
  ThreadGroup group({});
  EXPECT_EQ(outcome(group.run([](Communicator& comm) -> Status {
              std::vector<uint8_t> page(4096, 7);
              const uint32_t peer = 1 - comm.self().rank;
              for (const size_t bytes : {SIZE_MAX, SIZE_MAX - 100, SIZE_MAX / 2 + 1, SIZE_MAX / 2,
                                         size_t{1} << 53, (size_t{1} << 46) + 1}) {
                const Buffer whole({{page.data(), bytes}});
                const Buffer half({{page.data(), bytes / 2}});
                const auto sum = ReduceOperator::sum;
                const auto type = ElementType::uint8;
                const Operation operations[] = {
                    {Collective::all_reduce, type, sum, 0, whole, whole},
                    {Collective::reduce, type, sum, 0, whole, whole},
                    {Collective::reduce_scatter, type, sum, 0, whole, half},
                    {Collective::all_gather, type, ReduceOperator::none, 0, half, whole},
                    {Collective::broadcast, type, ReduceOperator::none, 0, whole, whole},
                    {Collective::send, type, ReduceOperator::none, peer, whole, {}},
                    {Collective::receive, type, ReduceOperator::none, peer, {}, whole},
                };
                for (const Operation& operation : operations) {
                  const Status status = comm.run(operation);
                  if (status) return internal_error(concat(to_string(operation.collective), bytes));
                  if (status.error().kind != ErrorKind::usage) return status;
                }
              }
              if (page != std::vector<uint8_t>(4096, 7))
                return internal_error("memory was touched");
              auto values = contribution(comm.self().rank, 10);
              if (Status s = comm.run(sum_of(values)); !s) return s;
              return values == expected_sum(2, 10) ? Status() : Status(internal_error("wrong"));
            })),
            "ok");
}

TEST(Collectives, WrongArgumentsAreUsageErrorsAndHarmless) {
  ThreadGroup group({});
  EXPECT_EQ(outcome(group.run([](Communicator& comm) -> Status {
              auto a = contribution(0, 10);
              std::vector<float> b(11);
              if (comm.run(all_reduce_of(a, b)).ok()) return internal_error("sizes differ");
              if (comm.run(all_reduce_of(a, a, ReduceOperator::none)).ok()) {
                return internal_error("no operator");
              }
              return comm.run(all_reduce_of(a, a));
            })),
            "ok");
}

}  // namespace
}  // namespace sealane
