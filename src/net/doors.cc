// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "net/doors.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "base/try.h"
#include "net/born_here.h"
#include "net/stream.h"
#include "net/threshold.h"

namespace sealane::net {
namespace {

constexpr Duration kDoorPause = std::chrono::seconds(1);  // until it is looked for room again
constexpr uint32_t kChunkBytesMax = 1 << 20;
constexpr uint8_t kStreamsMax = 16;

// What one turn does at most, so that who talks or knocks without end is one among others.
constexpr int kReadsPerTurn = 64;
constexpr int kGuestsPerTurn = 64;

// ---- Accepting ----

class Newcomer final : public Served,
                       public Crowd::Member,
                       public std::enable_shared_from_this<Newcomer> {
 public:
  Newcomer(Socket socket, std::shared_ptr<Threshold> threshold, Network::Crew& crew)
      : socket_(std::move(socket)), threshold_(std::move(threshold)), crew_(crew) {
    crew_.crowd().enter(this);
  }
  ~Newcomer() override {
    if (!gone_) crew_.crowd().leave(this);
  }

  int descriptor() const override { return socket_.descriptor(); }

  std::optional<Instant> deadline() const override {
    const NetworkOptions& options = threshold_->network().options();
    return since_ + (greeting_ ? options.patience : options.stranger_patience);
  }

  bool serve() override {
    if (gone_) return false;
    if (SteadyClock().now() >= *deadline())
      return give_up(peer_error("did not finish its greeting"));
    for (int reads = 0; reads < kReadsPerTurn; ++reads) {
      if (greeting_) {
        if (!transmit()) return false;
        if (greeting_->failure()) return give_up(*greeting_->failure());
        if (greeting_->complete()) return !unsent_.empty();
      }
      const size_t wanted = greeting_ ? greeting_->wanted() : Hello::kBytes - filled_;
      const ptrdiff_t count =
          socket_.receive(MutableBytes(buffer_).first(std::min(buffer_.size(), wanted)));
      if (count < 0) return give_up(peer_error("went away during its greeting"));
      if (count == 0) return true;
      const Bytes got = Bytes(buffer_).first(static_cast<size_t>(count));
      if (greeting_) {
        greeting_->handle_received(got);
      } else if (!hear_hello(got)) {
        return false;
      }
    }
    crew_.greeter().kick(shared_from_this());
    return true;
  }

  void unwatched(const Error& error) override { refuse(error); }

  // On the thread that serves him, which is the only one that closes his socket.
  void hang_up() override {
    gone_ = true;
    socket_ = Socket();
    crew_.greeter().kick(shared_from_this());
  }

  void dropped() override {
    if (greeting_ && greeting_->complete() && unsent_.empty()) {
      std::optional<Key> secret;
      if (hello_.sealed) secret = greeting_->take_secret();
      threshold_->greeted(hello_, greeting_->peer_name(), std::move(secret), std::move(socket_));
    } else if (joins_) {
      threshold_->joined(hello_, std::move(socket_));
    }
  }

 private:
  // False: he is dropped, or, where he only joins a greeted connection, handed on.
  bool hear_hello(Bytes got) {
    std::copy(got.begin(), got.end(), hello_bytes_.begin() + static_cast<ptrdiff_t>(filled_));
    filled_ += got.size();
    if (filled_ < Hello::kBytes) return true;
    const std::string from = socket_.peer_host();
    const auto whom = Hello::listener_of(hello_bytes_);
    if (!whom || !constant_time_equal(*whom, threshold_->nonce())) {
      SEALANE_LOG(info, "a stranger from %s was dropped", from.c_str());
      return false;
    }
    const auto hello = Hello::parse(hello_bytes_);
    if (!hello) return refuse(Error{hello.error().kind, from + " " + hello.error().message});
    hello_ = *hello;
    crew_.crowd().speaks(this);
    if (hello_.communicator != threshold_->communicator()) {
      return refuse(peer_error(from + " connects for another communicator: the handles of two were "
                                      "exchanged on the way"));
    }
    if (hello_.streams > kStreamsMax || hello_.chunk_bytes == 0 ||
        hello_.chunk_bytes > kChunkBytesMax || hello_.chunk_bytes % 128 != 0) {
      return refuse(peer_error(from + " wants a connection of an impossible shape"));
    }
    if (hello_.stream != 0) {
      joins_ = true;
      return false;
    }
    greeting_.emplace(threshold_->network().credence(), hello_);
    return true;
  }

  bool transmit() {
    const std::vector<uint8_t> more = greeting_->poll_transmit();
    unsent_.insert(unsent_.end(), more.begin(), more.end());
    while (!unsent_.empty()) {
      const ptrdiff_t count = socket_.send(unsent_);
      if (count < 0) return give_up(peer_error("went away during its greeting"));
      if (count == 0) return true;
      unsent_.erase(unsent_.begin(), unsent_.begin() + count);
    }
    return true;
  }

  // A stranger's failure is his own; that of somebody who knew the listener is the job's.
  bool give_up(const Error& error) {
    if (!greeting_) return false;
    const bool named = greeting_->failure().has_value();
    const Error told = named
                           ? *greeting_->failure()
                           : Error{error.kind, concat(greeting_->peer_name(), " ", error.message)};
    return refuse(told);
  }
  bool refuse(const Error& error) {
    threshold_->fail(error);
    return false;
  }

  Socket socket_;
  std::shared_ptr<Threshold> threshold_;
  Network::Crew& crew_;
  bool gone_ = false;
  Instant since_ = SteadyClock().now();
  std::array<uint8_t, Hello::kBytes> hello_bytes_{};
  size_t filled_ = 0;
  Hello hello_;
  bool joins_ = false;
  std::optional<Greeting> greeting_;
  std::vector<uint8_t> unsent_;
  std::array<uint8_t, 4096> buffer_{};
};

class Door final : public Served, public std::enable_shared_from_this<Door> {
 public:
  Door(Socket socket, std::shared_ptr<Threshold> threshold, Network::Crew& crew)
      : socket_(std::move(socket)), threshold_(std::move(threshold)), crew_(crew) {}

  int descriptor() const override { return socket_.descriptor(); }

  // Who finds no room waits in the kernel's queue; the deadline looks again.
  bool serve() override {
    next_look_ = SteadyClock().now() + kDoorPause;
    for (int guests = 0; guests < kGuestsPerTurn; ++guests) {
      if (!crew_.crowd().make_room()) return true;
      auto socket = socket_.accept();
      if (!socket) return true;
      crew_.greeter().add(std::make_shared<Newcomer>(std::move(*socket), threshold_, crew_));
    }
    crew_.greeter().kick(shared_from_this());
    return true;
  }

  std::optional<Instant> deadline() const override { return next_look_; }
  void unwatched(const Error& error) override { threshold_->fail(error); }

 private:
  Socket socket_;
  std::shared_ptr<Threshold> threshold_;
  Network::Crew& crew_;
  Instant next_look_ = SteadyClock().now() + kDoorPause;
};

class DoorHandle final : public Listener {
 public:
  DoorHandle(std::shared_ptr<Network::Crew> crew, std::shared_ptr<Threshold> threshold,
             std::shared_ptr<Door> door)
      : crew_(std::move(crew)), threshold_(std::move(threshold)), door_(std::move(door)) {}
  ~DoorHandle() override { close(); }

  Result<std::shared_ptr<ReceiveEnd>> accept() override {
    if (const auto why = unserved(born_)) return *why;
    return threshold_->take();
  }
  void close() override {
    if (born_.elsewhere() || door_ == nullptr) return;
    crew_->greeter().remove(door_);
    door_.reset();
    threshold_->close();
  }

 private:
  BornHere born_;
  std::shared_ptr<Network::Crew> crew_;
  std::shared_ptr<Threshold> threshold_;
  std::shared_ptr<Door> door_;
};

// ---- Connecting ----

class Reach final : public Served, public std::enable_shared_from_this<Reach> {
 public:
  Reach(std::shared_ptr<Network> network, Network::Crew& crew, const Handle& handle,
        uint64_t communicator, Socket socket)
      : network_(std::move(network)), crew_(crew), handle_(handle), socket_(std::move(socket)) {
    const NetworkOptions& options = network_->options();
    hello_.streams = static_cast<uint8_t>(std::clamp<uint32_t>(options.streams, 1, kStreamsMax));
    hello_.sealed = network_->credence().credentials.has_value();
    hello_.chunk_bytes = options.chunk_bytes;
    hello_.listener = handle.listener;
    hello_.communicator = communicator;
    SystemRandom().fill(hello_.connection);
  }

  int descriptor() const override { return socket_.descriptor(); }
  std::optional<Instant> deadline() const override { return since_ + network_->options().patience; }

  bool serve() override {
    // Not where connect() was called: what it needs of OpenSSL is the worker's to use.
    if (!greeting_) greeting_.emplace(network_->credence(), hello_, handle_.process);
    if (SteadyClock().now() >= *deadline()) return fail(peer_error("did not answer in time"));
    if (const int error = socket_.connect_error(); error != 0) {
      return fail(io_error(
          concat("cannot be reached at ", handle_.address.text(), " port ", handle_.address.port),
          error));
    }
    for (int reads = 0; reads < kReadsPerTurn; ++reads) {
      const std::vector<uint8_t> more = greeting_->poll_transmit();
      unsent_.insert(unsent_.end(), more.begin(), more.end());
      if (!unsent_.empty()) {
        const ptrdiff_t count = socket_.send(unsent_);
        if (count < 0) return fail(peer_error("went away during its greeting"));
        unsent_.erase(unsent_.begin(), unsent_.begin() + count);
      }
      if (greeting_->failure()) {
        settle(*greeting_->failure());
        return false;
      }
      // Who speaks another version has been greeted, and so hears of it, too.
      if (const Status status = handle_.check_version(); !status && unsent_.empty()) {
        return fail(status.error());
      }
      if (greeting_->complete()) return !unsent_.empty();
      const ptrdiff_t count = socket_.receive(
          MutableBytes(buffer_).first(std::min(buffer_.size(), greeting_->wanted())));
      if (count < 0) return fail(peer_error("went away during its greeting"));
      if (count == 0) return true;
      greeting_->handle_received(Bytes(buffer_).first(static_cast<size_t>(count)));
    }
    crew_.greeter().kick(shared_from_this());
    return true;
  }

  void unwatched(const Error& error) override { settle(error); }

  void dropped() override {
    if (!greeting_ || !greeting_->complete()) {
      return settle(peer_error("the attempt was given up"));
    }
    if (auto end = build()) settle(std::move(*end));
  }

  Result<std::shared_ptr<SendEnd>> poll() {
    const std::lock_guard lock(mutex_);
    if (failure_) return *failure_;
    given_ = end_ != nullptr;
    return end_;
  }

  // An end that nobody has taken is closed, so that the other side hears of it.
  void cancel() {
    std::shared_ptr<SendEnd> untaken;
    {
      const std::lock_guard lock(mutex_);
      if (given_) return;
      if (!failure_) failure_ = peer_error("the attempt was given up");
      untaken = std::move(end_);
    }
    if (untaken != nullptr) untaken->close();
  }

 private:
  std::optional<std::shared_ptr<SendEnd>> build() {
    std::optional<Key> secret;
    if (hello_.sealed) secret = greeting_->take_secret();
    const auto key_of = [&](uint8_t stream, bool from_connector) {
      return secret ? std::optional(stream_key(*secret, stream, from_connector)) : std::nullopt;
    };
    auto end = std::make_shared<SendEnd>(greeting_->peer_name(), hello_.chunk_bytes);
    std::vector<std::shared_ptr<SendStream>> streams;
    for (uint8_t i = 0; i < hello_.streams; ++i) {
      std::vector<uint8_t> prefix;
      Socket socket = std::move(socket_);
      if (i != 0) {
        auto another = Socket::connect_tcp(handle_.address.text(), handle_.address.port);
        if (!another) {
          settle(another.error());
          return std::nullopt;
        }
        socket = std::move(*another);
        Hello joining = hello_;
        joining.stream = i;
        joining.process = network_->credence().pairs->self();
        if (secret) joining.pair = join_proof(*secret, i);
        const auto bytes = joining.encode();
        prefix.assign(bytes.begin(), bytes.end());
      }
      streams.push_back(std::make_shared<SendStream>(
          std::move(socket), i, crew_.next(), end, network_->engine(), key_of(i, true),
          key_of(i, false), hello_.chunk_bytes, std::move(prefix)));
    }
    end->attach(streams);
    for (const auto& stream : streams) stream->start();
    return end;
  }

  bool fail(const Error& error) {
    settle(Error{error.kind, concat(greeting_->peer_name(), " ", error.message)});
    return false;
  }
  void settle(const Error& error) {
    const std::lock_guard lock(mutex_);
    if (!failure_ && end_ == nullptr) failure_ = error;
  }
  void settle(std::shared_ptr<SendEnd> end) {
    {
      const std::lock_guard lock(mutex_);
      if (!failure_) end_ = std::exchange(end, nullptr);
    }
    if (end != nullptr) end->close();
  }

  std::shared_ptr<Network> network_;
  Network::Crew& crew_;
  Handle handle_;
  Socket socket_;
  Instant since_ = SteadyClock().now();
  Hello hello_;
  std::optional<Greeting> greeting_;
  std::vector<uint8_t> unsent_;
  std::array<uint8_t, 4096> buffer_{};
  std::mutex mutex_;
  std::shared_ptr<SendEnd> end_;
  bool given_ = false;
  std::optional<Error> failure_;
};

class ReachHandle final : public Attempt {
 public:
  ReachHandle(std::shared_ptr<Network::Crew> crew, std::shared_ptr<Reach> reach)
      : crew_(std::move(crew)), reach_(std::move(reach)) {}
  ~ReachHandle() override { cancel(); }

  Result<std::shared_ptr<SendEnd>> poll() override {
    if (const auto why = unserved(born_)) return *why;
    return reach_->poll();
  }
  void cancel() override {
    if (born_.elsewhere()) return;
    reach_->cancel();
    crew_->greeter().remove(reach_);
  }

 private:
  BornHere born_;
  std::shared_ptr<Network::Crew> crew_;
  std::shared_ptr<Reach> reach_;
};

}  // namespace

Result<std::shared_ptr<Listener>> open_door(std::shared_ptr<Network> network,
                                            std::shared_ptr<Network::Crew> crew,
                                            const Interface& interface, MutableBytes handle,
                                            uint64_t communicator) {
  SEALANE_LET(auto socket, Socket::listen_tcp(interface.address.text(), 0));
  Handle where;
  where.address = interface.address;
  where.address.port = socket.port();
  where.process = network->credence().pairs->self();
  auto threshold = std::make_shared<Threshold>(std::move(network), *crew, communicator);
  where.listener = threshold->nonce();
  where.encode(handle.first(Handle::kBytes));
  auto door = std::make_shared<Door>(std::move(socket), threshold, *crew);
  crew->greeter().add(door);
  return std::shared_ptr<Listener>(
      std::make_shared<DoorHandle>(std::move(crew), std::move(threshold), std::move(door)));
}

Result<std::shared_ptr<Attempt>> knock(std::shared_ptr<Network> network,
                                       std::shared_ptr<Network::Crew> crew, const Handle& handle,
                                       uint64_t communicator) {
  SEALANE_LET(auto socket, Socket::connect_tcp(handle.address.text(), handle.address.port));
  auto reach =
      std::make_shared<Reach>(std::move(network), *crew, handle, communicator, std::move(socket));
  crew->greeter().add(reach);
  return std::shared_ptr<Attempt>(std::make_shared<ReachHandle>(std::move(crew), std::move(reach)));
}

}  // namespace sealane::net
