// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/join.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <map>
#include <thread>

#include "base/check.h"
#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "comm/attest_command.h"
#include "comm/endpoint.h"
#include "comm/key_file.h"
#include "comm/key_ids.h"
#include "comm/rendezvous.h"
#include "comm/wire_plan.h"
#include "transport/mixed_fabric.h"
#include "transport/shm_fabric.h"
#include "transport/tcp_fabric.h"

namespace sealane {
namespace {

constexpr Duration kSlice = std::chrono::milliseconds(20);
constexpr Duration kAbsentLookInterval =
    std::chrono::milliseconds(200);  // at ranks that are missing
constexpr size_t kStrangersMax = 64;
constexpr Duration kStrangerPatience = std::chrono::seconds(2);  // where others wait at the door
constexpr uint8_t kHelloControl = 'C';
constexpr uint8_t kHelloData = 'D';
constexpr size_t kCookieBytes = 32;
// After kHelloData: rank (4), 1 for a broadcast connection, which of them, cookie.
constexpr size_t kDataHelloBytes = 6 + kCookieBytes;
using Cookie = std::array<uint8_t, kCookieBytes>;

uint32_t cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<uint32_t>(CPU_COUNT(&set)) : 1;
}

Error named(uint32_t rank, const Error& error) {
  return {error.kind, concat("rank ", rank, ": ", error.message)};
}

// Plain mode protects nothing, so it needs no secret; the sessions still carry control messages.
Result<Credentials> credentials_for(const JoinOptions& options) {
  if (options.mode == CommMode::sealed) return read_credentials(options);
  const std::array<uint8_t, Key::kBytes> public_key{};
  return Credentials(PresharedKey{*Key::from_bytes(public_key)});
}

class Joiner {
 public:
  explicit Joiner(const JoinOptions& options)
      : options_(options),
        deadline_(SteadyClock().now() + options.timeout),
        peers_(options.self.size) {
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
    Cookie cookie{};  // data connections from this peer must show it
    bool terms_agreed = false;
    bool ready = false;
    std::optional<SharedSegment> outbox;
    Socket bell;  // an eventfd, where some ranks share memory with this one and others do not
    TcpConnections data;
  };

  // A connection whose other end is not known yet.
  struct Stranger {
    Socket socket;
    std::vector<uint8_t> hello;
    std::unique_ptr<ControlLink> link;  // once it has asked for a session
    bool done = false;
    bool same_user = false;  // the kernel says so: who could also stop this process
    Instant since = SteadyClock().now();
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
      if (Status status = body(peer); !status) return status;
    }
    return {};
  }

  Status steps() {
    if (Status status = prepare(); !status) return status;
    if (Status status = meet(); !status) return status;
    if (Status status = connect_sessions(); !status) return status;
    plan();  // before a peer's terms are heard
    if (Status status = check_descriptors(); !status) return status;
    if (Status status = until([&] { return all_sessions(); }, "complete the handshake"); !status) {
      return status;
    }
    // Judged here, where all ranks can still hear of it.
    if (options_.transport == TransportKind::shm && hosts_apart_) {
      return not_one_host();
    }
    if (Status status = offer_wires(); !status) return status;
    if (Status status = until([&] { return all_wires(); }, "set up its wires"); !status) {
      return status;
    }
    const auto say_ready = [&](uint32_t peer) {
      result_.control->send(peer, ControlKind::ready, {});
      return Status();
    };
    if (Status status = for_peers(say_ready); !status) return status;
    if (Status status = until([&] { return all_ready(); }, "get ready"); !status) return status;
    rendezvous_->finish();
    build_fabric();
    if (options_.wrap_fabric) result_.fabric = options_.wrap_fabric(std::move(result_.fabric));
    return {};
  }

  Status prepare() {
    auto credentials = credentials_for(options_);
    if (!credentials) return credentials.error();
    credentials_.emplace(std::move(*credentials));
    if (options_.mode == CommMode::sealed) key_id_ = key_id(*credentials_);
    SystemRandom random;
    result_.broadcast = Key::random(random);
    if (!options_.attest_command.empty() && options_.mode == CommMode::sealed) {
      attestor_ = std::make_unique<AttestCommand>(options_.attest_command);
    }
    for (Peer& peer : peers_) random.fill(peer.cookie);
    return {};
  }

  // ---- 1. Addresses ----

  Status meet() {
    auto listeners = open_listeners(options_.transport != TransportKind::shm);
    if (!listeners) return listeners.error();
    listeners_ = std::move(*listeners);
    if (!options_.host.empty()) listeners_.endpoint.host = options_.host;
    listeners_.endpoint.key_id = key_id_;
    auto rendezvous = make_rendezvous(options_);
    if (!rendezvous) return rendezvous.error();
    rendezvous_ = std::move(*rendezvous);
    auto texts = rendezvous_->exchange(options_.self, listeners_.endpoint.encode(), deadline_);
    if (!texts) return texts.error();
    for (uint32_t peer = 0; peer < size(); ++peer) {
      if (!note_address(peer, (*texts)[peer])) {
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
    for (uint32_t peer = 0; peer < size(); ++peer) {
      if (const auto text = rendezvous_->again(peer)) note_address(peer, *text);
      if (peers_[peer].local) local_ranks_.push_back(peer);
    }
    GroupShape group;
    group.size = size();
    const bool tcp_only = options_.transport == TransportKind::tcp;
    if (!tcp_only) {
      std::map<std::string, uint32_t> ranks_of;
      for (const Peer& peer : peers_) ++ranks_of[peer.endpoint.host];
      for (const auto& [host, ranks] : ranks_of) {
        group.most_on_a_host = std::max(group.most_on_a_host, ranks);
      }
    } else {
      local_ranks_ = {rank()};
      group.most_on_a_host = 1;
    }
    hosts_apart_ = !group.one_host();
    // One connection fills a loopback; between hosts, several take several ways.
    const bool one_machine = local_ranks_.size() == size() || all_on_this_host();
    group.streams = options_.tcp_streams != 0 ? options_.tcp_streams : (one_machine ? 1 : 2);
    streams_ = group.streams;
    plan_ = plan_wires(group, options_.record_bytes);
    result_.payload_bytes = plan_.payload_bytes;
    result_.ring_records = group.one_host()            ? plan_.shm.pair_slots
                           : group.most_on_a_host == 1 ? plan_.tcp.pair_slots
                                                       : plan_.ring_records();
    result_.topology = {group.one_host(), group.most_on_a_host};
  }

  // Said here: later, a connection that finds no descriptor looks like a rank that never came.
  Status check_descriptors() const {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
    std::error_code ignored;
    const std::filesystem::directory_iterator open("/proc/self/fd", ignored);
    auto needed = static_cast<uint64_t>(std::distance(begin(open), end(open)));
    for (uint32_t peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      if (peer > rank()) ++needed;  // its control connection is yet to come
      needed += by_memory(peer) ? (mixed() ? 2 : 1) : 2 * streams_;
    }
    if (needed <= limit.rlim_cur) return {};
    return usage_error(concat("a group of ", size(), " ranks needs ", needed,
                              " open files in this process and ", limit.rlim_cur,
                              " are allowed: raise the limit (ulimit -n)"));
  }

  bool all_on_this_host() const {
    return std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.local; });
  }

  bool by_memory(uint32_t peer) const {
    return peers_[peer].local && options_.transport != TransportKind::tcp;
  }
  bool shares_memory() const { return local_ranks_.size() > 1; }
  bool mixed() const { return shares_memory() && local_ranks_.size() < size(); }

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
      if (Status status = wanted(); !status) return status.error();
      const auto text = rendezvous_->again(peer);
      if (!text) return left(peer);  // it has taken its address back
      if (!note_address(peer, *text)) return named(peer, socket.error());
      if (Status status = nobody_left(); !status) return status.error();
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
      auto socket = reach(peer);
      if (!socket) return socket.error();
      if (socket->send(Bytes(&kHelloControl, 1)) != 1) return left(peer);
      auto session = Session::create(session_setup(peer));
      if (!session) return session.error();
      result_.control->link(peer) =
          std::make_unique<ControlLink>(std::move(*socket), std::move(*session));
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

  bool room() const { return strangers_.size() < kStrangersMax + size(); }

  // Who finds no room waits at the door. To make room, those go who had time to prove themselves.
  void accept_strangers() {
    const auto idle = [now = SteadyClock().now()](const Stranger& stranger) {
      const bool known = stranger.link != nullptr && stranger.link->session().authenticated();
      return !known && now - stranger.since > kStrangerPatience;
    };
    if (!room()) std::erase_if(strangers_, idle);
    for (const Socket* listener : {&listeners_.unix_socket, &listeners_.tcp_socket}) {
      while (listener->valid() && room()) {
        auto socket = listener->accept();
        if (!socket) break;
        const bool local = listener == &listeners_.unix_socket;
        if (local && !socket->peer_is_same_user()) continue;  // closed at once
        strangers_.push_back({std::move(*socket), {}, nullptr, false, local});
      }
    }
  }

  Status hear_strangers() {
    for (Stranger& stranger : strangers_) {
      Status status = stranger.link != nullptr ? hear_session(stranger) : hear_hello(stranger);
      if (!status) return status;
    }
    std::erase_if(strangers_, [](const Stranger& stranger) { return stranger.done; });
    return {};
  }

  Status hear_hello(Stranger& stranger) {
    const size_t wanted =
        stranger.hello.empty() ? 1 : (stranger.hello[0] == kHelloData ? 1 + kDataHelloBytes : 1);
    if (stranger.hello.size() < wanted) {
      std::array<uint8_t, 1 + kDataHelloBytes> piece;
      const MutableBytes room = MutableBytes(piece).first(wanted - stranger.hello.size());
      const ptrdiff_t count = stranger.socket.receive(room);
      if (count < 0) stranger.done = true;
      if (count <= 0) return {};
      stranger.hello.insert(stranger.hello.end(), piece.begin(), piece.begin() + count);
      return hear_hello(stranger);
    }
    if (stranger.hello[0] == kHelloData) return admit_data(stranger);
    if (stranger.hello[0] != kHelloControl) {
      stranger.done = true;
      return {};
    }
    auto session = Session::create(session_setup(std::nullopt));
    if (!session) return session.error();
    stranger.link = std::make_unique<ControlLink>(std::move(stranger.socket), std::move(*session));
    return hear_session(stranger);
  }

  // A connection that fails before it has proved anything is anybody's, whatever rank it claims: it
  // is dropped, and the reason kept for the time-out. One of the group, or of this user on this
  // host, is believed, and its failure ends the join.
  Status hear_session(Stranger& stranger) {
    ControlLink& link = *stranger.link;
    link.pump();
    const auto peer = link.session().peer();
    const bool believed =
        peer && (stranger.same_user || link.session().authenticated() || says_another_key(*peer));
    if (const auto& failure = link.failure()) {
      stranger.done = true;
      if (believed) return named(*peer, *failure);
      refused_ = peer ? named(*peer, *failure).message : failure->message;
      SEALANE_LOG(warn, "a connection was refused: %s", refused_.c_str());
      return {};
    }
    if (link.gone()) stranger.done = true;
    if (!link.session().complete()) {
      if (!link.gone() || !believed) return {};
      return left(*peer);
    }
    stranger.done = true;
    if (result_.control->link(*peer) != nullptr) {
      return crypto_error(concat("rank ", *peer, " joined twice: two processes have its number"));
    }
    result_.control->link(*peer) = std::move(stranger.link);
    return {};
  }

  // At the rendezvous, too: then it is no stranger's attempt.
  bool says_another_key(uint32_t peer) const {
    if (peer >= size()) return false;
    const std::string& key = peers_[peer].endpoint.key_id;
    return !key.empty() && key != key_id_;
  }

  // ---- 3., 4. Terms and wires ----

  std::string terms() const {
    return concat("mode=", to_string(options_.mode), " record=", plan_.payload_bytes,
                  " hosts=", plan_.shm.size, "/", size(), " streams=", streams_,
                  " algorithm=", to_string(options_.algorithm));
  }

  WireShape shm_shape() const {
    WireShape shape = plan_.shm;
    shape.size = static_cast<uint32_t>(local_ranks_.size());
    shape.rank = static_cast<uint32_t>(std::find(local_ranks_.begin(), local_ranks_.end(), rank()) -
                                       local_ranks_.begin());
    return shape;
  }

  Status offer_wires() {
    if (shares_memory()) {
      auto outbox = SharedSegment::create(ShmFabric::outbox_bytes(shm_shape()));
      if (!outbox) return outbox.error();
      peers_[rank()].outbox = std::move(*outbox);
    }
    if (mixed()) {
      peers_[rank()].bell = Socket(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
      if (!peers_[rank()].bell.valid()) return io_error("cannot make an eventfd", errno);
    }
    return for_peers([&](uint32_t peer) -> Status {
      result_.keys[peer] = result_.control->link(peer)->session().take_keys();
      result_.control->send(peer, ControlKind::terms, as_bytes(terms()));
      if (by_memory(peer)) {
        result_.control->send(peer, ControlKind::outbox, {}, peers_[rank()].outbox->descriptor());
        if (mixed()) {
          result_.control->send(peer, ControlKind::bell, {}, peers_[rank()].bell.descriptor());
        }
      } else if (peer > rank()) {
        result_.control->send(peer, ControlKind::cookie, peers_[peer].cookie);
      }
      return {};
    });
  }

  Status open_data(uint32_t peer, Bytes cookie) {
    for (const bool broadcast : {false, true}) {
      for (uint32_t stream = 0; stream < streams_; ++stream) {
        auto socket = connect_to(peers_[peer].endpoint, peers_[peer].local, true, deadline_);
        if (!socket) return named(peer, socket.error());
        std::array<uint8_t, 1 + kDataHelloBytes> hello{};
        hello[0] = kHelloData;
        store_le(&hello[1], rank());
        hello[5] = broadcast ? 1 : 0;
        hello[6] = static_cast<uint8_t>(stream);
        std::copy(cookie.begin(), cookie.end(), hello.begin() + 7);
        if (socket->send(hello) != static_cast<ptrdiff_t>(hello.size())) {
          return peer_error(concat("rank ", peer, " does not take a data connection"));
        }
        *data_place(peer, broadcast, stream) = std::move(*socket);
      }
    }
    return {};
  }

  Socket* data_place(uint32_t peer, bool broadcast, uint32_t stream) {
    TcpConnections& data = peers_[peer].data;
    std::vector<Socket>& sockets = broadcast ? data.broadcast : data.pair;
    if (stream >= streams_) return nullptr;
    sockets.resize(streams_);
    return &sockets[stream];
  }

  Status admit_data(Stranger& stranger) {
    stranger.done = true;
    const uint32_t peer = load_le<uint32_t>(&stranger.hello[1]);
    if (peer <= rank() || peer >= size()) return {};
    const Bytes cookie = Bytes(stranger.hello).subspan(7);
    if (!constant_time_equal(cookie, peers_[peer].cookie)) return {};
    Socket* place = data_place(peer, stranger.hello[5] != 0, stranger.hello[6]);
    if (place != nullptr && !place->valid()) *place = std::move(stranger.socket);
    return {};
  }

  Status hear_peer(uint32_t rank_of_peer) {
    const auto& link = result_.control->link(rank_of_peer);
    if (link == nullptr) return {};
    link->pump();
    if (const auto& failure = link->failure()) return named(rank_of_peer, *failure);
    while (const auto message = link->poll_message()) {
      if (Status status = handle(rank_of_peer, *message); !status) return status;
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
        peer.terms_agreed = text == terms();
        if (peer.terms_agreed) return {};
        return usage_error(concat("rank ", from, " wants ", text, ", this rank ", terms(),
                                  ": give all ranks the same options"));
      case ControlKind::outbox: {
        const auto descriptor = result_.control->link(from)->take_descriptor();
        if (!descriptor) return peer_error(concat("rank ", from, " passed no shared memory"));
        auto segment = SharedSegment::adopt(*descriptor, ShmFabric::outbox_bytes(shm_shape()));
        if (!segment) return named(from, segment.error());
        peer.outbox = std::move(*segment);
        return {};
      }
      case ControlKind::bell: {
        const auto descriptor = result_.control->link(from)->take_descriptor();
        if (!descriptor) return peer_error(concat("rank ", from, " passed no bell"));
        peer.bell = Socket(*descriptor);
        return {};
      }
      case ControlKind::cookie:
        if (payload.size() != kCookieBytes) return peer_error("malformed cookie");
        return open_data(from, payload);
      case ControlKind::ready:
        peer.ready = true;
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
             const Peer& p = peers_[peer];
             const bool wired = by_memory(peer)
                                    ? p.outbox.has_value() && (!mixed() || p.bell.valid())
                                    : connected(p.data.pair) && connected(p.data.broadcast);
             return wired && p.terms_agreed ? Status() : Status(internal_error(""));
           })
        .ok();
  }

  bool connected(const std::vector<Socket>& sockets) const {
    return sockets.size() == streams_ &&
           std::all_of(sockets.begin(), sockets.end(), [](const Socket& s) { return s.valid(); });
  }

  bool all_ready() {
    return for_peers([&](uint32_t peer) {
             return peers_[peer].ready ? Status() : Status(internal_error(""));
           })
        .ok();
  }

  // ---- The loop behind every step ----

  template <typename Condition>
  Status until(Condition condition, const char* what) {
    while (true) {
      accept_strangers();
      if (Status status = hear_strangers(); !status) return status;
      const auto hear = [&](uint32_t peer) { return hear_peer(peer); };
      if (Status status = for_peers(hear); !status) return status;
      if (condition()) return {};
      if (Status status = look_after_missing(); !status) return status;
      if (Status status = wanted(); !status) return status;
      if (SteadyClock().now() > deadline_) return timed_out(what);
      wait_for_sockets(interests(), kSlice);
    }
  }

  // Still, by the program that joins.
  Status wanted() const {
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
      if (listener->valid() && room()) all.push_back({listener->descriptor()});
    }
    for (const Stranger& stranger : strangers_) {
      all.push_back(
          {stranger.link != nullptr ? stranger.link->descriptor() : stranger.socket.descriptor()});
    }
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
    return peer_error(concat("rank ", missing, " did not ", what, " in time",
                             refused_.empty() ? "" : "; a connection was refused: ", refused_));
  }

  void build_fabric() {
    auto shm = shares_memory() ? build_shm() : nullptr;
    auto tcp = local_ranks_.size() < size() ? build_tcp() : nullptr;
    if (tcp == nullptr) {
      result_.fabric = std::move(shm);
    } else if (shm == nullptr) {
      result_.fabric = std::move(tcp);
    } else {
      result_.fabric =
          std::make_unique<MixedFabric>(tcp_shape(), local_ranks_, std::move(shm), std::move(tcp),
                                        std::move(peers_[rank()].bell));
    }
  }

  WireShape tcp_shape() const {
    WireShape shape = plan_.tcp;
    shape.rank = rank();
    return shape;
  }

  std::unique_ptr<ShmFabric> build_shm() {
    std::vector<SharedSegment> outboxes;
    std::vector<Socket> bells;
    for (const uint32_t local : local_ranks_) {
      outboxes.push_back(std::move(*peers_[local].outbox));
      if (mixed() && local != rank()) bells.push_back(std::move(peers_[local].bell));
      if (mixed() && local == rank()) bells.emplace_back();  // nobody wakes himself
    }
    return std::make_unique<ShmFabric>(shm_shape(), std::move(outboxes),
                                       local_ranks_.size() > cores(), std::move(bells));
  }

  std::unique_ptr<TcpFabric> build_tcp() {
    std::vector<TcpConnections> connections(size());
    for (uint32_t peer = 0; peer < size(); ++peer) connections[peer] = std::move(peers_[peer].data);
    return std::make_unique<TcpFabric>(tcp_shape(), std::move(connections));
  }

  const JoinOptions& options_;
  Instant deadline_;
  Membership result_;
  std::vector<Peer> peers_;
  std::vector<Stranger> strangers_;
  std::optional<Credentials> credentials_;
  std::string key_id_;
  std::unique_ptr<Attestor> attestor_;
  Listeners listeners_;
  std::unique_ptr<Rendezvous> rendezvous_;
  std::vector<uint32_t> local_ranks_;  // those that share memory with this one, and itself
  WirePlan plan_;
  uint32_t streams_ = 1;
  bool hosts_apart_ = false;
  std::string refused_;
  Instant next_look_{};
};

}  // namespace

Result<Membership> join(const JoinOptions& options) { return Joiner(options).run(); }

}  // namespace sealane
