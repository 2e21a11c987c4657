// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One authenticated connection to every other rank, open for the life of the group. It carries the
// handshake, then small messages; its end tells that a rank is gone, and a failure of its session
// that somebody tampers with it. Text of a peer is cut and cleaned before anybody sees it. One
// thread at a time.
//
// A fork() while a thread is at a connection would give the child half-changed sessions that it
// could not end, and with them the secrets that OpenSSL has of them: hold_still() waits until
// nobody is. Nothing that is done to a connection waits.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/session/session.h"
#include "transport/socket.h"

namespace sealane {

constexpr size_t kPeerTextMax = 256;  // characters of a peer's that are shown

class ControlLink {
 public:
  ControlLink(Socket socket, std::unique_ptr<Session> session)
      : socket_(std::move(socket)), session_(std::move(session)) {}
  ControlLink(ControlLink&&) = default;
  ~ControlLink();

  // Receives and sends whatever is possible without waiting.
  void pump();
  // `pass_descriptor` stays open until it has gone out.
  void send(Bytes message, int pass_descriptor = -1);
  std::optional<std::vector<uint8_t>> poll_message() { return session_->poll_message(); }

  std::optional<int> take_descriptor();  // one that the peer passed, if any

  Session& session() { return *session_; }
  // Why this link is of no use any more: its session failed, or the peer broke the protocol.
  const std::optional<Error>& failure() const { return failure_ ? failure_ : session_->failure(); }
  bool gone() const { return gone_; }
  bool unsent() const { return !unsent_.empty(); }
  int descriptor() const { return socket_.descriptor(); }

 private:
  void transmit();
  void refuse_descriptors();
  void close_passed();

  Socket socket_;
  std::unique_ptr<Session> session_;
  std::vector<uint8_t> unsent_;
  std::vector<int> to_pass_;
  std::vector<int> passed_;  // and not taken yet
  size_t taken_ = 0;
  std::optional<Error> failure_;
  bool gone_ = false;
};

// First byte of a control message.
enum class ControlKind : uint8_t {
  terms = 't',   // what both sides must agree on, as text
  outbox = 'o',  // a descriptor of shared memory comes along
  bell = 'b',    // a descriptor of an eventfd comes along
  cookie = 'c',  // what data connections must show
  ready = 'r',   // everything is in place; a digest of whom the sender has met
  abort = 'a',   // why the sender gave up
  call = 'k',    // the call the sender waits in for this rank
};

class Control {
 public:
  explicit Control(uint32_t size) : links_(size), calls_(size) {}

  std::unique_ptr<ControlLink>& link(uint32_t rank) { return links_[rank]; }
  void send(uint32_t rank, ControlKind type, Bytes payload, int pass_descriptor = -1);

  // Around a fork(): no connection is in the middle of something until go_on().
  void hold_still() { mutex_.lock(); }
  void go_on() { mutex_.unlock(); }
  // In a child, while they hold still: nothing is left of them.
  void forget_links() { links_.clear(); }

  // Tells everybody once; later calls do nothing. A long reason is cut.
  void abort(const std::string& reason);

  // Looks at all connections; what is left afterwards are aborts and ranks that are gone.
  void pump();
  // The latest call that a rank said it waits in, each once.
  std::optional<std::vector<uint8_t>> take_call(uint32_t rank);
  // The first abort that was heard or link that was tampered with, naming the rank.
  const std::optional<Error>& aborted() const { return aborted_; }
  bool gone(uint32_t rank) const { return links_[rank] != nullptr && links_[rank]->gone(); }

 private:
  void send_locked(uint32_t rank, ControlKind type, Bytes payload, int pass_descriptor);

  std::mutex mutex_;                                 // held while a connection is used
  std::vector<std::unique_ptr<ControlLink>> links_;  // none for the own rank
  std::vector<std::optional<std::vector<uint8_t>>> calls_;
  std::optional<Error> aborted_;
  bool told_ = false;
};

}  // namespace sealane
