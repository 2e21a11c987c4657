// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// May what one worker serves still call for another worker while the crew ends? The streams of a
// connection do, and are served by different ones.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "net/network.h"
#include "net/worker.h"
#include "transport/socket.h"

namespace sealane::net {
namespace {

class OnASocket : public Served {
 public:
  int descriptor() const override { return socket_.descriptor(); }
  void unwatched(const Error&) override {}

 private:
  Socket socket_ = std::move(*Socket::listen_tcp("127.0.0.1", 0));
};

// Is there for as long as its worker.
class Neighbour : public OnASocket {
 public:
  explicit Neighbour(std::atomic<bool>& gone) : gone_(gone) {}
  ~Neighbour() override { gone_ = true; }
  bool serve() override { return true; }

 private:
  std::atomic<bool>& gone_;
};

// Its turn lasts until the crew ends, and a while longer.
class Busy : public OnASocket {
 public:
  Busy(Worker& other, std::shared_ptr<Neighbour> neighbour, std::atomic<bool>& gone)
      : other_(other), neighbour_(neighbour), gone_(gone) {}

  bool serve() override {
    served = true;
    while (!ends) std::this_thread::yield();
    for (int i = 0; i < 200 && !gone_; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    found_gone = gone_.load();
    if (const auto neighbour = neighbour_.lock(); neighbour && !found_gone) other_.kick(neighbour);
    return false;
  }

  std::atomic<bool> served{false};
  std::atomic<bool> ends{false};
  std::atomic<bool> found_gone{false};

 private:
  Worker& other_;
  std::weak_ptr<Neighbour> neighbour_;
  std::atomic<bool>& gone_;
};

TEST(Crew, NoWorkerGoesBeforeAllHaveEnded) {
  std::atomic<bool> gone{false};
  auto crew = std::move(*Network::Crew::start(2));
  auto neighbour = std::make_shared<Neighbour>(gone);
  const auto busy = std::make_shared<Busy>(*crew->all()[0], neighbour, gone);
  crew->all()[0]->add(std::move(neighbour));
  crew->all()[1]->add(busy);
  while (!busy->served) std::this_thread::yield();
  busy->ends = true;
  crew.reset();
  EXPECT_TRUE(gone);
  EXPECT_FALSE(busy->found_gone);
}

}  // namespace
}  // namespace sealane::net
