// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests: both sides of a connection in one process, over loopback, and sockets of somebody who
// is neither. Every wait is for a condition, with a generous bound.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "net/network.h"
#include "transport/socket.h"

namespace sealane::net {

using HandleBytes = std::array<uint8_t, Handle::kBytes>;

inline NetworkOptions options_for_tests(uint8_t digit = 7) {
  std::array<uint8_t, Key::kBytes> bytes;
  bytes.fill(digit);
  NetworkOptions options;
  options.credentials.emplace(std::in_place_type<PresharedKey>,
                              PresharedKey{*Key::from_bytes(bytes)});
  options.interfaces = "lo";
  return options;
}

inline std::shared_ptr<Network> open_network(NetworkOptions options = options_for_tests()) {
  auto network = Network::open(std::move(options));
  if (!network) ADD_FAILURE() << network.error().message;
  return *network;
}

// True as soon as the condition holds; false only if it never does.
inline bool eventually(const std::function<bool()>& condition) {
  const Instant end = SteadyClock().now() + std::chrono::minutes(5);
  while (!condition()) {
    if (SteadyClock().now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

inline Socket connect_to(const Address& address) {
  auto socket = Socket::connect_tcp(address.text(), address.port);
  EXPECT_TRUE(socket.ok());
  EXPECT_TRUE(eventually([&] { return socket->connect_error() == 0; }));
  return std::move(*socket);
}

inline bool hung_up_on(const Socket& socket) {
  std::array<uint8_t, 256> bytes;
  while (true) {
    const ptrdiff_t count = socket.receive(bytes);
    if (count <= 0) return count < 0;
  }
}

// A listener, and what was heard of it.
struct Host {
  std::shared_ptr<Network> network;
  HandleBytes handle{};
  std::shared_ptr<Listener> listener;
  std::shared_ptr<ReceiveEnd> end;
  std::optional<Error> failure;

  explicit Host(std::shared_ptr<Network> from = open_network(), uint64_t communicator = 0)
      : network(std::move(from)) {
    auto made = network->listen(0, handle, communicator);
    EXPECT_TRUE(made.ok());
    listener = *made;
  }
  bool accept() {
    if (failure || end != nullptr) return true;
    auto got = listener->accept();
    if (!got) failure = got.error();
    if (got) end = *got;
    return failure || end != nullptr;
  }
  Handle where() const { return *Handle::parse(handle); }
  Socket knock() const { return connect_to(where().address); }
  // As somebody who has read the handle would begin.
  Hello hello() const {
    Hello hello;
    hello.streams = 2;
    hello.chunk_bytes = 128 << 10;
    hello.listener = where().listener;
    return hello;
  }
};

struct Guest {
  std::shared_ptr<Network> network;
  std::shared_ptr<Attempt> attempt;
  std::shared_ptr<SendEnd> end;
  std::optional<Error> failure;

  Guest(std::shared_ptr<Network> from, const HandleBytes& handle, uint64_t communicator = 0)
      : network(std::move(from)) {
    auto made = network->connect(handle, communicator);
    if (made) attempt = *made;
    if (!made) failure = made.error();
  }
  bool poll() {
    if (failure || end != nullptr) return true;
    auto got = attempt->poll();
    if (!got) failure = got.error();
    if (got) end = *got;
    return failure || end != nullptr;
  }
};

// Both have come to an end of the connection.
inline bool meet(Guest& guest, Host& host) {
  return eventually([&] {
           const bool polled = guest.poll();
           return host.accept() && polled;
         }) &&
         guest.end != nullptr && host.end != nullptr;
}

// One message from end to end, as it was sent.
inline bool carry(Guest& guest, Host& host, size_t bytes) {
  std::vector<uint8_t> out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<uint8_t>(i * 7 + i / 256);
  std::vector<uint8_t> in(bytes);
  auto receiving = host.end->receive(in.data(), in.size());
  auto sending = guest.end->send(out.data(), out.size());
  if (!receiving || !sending) return false;
  bool sent = false;
  bool received = false;
  const bool settled = eventually([&] {
    if (!sent) {
      const auto done = guest.end->test(**sending);
      if (!done) return true;
      sent = done->has_value();
    }
    if (!received) {
      const auto done = host.end->test(**receiving);
      if (!done) return true;
      received = done->has_value();
    }
    return sent && received;
  });
  return settled && sent && received && in == out;
}

}  // namespace sealane::net
