// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How a TCP connection becomes a sealed one, without I/O. Both ends run the same object.
//
//   connecting                                 accepting
//   1. Hello                ───────────────▶   for which listener, who, which shared secret
//   2.                      ◀───────────────   Answer: that secret is known, or it is not
//   3. Session              ◀──────────────▶   only then: TLS 1.3, identity, evidence
//   (core/session)
//   4. confirm              ◀──────────────▶   both prove the connection's key
//
// The connection's key comes from the shared secret and *all bytes of 1 to 3*, those included that
// TLS does not authenticate: whoever changed one of them cannot confirm. Within a job the lower
// rank is the session's server, whoever connected; processes without ranks take theirs from the
// order of their process ids. A secret is kept with the rank that was proved in its session and
// resumes for no other.
//
// Use: handle_received() with what arrives, send poll_transmit(), until complete() or failure().
// What poll_transmit() still gives after a failure should be sent: it tells the other side why.
// Fails for good: wrong key, wrong rank, refused evidence, malformed bytes; failure() says it in
// one line that names the peer. Pure, not synchronised, allocates.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/session/session.h"
#include "core/session/sha256.h"
#include "net/pairs.h"
#include "net/wire.h"

namespace sealane::net {

// What this process proves itself with. Lives longer than every greeting.
struct Credence {
  std::string group = "nccl";
  std::optional<JobRank> job;
  std::optional<Credentials> credentials;  // none: nothing is sealed (measuring only)
  Attestor* attestor = nullptr;
  Pairs* pairs = nullptr;
};

class Greeting {
 public:
  // Connecting. `hello` has everything but the pair.
  Greeting(const Credence& credence, Hello hello, const ProcessId& peer);
  // Accepting: `hello` has arrived and is for a listener of this process.
  Greeting(const Credence& credence, const Hello& hello);
  ~Greeting();

  // How many bytes to read next, and no more: what comes behind the greeting is not its own.
  size_t wanted() const;
  void handle_received(Bytes bytes);
  std::vector<uint8_t> poll_transmit();

  bool complete() const { return complete_ && !failure_; }
  const std::optional<Error>& failure() const { return failure_; }
  // For messages: "rank 3", or "process 1f03ab…" where there are no ranks.
  std::string peer_name() const;
  bool resumed() const { return resumed_; }  // without a session of its own

  Key take_secret();  // once, when complete(): the connection's

 private:
  enum class Step { answer, session, confirm, done };

  Status handle(const Frame& frame);
  Status handle_answer(Bytes payload);
  Status handle_confirm(Bytes payload);
  Status use_pair(Key secret);  // derives the connection's key and confirms
  Status start_session();
  Status run_session(Bytes payload);
  void fail(const Error& error);
  std::array<uint8_t, 32> proof(bool of_connector) const;

  const Credence& credence_;
  bool connecting_;
  Hello hello_;
  Answer answer_;
  ProcessId peer_{};
  std::optional<JobRank> peer_job_;
  Step step_;
  bool complete_ = false;
  bool resumed_ = false;
  std::unique_ptr<Session> session_;
  Sha256 session_sent_;
  Sha256 session_received_;
  std::optional<Key> unused_broadcast_;  // a session wants one; pairs have no use for it
  std::optional<Key> shared_;  // of a new session: kept for later connections once confirmed
  std::optional<Key> secret_;
  size_t heard_bytes_ = 0;
  std::vector<uint8_t> received_;
  std::vector<uint8_t> transmit_;
  std::optional<Error> failure_;
};

// The key of one stream of a connection, in one direction.
Key stream_key(const Key& connection, uint8_t stream, bool from_connector);

// What a stream that joins a connection carries in its Hello, in the pair's place: only who has the
// connection's key can say it.
PairId join_proof(const Key& connection, uint8_t stream);

}  // namespace sealane::net
