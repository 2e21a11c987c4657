// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests: a group whose ranks are threads of this process.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "comm/communicator.h"
#include "comm/forwarding_fabric.h"
#include "comm/key_file.h"

namespace sealane {

// A directory that is gone with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    char pattern[] = "/tmp/sealane-test-XXXXXX";
    path_ = mkdtemp(pattern);
  }
  ~TemporaryDirectory() { static_cast<void>(std::system(("rm -rf " + path_).c_str())); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct GroupSetup {
  uint32_t size = 2;
  TransportKind transport = TransportKind::shm;
  CommMode mode = CommMode::sealed;
  Algorithm algorithm = Algorithm::automatic;
  KeyLimits limits;
  Duration timeout = std::chrono::minutes(5);
  uint32_t record_bytes = 64 << 10;
  uint32_t tcp_streams = 0;
  std::vector<std::string> hosts;  // of each rank; empty: one host
};

// Three ranks here, the others there.
inline std::vector<std::string> two_hosts(uint32_t size) {
  std::vector<std::string> hosts;
  for (uint32_t rank = 0; rank < size; ++rank) hosts.emplace_back(rank < 3 ? "here" : "there");
  return hosts;
}

class ThreadGroup {
 public:
  explicit ThreadGroup(const GroupSetup& setup) : setup_(setup) {
    static_cast<void>(write_key_file(key_file()));
  }

  std::string key_file() const { return directory_.path() + "/key"; }

  JoinOptions options(uint32_t rank) const {
    JoinOptions options;
    options.self = {"test", setup_.size, rank};
    options.rendezvous = "file:" + directory_.path() + "/meet";
    options.key_file = key_file();
    options.mode = setup_.mode;
    options.transport = setup_.transport;
    options.algorithm = setup_.algorithm;
    options.key_limits = setup_.limits;
    options.timeout = setup_.timeout;
    options.record_bytes = setup_.record_bytes;
    options.tcp_streams = setup_.tcp_streams;
    if (!setup_.hosts.empty()) options.host = setup_.hosts[rank];
    return options;
  }

  using Body = std::function<Status(Communicator&)>;
  using Adjust = std::function<void(JoinOptions&)>;

  // Runs the body on every rank; the outcome of each.
  std::vector<Status> run(const Body& body, const Adjust& adjust = {}) {
    std::vector<Status> outcomes(setup_.size);
    std::vector<std::thread> ranks;
    for (uint32_t rank = 0; rank < setup_.size; ++rank) {
      ranks.emplace_back([&, rank] {
        JoinOptions mine = options(rank);
        if (adjust) adjust(mine);
        auto communicator = Communicator::create(std::move(mine));
        outcomes[rank] = communicator ? body(**communicator) : Status(communicator.error());
      });
    }
    for (std::thread& rank : ranks) rank.join();
    return outcomes;
  }

 private:
  GroupSetup setup_;
  TemporaryDirectory directory_;
};

// First failure as text, or "ok".
inline std::string outcome(const std::vector<Status>& statuses) {
  for (size_t rank = 0; rank < statuses.size(); ++rank) {
    if (!statuses[rank]) return concat("rank ", rank, ": ", statuses[rank].error().message);
  }
  return "ok";
}

// ---- Operations ----

template <typename T>
Buffer buffer_of(std::vector<T>& values) {
  return Buffer({{reinterpret_cast<uint8_t*>(values.data()), values.size() * sizeof(T)}});
}

inline Operation all_reduce_of(std::vector<float>& in, std::vector<float>& out,
                               ReduceOperator op = ReduceOperator::sum) {
  return {Collective::all_reduce, ElementType::float32, op, 0, buffer_of(in), buffer_of(out)};
}

inline Operation sum_of(std::vector<float>& values) { return all_reduce_of(values, values); }

inline Operation barrier() {
  return {Collective::barrier, ElementType::none, ReduceOperator::none, 0, {}, {}};
}

// Adds up ones again and again, until an error; a sum that is not right is one, the worst.
constexpr uint64_t kEndless = ~uint64_t{0};
inline Status sum_until_error(Communicator& comm, size_t count, uint64_t times) {
  const std::vector<float> wanted(count, static_cast<float>(comm.self().size));
  for (uint64_t i = 0; i < times; ++i) {
    std::vector<float> values(count, 1);
    if (Status status = comm.run(sum_of(values)); !status) return status;
    if (values != wanted) return internal_error("WRONG SUM");
  }
  return {};
}

// ---- Faults ----

// Puts a fabric of that type, made of the genuine one and `arguments`, before one rank's wires.
template <typename Faulty, typename... Arguments>
ThreadGroup::Adjust with_wires(uint32_t rank, Arguments... arguments) {
  return [=](JoinOptions& options) {
    if (options.self.rank != rank) return;
    options.wrap_fabric = [=](std::unique_ptr<Fabric> inner) -> std::unique_ptr<Fabric> {
      return std::make_unique<Faulty>(std::move(inner), arguments...);
    };
  };
}

}  // namespace sealane
