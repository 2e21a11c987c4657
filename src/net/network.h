// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The door of this room: sealed one-way connections for whoever polls. No call waits.
//
//   listen()   a listener and the handle that leads to it
//   connect()  an attempt; poll() it until it gives an end to send with
//   accept()   on a listener: the next end to receive with, or nothing yet
//   end.h      send(), receive(), test(), close()
//
// Who connects without knowing the listener's nonce is a stranger and is dropped without a word
// (crowd.h says how many are heard at a time, and for how long is an option). Who knows it and then
// cannot prove to be of the group ends the listener with an error that names him: the job must not
// wait for ever for somebody with another key.
//
// Workers start with the first listener or attempt and end with the last connection, so a library
// that never says good-bye leaves no thread behind. A child after fork() has nothing of it: keys
// are wiped, sockets closed, every call is an error.
//
// Concurrency: any thread.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "comm/fork_guard.h"
#include "net/born_here.h"
#include "net/crowd.h"
#include "net/end.h"
#include "net/greeting.h"
#include "net/interfaces.h"
#include "net/worker.h"
#include "seal/engine.h"

namespace sealane::net {

struct NetworkOptions {
  std::string group = "nccl";
  std::optional<JobRank> job;
  std::optional<Credentials> credentials;  // none: nothing is sealed (measuring only)
  std::shared_ptr<Attestor> attestor;
  std::string interfaces;      // as find_interfaces() takes it
  bool device_memory = false;  // messages may come from and go to GPU memory (device_memory.h)
  uint32_t workers = 2;
  uint32_t streams = 2;                                  // TCP connections of one connection
  uint32_t chunk_bytes = 128 << 10;                      // of a record
  Duration patience = std::chrono::seconds(60);          // for a greeting
  Duration stranger_patience = std::chrono::seconds(5);  // for its first bytes
};

// What the environment says: SEALANE_KEY_FILE and the certificate variables, RANK and WORLD_SIZE
// (or SEALANE_*, OMPI_*), SEALANE_NCCL_WORKERS, SEALANE_NCCL_STREAMS, SEALANE_NCCL_CUDA,
// NCCL_SOCKET_IFNAME. `sealed` false asks for no credentials. A usage error says what to set.
Result<NetworkOptions> options_from_environment(bool sealed);

class Network;

class Listener {
 public:
  virtual ~Listener() = default;
  // Nothing: nobody has come yet. An error is final.
  virtual Result<std::shared_ptr<ReceiveEnd>> accept() = 0;
  virtual void close() = 0;
};

class Attempt {
 public:
  virtual ~Attempt() = default;
  virtual Result<std::shared_ptr<SendEnd>> poll() = 0;  // null: not yet
  virtual void cancel() = 0;
};

class Network final : public std::enable_shared_from_this<Network>, private ForkSensitive {
 public:
  static Result<std::shared_ptr<Network>> open(NetworkOptions options);
  ~Network();

  const std::vector<Interface>& interfaces() const { return interfaces_; }

  // `handle` gets Handle::kBytes bytes. Only who connects for the same communicator is let in.
  Result<std::shared_ptr<Listener>> listen(size_t interface, MutableBytes handle,
                                           uint64_t communicator);
  Result<std::shared_ptr<Attempt>> connect(Bytes handle, uint64_t communicator);

  // For what this room's other files make.
  const NetworkOptions& options() const { return options_; }
  const Credence& credence() const { return credence_; }
  const Engine* engine() const { return engine_; }

  // The workers, shared by whatever is alive.
  class Crew {
   public:
    static Result<std::shared_ptr<Crew>> start(uint32_t count);
    ~Crew();
    Worker& greeter() { return *workers_[0]; }
    Worker& next() { return *workers_[turn_.fetch_add(1) % workers_.size()]; }
    const std::vector<std::unique_ptr<Worker>>& all() const { return workers_; }
    Crowd& crowd() { return crowd_; }  // the greeter's

   private:
    Crowd crowd_;  // longer than those in it, whom the workers hold
    std::vector<std::unique_ptr<Worker>> workers_;
    std::atomic<size_t> turn_{0};
  };
  Result<std::shared_ptr<Crew>> crew();

 private:
  explicit Network(NetworkOptions options) : options_(std::move(options)) {}

  void before_fork() override;
  void after_fork_in_parent() override;
  void after_fork_in_child() override;

  NetworkOptions options_;
  BornHere born_;
  std::vector<Interface> interfaces_;
  const Engine* engine_ = nullptr;
  Pairs pairs_;
  Credence credence_;
  std::mutex mutex_;
  std::weak_ptr<Crew> crew_;
  std::shared_ptr<Crew> inherited_;  // in a child: kept for ever, its threads do not exist
  std::optional<ForkGuard> fork_guard_;
};

}  // namespace sealane::net
