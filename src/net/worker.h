// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A thread that serves sockets: sleeps in epoll, calls who has something to do. All objects of this
// room that own a socket are served by one worker each, so their I/O needs no further order.
//
// Each turn holds exit() up (comm/exit_hold.h); when the process exits there are no more turns, and
// nobody serves.
//
// Concurrency: add(), kick(), remove() from any thread. serve() is called on the worker's thread,
//              one call at a time per worker; never after the call of serve() that returned false,
//              nor after remove() and the next turn of the loop.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "comm/exit_hold.h"
#include "net/born_here.h"
#include "transport/socket.h"

namespace sealane::net {

class Served {
 public:
  virtual ~Served() = default;
  virtual int descriptor() const = 0;
  // Does what can be done without waiting. False: it has ended and wants no more calls.
  virtual bool serve() = 0;
  // Called once, when the worker has let go of the descriptor: it may be handed on from here.
  virtual void dropped() {}
  // The kernel watches no more descriptors for this user: it would never be served. Dropped next.
  virtual void unwatched(const Error& error) = 0;
  // When to be served at the latest though nothing happens; none: never.
  virtual std::optional<Instant> deadline() const { return std::nullopt; }

 private:
  friend class Worker;
  std::atomic<bool> kicked_{false};
};

class Worker {
 public:
  static Result<std::unique_ptr<Worker>> start(const char* name);
  ~Worker();   // what it still serves is dropped
  void end();  // the thread; orders that come later are not carried out

  void add(std::shared_ptr<Served> served);          // and serves it at once
  void kick(const std::shared_ptr<Served>& served);  // serve() soon
  void remove(const std::shared_ptr<Served>& served);

  // In a child after fork(): the thread does not exist there, and what it was changing when the
  // child was made is not looked at. Sockets close themselves in a child.
  void abandon();

 private:
  Worker(Socket epoll, Socket bell) : epoll_(std::move(epoll)), bell_(std::move(bell)) {}
  enum class Order { add, kick, remove, stop };
  struct Task {
    Order order;
    std::shared_ptr<Served> served;
  };

  void post(Task task);
  void run();
  bool carry_out_tasks();  // false: stop
  void serve(Served* served);
  void drop(Served* served);
  int patience_ms() const;

  Socket epoll_;
  Socket bell_;
  std::mutex mutex_;
  std::vector<Task> tasks_;
  bool rung_ = false;
  std::unordered_map<Served*, std::shared_ptr<Served>> served_;
  std::vector<std::shared_ptr<Served>> timed_;  // those that have a deadline
  std::thread thread_;
};

// Why nobody serves an object of this room any more, if so: it came with fork(), or the process
// exits. Whoever waits for a worker asks.
std::optional<Error> unserved(const BornHere& born);

}  // namespace sealane::net
