// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The authenticated channel between two ranks: TLS 1.3 (OpenSSL through memory buffers), by
// pre-shared key with a Diffie-Hellman exchange (the group's, or the pair's own) or by mutual
// certificates.
//
//   0. hello    versions, claims and random numbers in the clear (hello.h): the pre-shared key of
//               this session is derived from the group's and both hellos, so that what OpenSSL
//               keeps of it is of no use elsewhere
//   1. TLS      the lower rank is the server
//   2. identity each side names its group, size and rank inside, and checks the other's
//   3. evidence each side sends attestation evidence bound to the session, and checks the other's
//   4. secret   whoever passed gets this rank's broadcast secret; the pair's own come from the
//               TLS exporter, and one by which the two can join other groups (PairKeys)
//   5. messages small control messages, until the end
//
// Use: handle_received() with what arrives, then send poll_transmit() until it is empty; complete()
// tells when keys may be taken. The first failure() is final, but what poll_transmit() still
// returns should be sent: it tells the peer. Pure, not synchronised; allocates.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "core/session/hello.h"
#include "core/session/identity.h"
#include "seal/key.h"

namespace sealane {

class TlsEnd;

// Lane secrets of one pair, for KeyChain.
struct SessionKeys {
  Key send;            // this rank to the peer
  Key receive;         // the peer to this rank
  Key peer_broadcast;  // the peer to everybody
  Key pair;            // of these two ranks, for other groups that they join together
};

// The key one session proves membership with; the hellos are as they were sent.
Key psk_of_session(const Key& group, Bytes client_hello, Bytes server_hello);

class Session {
 public:
  struct Setup {
    Identity self;
    std::optional<uint32_t> peer;  // known if this side connected; a server learns it
    // All three are used until the session is complete() or has failed, and not after.
    const Credentials* credentials = nullptr;  // not null
    const Key* broadcast = nullptr;            // not null
    Attestor* attestor = nullptr;              // null: no evidence is sent, any is refused
  };

  // The rank with the higher number connects, the other accepts. A usage error if the credentials
  // cannot be used.
  static Result<std::unique_ptr<Session>> create(const Setup& setup);

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  void handle_received(Bytes bytes);
  std::vector<uint8_t> poll_transmit();

  bool complete() const { return complete_ && !failure_; }
  // The peer has proved to hold the group's key or a certificate, and that what it says of itself
  // is from it; what fails from then on is not some stranger's doing.
  bool authenticated() const { return tls_done_; }
  const std::optional<Error>& failure() const { return failure_; }
  // Known once it was claimed in a well-formed way, true once authenticated() as far as that goes.
  std::optional<uint32_t> peer() const { return peer_; }

  SessionKeys take_keys();  // once, when complete()

  // At most 1 MiB. Does nothing once there is a failure().
  void send_message(Bytes message);
  std::optional<std::vector<uint8_t>> poll_message();

 private:
  enum class Frame : uint8_t { identity = 1, evidence, secret, message };

  Session(const Setup& setup, std::unique_ptr<TlsEnd> tls);

  void advance();
  Status greet();
  Result<const Key*> preshared_with(uint32_t rank) const;
  Status step();
  Status read_frames();
  Status begin();  // TLS is done: identity and evidence go out
  Status handle_frame(Frame type, Bytes payload);
  Status handle_identity(Bytes payload);
  Status handle_evidence(Bytes payload);
  Status handle_secret(Bytes payload);
  Status write_frame(Frame type, Bytes payload);
  Key export_key(std::string_view label, uint32_t from, uint32_t to) const;
  bool is_server() const { return !setup_.peer.has_value(); }

  Setup setup_;
  std::unique_ptr<TlsEnd> tls_;
  std::vector<uint8_t> own_hello_;
  bool hello_sent_ = false;
  std::vector<uint8_t> incoming_;  // until the peer's hello is whole
  std::optional<Hello> peer_hello_;
  std::optional<uint32_t> peer_;
  std::optional<Key> peer_broadcast_;
  std::optional<Error> failure_;
  std::vector<uint8_t> plaintext_;  // of frames that are not whole yet
  std::vector<std::vector<uint8_t>> messages_;
  bool tls_done_ = false;
  bool identity_checked_ = false;
  bool evidence_checked_ = false;
  bool complete_ = false;
};

}  // namespace sealane
