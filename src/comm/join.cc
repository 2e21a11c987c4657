// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/join.h"

#include <algorithm>
#include <array>
#include <thread>

#include "base/check.h"
#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "base/try.h"
#include "comm/attest_command.h"
#include "comm/endpoint.h"
#include "comm/exit_hold.h"
#include "comm/key_file.h"
#include "comm/key_ids.h"
#include "comm/rendezvous.h"
#include "comm/strangers.h"
#include "comm/wiring.h"
#include "core/session/sha256.h"

namespace sealane {
namespace {

constexpr Duration kSlice = std::chrono::milliseconds(20);
constexpr Duration kAbsentLookInterval =
    std::chrono::milliseconds(200);  // at ranks that are missing
Error named(uint32_t rank, const Error& error) {
  return {error.kind, concat("rank ", rank, ": ", error.message)};
}

// Plain mode protects nothing, so it needs no secret; the sessions still carry control messages.
Result<Credentials> credentials_for(const JoinOptions& options) {
  if (options.mode == CommMode::sealed) return read_credentials(options);
  const std::array<uint8_t, Key::kBytes> public_key{};
  return Credentials(PresharedKey{*Key::from_bytes(public_key)});
}

class Joiner final : private Strangers::Host {
 public:
  explicit Joiner(const JoinOptions& options)
      : options_(options),
        deadline_(SteadyClock().now() + options.timeout),
        peers_(options.self.size),
        wiring_(options),
        strangers_(*this, options.self.size) {
    result_.control = std::make_unique<Control>(options.self.size);
    result_.keys.resize(options.self.size);
  }

  Result<Membership> run() {
    const Status status = steps();
    if (status) return std::move(result_);
    const Error error = root_cause(status.error());
    result_.control->abort(error.message);
    tell_others(error);
    return error;
  }

 private:
  struct Peer {
    Endpoint endpoint;
    std::string text;  // as it was left at the rendezvous
    bool listened = false;
    bool local = false;
    bool terms_agreed = false;
    bool ready = false;
    std::vector<uint8_t> members;  // by its own account
  };

  uint32_t size() const { return options_.self.size; }
  uint32_t rank() const { return options_.self.rank; }

  // Those without a session cannot hear it by that; they may still be at the rendezvous.
  void tell_others(const Error& error) {
    if (!rendezvous_) return;
    for (uint32_t peer = 0; peer < size(); ++peer) {
      const auto& link = result_.control->link(peer);
      const bool hears = link != nullptr && link->session().complete();
      if (peer == rank() || hears || peers_[peer].text.empty()) continue;
      rendezvous_->tell({options_.self.group, size(), peer}, peers_[peer].text, error.message);
    }
  }

  // What a rank with a wrong key, or one that gave up earlier, set off (comm/key_ids.h).
  Error root_cause(const Error& error) {
    if (!rendezvous_ || error.kind == ErrorKind::usage) return error;
    std::vector<std::string> ids;
    for (uint32_t peer = 0; peer < size(); ++peer) {
      if (const auto text = rendezvous_->again(peer)) note_address(peer, *text);
      ids.push_back(peers_[peer].endpoint.key_id);
    }
    const auto told = rendezvous_->word();
    // Somebody who has left already saw more than is left to see.
    const bool saw_all = std::find(ids.begin(), ids.end(), "") == ids.end();
    const auto culprit = who_has_another_key(ids);
    if (culprit && (saw_all || !told)) return *culprit;
    // What this rank itself found wrong is the cause: others may have given up because of it.
    if (error.kind == ErrorKind::crypto) return error;
    return told ? peer_error(*told) : error;
  }

  template <typename Body>
  Status for_peers(Body body) {
    for (uint32_t peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      SEALANE_TRY(body(peer));
    }
    return {};
  }

  Status steps() {
    SEALANE_TRY(prepare());
    SEALANE_TRY(meet());
    SEALANE_TRY(connect_sessions());
    plan();  // before a peer's terms are heard
    SEALANE_TRY(wiring_.check_descriptors());
    if (Status status = until([&] { return all_sessions(); }, "complete the handshake"); !status) {
      return status;
    }
    // Judged here, where all ranks can still hear of it.
    if (options_.transport == TransportKind::shm && wiring_.hosts_apart()) {
      return not_one_host();
    }
    SEALANE_TRY(offer_wires());
    if (Status status = until([&] { return all_wires(); }, "set up its wires"); !status) {
      return status;
    }
    members_ = digest_of_members();
    const auto say_ready = [&](uint32_t peer) {
      result_.control->send(peer, ControlKind::ready, members_);
      return Status();
    };
    SEALANE_TRY(for_peers(say_ready));
    if (Status status = until([&] { return all_ready(); }, "get ready"); !status) return status;
    if (Status status = check_members(); !status) return status;
    rendezvous_->finish();
    result_.fabric = wiring_.build_fabric();
    if (options_.wrap_fabric) result_.fabric = options_.wrap_fabric(std::move(result_.fabric));
    return {};
  }

  Status prepare() {
    SEALANE_LET(auto credentials, credentials_for(options_));
    credentials_.emplace(std::move(credentials));
    if (options_.mode == CommMode::sealed) key_id_ = key_id(*credentials_);
    SystemRandom random;
    result_.broadcast = Key::random(random);
    if (!options_.attest_command.empty() && options_.mode == CommMode::sealed) {
      attestor_ = std::make_unique<AttestCommand>(options_.attest_command, nullptr, deadline_);
    }
    return {};
  }

  // ---- 1. Addresses ----

  Status meet() {
    SEALANE_LET(listeners_, open_listeners(options_.transport != TransportKind::shm));
    if (!options_.host.empty()) listeners_.endpoint.host = options_.host;
    listeners_.endpoint.key_id = key_id_;
    SEALANE_LET(rendezvous_, make_rendezvous(options_));
    SEALANE_LET(auto texts,
                rendezvous_->exchange(options_.self, listeners_.endpoint.encode(), deadline_));
    for (uint32_t peer = 0; peer < size(); ++peer) {
      if (!note_address(peer, texts[peer])) {
        return peer_error(concat("rank ", peer, " left no address at the rendezvous"));
      }
    }
    // Without a port nobody on another host could hear of it later.
    if (options_.transport != TransportKind::shm || all_on_this_host()) return {};
    rendezvous_->leave_word();
    return not_one_host();
  }

  bool note_address(uint32_t peer, const std::string& text) {
    auto endpoint = Endpoint::decode(text);
    if (!endpoint) return false;
    peers_[peer].endpoint = std::move(*endpoint);
    peers_[peer].text = text;
    peers_[peer].local = peers_[peer].endpoint.host == listeners_.endpoint.host;
    return true;
  }

  static Error not_one_host() {
    return usage_error("shared memory needs all ranks on one host: use --transport tcp or auto");
  }

  // Addresses are looked up again, because some may have been of a crashed job at first.
  void plan() {
    std::vector<Wiring::Place> places;
    for (uint32_t peer = 0; peer < size(); ++peer) {
      if (const auto text = rendezvous_->again(peer)) note_address(peer, *text);
      places.push_back({peers_[peer].endpoint.host, peers_[peer].local});
    }
    wiring_.plan(places);
    result_.payload_bytes = wiring_.payload_bytes();
    result_.ring_records = wiring_.ring_records();
    result_.topology = wiring_.topology();
  }

  bool all_on_this_host() const {
    return std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.local; });
  }

  // ---- 2. Sessions ----

  Session::Setup session_setup(std::optional<uint32_t> peer) {
    return {options_.self, peer, &*credentials_, &*result_.broadcast, attestor_.get()};
  }

  // An address where nobody listens was left by a job that crashed: the rank is yet to come.
  Result<Socket> reach(uint32_t peer) {
    while (true) {
      auto socket = connect_to(peers_[peer].endpoint, peers_[peer].local, false, deadline_);
      if (socket) return socket;
      if (SteadyClock().now() > deadline_) return named(peer, socket.error());
      SEALANE_TRY(wanted());
      const auto text = rendezvous_->again(peer);
      if (!text) return left(peer);  // it has taken its address back
      if (!note_address(peer, *text)) return named(peer, socket.error());
      SEALANE_TRY(nobody_left());
      std::this_thread::sleep_for(kSlice);
    }
  }

  static Error left(uint32_t peer) {
    return peer_error(concat("rank ", peer, " left while joining"));
  }

  // Whoever waits for a rank that was killed must hear when those it has reached give up. Only what
  // tells that is taken from their messages: the rest is not due before all are connected.
  Status nobody_left() {
    return for_peers([&](uint32_t peer) -> Status {
      const auto& link = result_.control->link(peer);
      if (link == nullptr) return {};
      link->pump();
      if (const auto& failure = link->failure()) return named(peer, *failure);
      if (!link->gone()) return {};
      while (const auto message = link->poll_message()) {
        if (!message->empty() && (*message)[0] == static_cast<uint8_t>(ControlKind::abort)) {
          return handle(peer, *message);
        }
      }
      return left(peer);
    });
  }

  Status connect_sessions() {
    for (uint32_t peer = 0; peer < rank(); ++peer) {
      SEALANE_LET(auto socket, reach(peer));
      if (socket.send(Bytes(&Strangers::kControlHello, 1)) != 1) return left(peer);
      SEALANE_LET(auto session, Session::create(session_setup(peer)));
      result_.control->link(peer) =
          std::make_unique<ControlLink>(std::move(socket), std::move(session));
    }
    return {};
  }

  bool all_sessions() {
    return for_peers([&](uint32_t peer) {
             const auto& link = result_.control->link(peer);
             return link != nullptr && link->session().complete() ? Status()
                                                                  : Status(internal_error(""));
           })
        .ok();
  }

  // ---- What strangers ask for ----

  Result<std::unique_ptr<Session>> make_session() override {
    return Session::create(session_setup(std::nullopt));
  }

  Status admit_session(uint32_t peer, std::unique_ptr<ControlLink> link) override {
    if (result_.control->link(peer) != nullptr) {
      return crypto_error(concat("rank ", peer, " joined twice: two processes have its number"));
    }
    result_.control->link(peer) = std::move(link);
    return {};
  }

  void admit_data(Bytes hello, Socket socket) override {
    wiring_.admit_data(hello, std::move(socket));
  }

  bool says_another_key(uint32_t peer) const override {
    if (peer >= size()) return false;
    const std::string& key = peers_[peer].endpoint.key_id;
    return !key.empty() && key != key_id_;
  }

  // ---- 3., 4. Terms and wires ----

  Status offer_wires() {
    SEALANE_TRY(wiring_.prepare_own());
    return for_peers([&](uint32_t peer) -> Status {
      result_.keys[peer] = result_.control->link(peer)->session().take_keys();
      result_.control->send(peer, ControlKind::terms, as_bytes(wiring_.terms()));
      wiring_.offer(*result_.control, peer);
      return {};
    });
  }

  Status hear_peer(uint32_t rank_of_peer) {
    const auto& link = result_.control->link(rank_of_peer);
    if (link == nullptr) return {};
    link->pump();
    if (const auto& failure = link->failure()) return named(rank_of_peer, *failure);
    while (const auto message = link->poll_message()) {
      SEALANE_TRY(handle(rank_of_peer, *message));
    }
    // One that was ready may have got all it wanted and ended.
    if (link->gone() && !peers_[rank_of_peer].ready) return left(rank_of_peer);
    return {};
  }

  Status handle(uint32_t from, const std::vector<uint8_t>& message) {
    if (message.empty()) return peer_error(concat("rank ", from, " sent an empty message"));
    const Bytes payload = Bytes(message).subspan(1);
    const std::string text = printable(as_text(payload), kPeerTextMax);
    Peer& peer = peers_[from];
    switch (static_cast<ControlKind>(message[0])) {
      case ControlKind::terms:
        peer.terms_agreed = text == wiring_.terms();
        if (peer.terms_agreed) return {};
        return usage_error(concat("rank ", from, " wants ", text, ", this rank ", wiring_.terms(),
                                  ": give all ranks the same options"));
      case ControlKind::outbox:
        return wiring_.handle_outbox(from, result_.control->link(from)->take_descriptor());
      case ControlKind::bell:
        return wiring_.handle_bell(from, result_.control->link(from)->take_descriptor());
      case ControlKind::cookie:
        return wiring_.handle_cookie(from, payload, peer.endpoint, deadline_);
      case ControlKind::ready:
        peer.ready = true;
        peer.members.assign(payload.begin(), payload.end());
        return {};
      case ControlKind::call:
        return {};  // of a rank that is further than this one; it says so again
      case ControlKind::abort:
        return peer_error(concat("rank ", from, " gave up: ", text));
    }
    return peer_error(concat("rank ", from, " sent an unknown message"));
  }

  bool all_wires() {
    return for_peers([&](uint32_t peer) {
             return wiring_.wired(peer) && peers_[peer].terms_agreed ? Status()
                                                                     : Status(internal_error(""));
           })
        .ok();
  }

  bool all_ready() {
    return for_peers([&](uint32_t peer) {
             return peers_[peer].ready ? Status() : Status(internal_error(""));
           })
        .ok();
  }

  // ---- 5. One group ----

  // Sessions prove what two ranks are to each other. Whoever leads connections astray could still
  // give one rank another process for rank 2 than the others have, of another job with this name
  // and key: so all compare whom they have met. A process is known by its broadcast secret, which
  // it made for this join and tells nobody but those it has met.
  Sha256::Digest digest_of_members() const {
    Sha256 hash;
    hash.add(as_bytes("sealane members 1"));
    for (uint32_t peer = 0; peer < size(); ++peer) {
      hash.add((peer == rank() ? *result_.broadcast : result_.keys[peer]->peer_broadcast).secret());
    }
    return hash.digest();
  }

  Status check_members() {
    return for_peers([&](uint32_t peer) -> Status {
      if (constant_time_equal(peers_[peer].members, members_)) return {};
      return crypto_error(concat("rank ", peer,
                                 " has met other processes than this rank: is there another job "
                                 "with this group name and key, or did somebody redirect "
                                 "connections?"));
    });
  }

  // ---- The loop behind every step ----

  template <typename Condition>
  Status until(Condition condition, const char* what) {
    while (true) {
      // Asked first: a rank that is wanted no longer because it has left had said all before.
      Status still_wanted = wanted();
      strangers_.accept(listeners_);
      SEALANE_TRY(strangers_.hear());
      const auto hear = [&](uint32_t peer) { return hear_peer(peer); };
      SEALANE_TRY(for_peers(hear));
      if (condition()) return {};
      if (!still_wanted) return still_wanted;
      SEALANE_TRY(look_after_missing());
      if (SteadyClock().now() > deadline_) return timed_out(what);
      wait_for_sockets(interests(), kSlice);
    }
  }

  // Still, by the program that joins.
  Status wanted() const {
    if (process_exits()) return exiting_error();
    return options_.given_up && options_.given_up() ? given_up_error() : Status();
  }

  // A rank that was killed before it said a word cannot be told from a stranger that hung up; but
  // nobody listens at its address any more. One that never did is yet to come (see reach()).
  Status look_after_missing() {
    if (SteadyClock().now() < next_look_) return {};
    next_look_ = SteadyClock().now() + kAbsentLookInterval;
    if (const auto told = rendezvous_->word()) return peer_error(*told);
    return for_peers([&](uint32_t peer) -> Status {
      Peer& one = peers_[peer];
      if (result_.control->link(peer) != nullptr || !one.local) return {};
      const bool listens = Socket::connect_unix(one.endpoint.unix_name).ok();
      if (!listens && one.listened) return left(peer);
      one.listened = listens;
      return {};
    });
  }

  std::vector<Interest> interests() {
    std::vector<Interest> all;
    for (const Socket* listener : {&listeners_.unix_socket, &listeners_.tcp_socket}) {
      if (listener->valid() && strangers_.room()) all.push_back({listener->descriptor()});
    }
    strangers_.add_interests(all);
    for (uint32_t peer = 0; peer < size(); ++peer) {
      const auto& link = result_.control->link(peer);
      if (link != nullptr) all.push_back({link->descriptor(), link->unsent()});
    }
    return all;
  }

  Error timed_out(const char* what) {
    uint32_t missing = 0;
    for (uint32_t peer = 0; peer < size(); ++peer) {
      const auto& link = result_.control->link(peer);
      const bool joined = link != nullptr && link->session().complete();
      if (peer != rank() && (!joined || !peers_[peer].ready)) missing = peer;
    }
    return peer_error(concat(
        "rank ", missing, " did not ", what, " in time",
        strangers_.refused().empty() ? "" : "; a connection was refused: ", strangers_.refused()));
  }

  const JoinOptions& options_;
  Instant deadline_;
  Membership result_;
  std::vector<Peer> peers_;
  std::optional<Credentials> credentials_;
  std::string key_id_;
  std::unique_ptr<Attestor> attestor_;
  Listeners listeners_;
  std::unique_ptr<Rendezvous> rendezvous_;
  Wiring wiring_;
  Strangers strangers_;
  Sha256::Digest members_{};
  Instant next_look_{};
};

}  // namespace

Result<Membership> join(const JoinOptions& options) { return Joiner(options).run(); }

}  // namespace sealane
