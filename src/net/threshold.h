// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What a listener and those who stand before it have in common: connections whose streams have not
// all come yet, and such as nobody has accepted yet.
//
//   greeted()  the first stream of a connection, with its key
//   joined()   another one. It is the connection's if it carries the proof that comes from the key
//              (greeting.h); until the key is here it waits, with at most kEarlyMax others
//   take()     the next connection that is whole
//
// The first failure is final, but what was whole before it is still given. After close() nothing
// is kept, and whoever was not taken hears of it.
//
// Concurrency: any thread.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "net/network.h"
#include "net/stream.h"

namespace sealane::net {

class Threshold {
 public:
  static constexpr size_t kEarlyMax = 64;

  Threshold(std::shared_ptr<Network> network, Network::Crew& crew, uint64_t communicator);

  const Nonce& nonce() const { return nonce_; }
  uint64_t communicator() const { return communicator_; }
  const Network& network() const { return *network_; }

  Result<std::shared_ptr<ReceiveEnd>> take();
  void fail(const Error& error);
  void greeted(const Hello& hello, const std::string& peer, std::optional<Key> secret,
               Socket socket);
  void joined(const Hello& hello, Socket socket);
  void close();

 private:
  // A connection whose streams have not all come yet.
  struct Gathering {
    Hello hello;
    std::string peer;
    std::optional<Key> secret;
    std::map<uint8_t, Socket> sockets;
    Instant since;
    std::optional<Instant> hung_up;  // since then its first stream has been closed
  };
  struct Early {
    Hello hello;
    Socket socket;
    Instant since;
  };

  static void join(Gathering& one, const Hello& hello, Socket socket);
  void forget_early();
  void finish(const Nonce& id);

  std::shared_ptr<Network> network_;
  Network::Crew& crew_;
  uint64_t communicator_;
  Nonce nonce_{};
  std::mutex mutex_;
  std::deque<std::shared_ptr<ReceiveEnd>> ready_;
  std::map<Nonce, Gathering> gatherings_;
  std::deque<Early> early_;  // the oldest first
  std::optional<Error> failure_;
  bool closed_ = false;
};

}  // namespace sealane::net
