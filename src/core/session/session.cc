// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/session/session.h"

#include <openssl/rand.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "core/session/key_chain.h"
#include "core/session/tls.h"

namespace sealane {
namespace {

constexpr size_t kFrameHeaderBytes = 5;  // length, type
constexpr size_t kFrameBytesMax = 1_MiB;
constexpr std::string_view kLaneLabel = "EXPORTER-sealane-lane";
constexpr std::string_view kPairLabel = "EXPORTER-sealane-pair";
constexpr std::string_view kAttestLabel = "EXPORTER-sealane-attest";

std::vector<uint8_t> encode(const Identity& identity) {
  std::vector<uint8_t> out(9 + identity.group.size());
  out[0] = kProtocolVersion;
  store_le(&out[1], identity.size);
  store_le(&out[5], identity.rank);
  std::copy(identity.group.begin(), identity.group.end(), out.begin() + 9);
  return out;
}

std::optional<Identity> decode(Bytes bytes) {
  if (bytes.size() < 9 || bytes.size() > 9 + kGroupNameMax || bytes[0] != kProtocolVersion) {
    return std::nullopt;
  }
  Identity identity;
  identity.size = load_le<uint32_t>(&bytes[1]);
  identity.rank = load_le<uint32_t>(&bytes[5]);
  identity.group.assign(bytes.begin() + 9, bytes.end());
  return identity;
}

Hello::Proof proof_of(const Credentials& credentials) {
  return std::holds_alternative<Certificates>(credentials) ? Hello::Proof::certificate
                                                           : Hello::Proof::key;
}

}  // namespace

Key psk_of_session(const Key& group, Bytes client_hello, Bytes server_hello) {
  std::array<uint8_t, Key::kBytes> derived;
  hkdf_expand(group.secret(),
              concat("sealane psk 2 ", as_text(client_hello), as_text(server_hello)), derived);
  Key key = *Key::from_bytes(derived);
  wipe(derived);
  return key;
}

Result<std::unique_ptr<Session>> Session::create(const Setup& setup) {
  if (Status status = check_identity(setup.self); !status) return status.error();
  SEALANE_CHECK(setup.credentials != nullptr && setup.broadcast != nullptr, "incomplete set-up");
  SEALANE_CHECK(!setup.peer || *setup.peer < setup.self.rank, "the higher rank connects");
  const auto role = setup.peer ? TlsEnd::Role::client : TlsEnd::Role::server;
  auto tls = TlsEnd::create(role, *setup.credentials);
  if (!tls) return tls.error();
  return std::unique_ptr<Session>(new Session(setup, std::move(*tls)));
}

Session::Session(const Setup& setup, std::unique_ptr<TlsEnd> tls)
    : setup_(setup), tls_(std::move(tls)), peer_(setup.peer) {
  Hello hello;
  SEALANE_CHECK(RAND_bytes(hello.nonce.data(), static_cast<int>(hello.nonce.size())) == 1,
                "OpenSSL has no random numbers");
  hello.claimed = setup.self;
  hello.proof = proof_of(*setup.credentials);
  own_hello_ = hello.encode();
}

Session::~Session() { wipe(plaintext_); }

void Session::handle_received(Bytes bytes) {
  if (failure_) return;
  if (peer_hello_) {
    tls_->handle_received(bytes);
  } else {
    incoming_.insert(incoming_.end(), bytes.begin(), bytes.end());
  }
  advance();
}

std::vector<uint8_t> Session::poll_transmit() {
  std::vector<uint8_t> out;
  if (!std::exchange(hello_sent_, true)) out = own_hello_;
  const std::vector<uint8_t> more = tls_->poll_transmit();
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

void Session::advance() {
  if (Status status = step(); !status) failure_ = status.error();
}

// The peer's hello, if it is here. What it claims is only used to name it until it has proved it.
Status Session::greet() {
  const auto length = Hello::length(incoming_);
  if (!length) return length.error();
  if (!*length) return {};
  const Bytes theirs = Bytes(incoming_).first(**length);
  auto hello = Hello::decode(theirs);
  if (!hello) return hello.error();
  const uint32_t rank = hello->claimed.rank;
  if (rank == setup_.self.rank || (setup_.peer && rank != *setup_.peer)) {
    return crypto_error(concat("the peer claims to be rank ", rank));
  }
  if (is_server() && rank > setup_.self.rank && rank < kRanksMax) peer_ = rank;
  const auto key = preshared_with(rank);
  if (!key) return key.error();
  if (*key != nullptr) {
    const Bytes own = own_hello_;
    tls_->use_session_key(
        psk_of_session(**key, is_server() ? theirs : own, is_server() ? own : theirs));
  }
  tls_->handle_received(Bytes(incoming_).subspan(**length));
  incoming_ = {};
  peer_hello_ = std::move(*hello);
  return {};
}

// What that rank must have to be it; null with certificates, which prove it later.
Result<const Key*> Session::preshared_with(uint32_t rank) const {
  if (const auto* group = std::get_if<PresharedKey>(setup_.credentials)) return &group->key;
  const auto* pairs = std::get_if<PairKeys>(setup_.credentials);
  if (pairs == nullptr) return nullptr;
  if (rank < pairs->by_rank.size() && pairs->by_rank[rank]) return &*pairs->by_rank[rank];
  return crypto_error(
      concat("the peer claims to be rank ", rank, ", which shares no secret with this rank"));
}

Status Session::step() {
  if (!peer_hello_) {
    if (Status status = greet(); !status || !peer_hello_) return status;
  }
  if (!tls_done_) {
    auto done = tls_->handshake();
    if (!done && peer_hello_->proof != proof_of(*setup_.credentials)) {
      return crypto_error(
          "one of the two ranks has a pre-shared key and the other a certificate: give all ranks "
          "the same kind");
    }
    if (!done) return done.error();
    if (!*done) return {};
    tls_done_ = true;
    if (Status status = begin(); !status) return status;
  }
  Status read = tls_->read(plaintext_);
  // What arrived before the end still counts: a last message says why.
  if (Status status = read_frames(); !status) return status;
  return read;
}

Status Session::begin() {
  if (Status status = write_frame(Frame::identity, encode(setup_.self)); !status) return status;
  std::vector<uint8_t> evidence;
  if (setup_.attestor != nullptr) {
    const Key binding = export_key(kAttestLabel, setup_.self.rank, setup_.self.rank);
    auto produced = setup_.attestor->produce(binding.secret());
    if (!produced) return produced.error();
    evidence = std::move(*produced);
  }
  if (evidence.size() > kFrameBytesMax) return usage_error("attestation evidence above 1 MiB");
  return write_frame(Frame::evidence, evidence);
}

Status Session::read_frames() {
  size_t at = 0;
  Status status;
  while (status && plaintext_.size() - at >= kFrameHeaderBytes) {
    const size_t length = load_le<uint32_t>(&plaintext_[at]);
    if (length > kFrameBytesMax) {
      status = peer_error("the peer sent a message longer than the protocol allows");
      break;
    }
    if (plaintext_.size() - at - kFrameHeaderBytes < length) break;
    const auto type = static_cast<Frame>(plaintext_[at + 4]);
    status = handle_frame(type, Bytes(plaintext_).subspan(at + kFrameHeaderBytes, length));
    at += kFrameHeaderBytes + length;
  }
  const Bytes rest = Bytes(plaintext_).subspan(at);
  std::ranges::copy(rest, plaintext_.begin());
  wipe(MutableBytes(plaintext_).subspan(rest.size()));  // also where the rest was
  plaintext_.resize(rest.size());
  return status;
}

Status Session::handle_frame(Frame type, Bytes payload) {
  switch (type) {
    case Frame::identity:
      return handle_identity(payload);
    case Frame::evidence:
      return handle_evidence(payload);
    case Frame::secret:
      return handle_secret(payload);
    case Frame::message:
      if (!complete_) return peer_error("the peer sent a message before it was admitted");
      messages_.emplace_back(payload.begin(), payload.end());
      return {};
  }
  return peer_error("the peer sent a message of an unknown kind");
}

Status Session::handle_identity(Bytes payload) {
  const auto identity = decode(payload);
  if (!identity || identity_checked_) return peer_error("the peer's identity is malformed");
  if (identity->group != setup_.self.group || identity->size != setup_.self.size) {
    return crypto_error(concat("the peer is of group '", printable(identity->group, kGroupNameMax),
                               "' with ", identity->size, " ranks, this rank of '",
                               setup_.self.group, "' with ", setup_.self.size));
  }
  // What was claimed before counts from here on.
  const bool fits = peer_ && identity->rank == *peer_ && identity->rank < identity->size;
  if (!fits) return crypto_error(concat("the peer claims to be rank ", identity->rank));
  if (std::holds_alternative<Certificates>(*setup_.credentials) &&
      !tls_->peer_has_uri(identity->uri())) {
    return crypto_error(concat("the peer claims to be rank ", identity->rank,
                               " but its certificate does not carry ", identity->uri()));
  }
  peer_ = identity->rank;
  identity_checked_ = true;
  return {};
}

Status Session::handle_evidence(Bytes payload) {
  if (!identity_checked_ || evidence_checked_) return peer_error("unexpected evidence");
  if (setup_.attestor != nullptr) {
    const Key binding = export_key(kAttestLabel, *peer_, *peer_);
    const Status accepted = setup_.attestor->check(*peer_, binding.secret(), payload);
    if (!accepted) {
      return crypto_error(
          concat("attestation of rank ", *peer_, " refused: ", accepted.error().message));
    }
  } else if (!payload.empty()) {
    return crypto_error(concat("rank ", *peer_,
                               " sent attestation evidence and this rank has nobody to check it: "
                               "set SEALANE_ATTEST_CMD on every rank or on none"));
  }
  evidence_checked_ = true;
  return write_frame(Frame::secret, setup_.broadcast->secret());
}

Status Session::handle_secret(Bytes payload) {
  if (!evidence_checked_ || peer_broadcast_) return peer_error("unexpected broadcast secret");
  auto key = Key::from_bytes(payload);
  if (!key) return peer_error("the peer's broadcast secret is malformed");
  peer_broadcast_ = std::move(*key);
  complete_ = true;
  setup_.credentials = nullptr;
  setup_.broadcast = nullptr;
  setup_.attestor = nullptr;
  return {};
}

Status Session::write_frame(Frame type, Bytes payload) {
  std::vector<uint8_t> frame(kFrameHeaderBytes + payload.size());
  store_le(frame.data(), static_cast<uint32_t>(payload.size()));
  frame[4] = static_cast<uint8_t>(type);
  std::copy(payload.begin(), payload.end(), frame.begin() + kFrameHeaderBytes);
  Status status = tls_->write(frame);
  wipe(frame);
  return status;
}

Key Session::export_key(std::string_view label, uint32_t from, uint32_t to) const {
  Identity scope = setup_.self;
  scope.rank = from;
  std::vector<uint8_t> context = encode(scope);
  context.resize(context.size() + 4);
  store_le(context.data() + context.size() - 4, to);
  std::array<uint8_t, Key::kBytes> out;
  tls_->export_secret(label, context, out);
  Key key = *Key::from_bytes(out);
  wipe(out);
  return key;
}

SessionKeys Session::take_keys() {
  SEALANE_CHECK(complete() && peer_broadcast_, "keys taken before the session was complete");
  SessionKeys keys{export_key(kLaneLabel, setup_.self.rank, *peer_),
                   export_key(kLaneLabel, *peer_, setup_.self.rank), std::move(*peer_broadcast_),
                   export_key(kPairLabel, std::min(setup_.self.rank, *peer_),
                              std::max(setup_.self.rank, *peer_))};
  peer_broadcast_.reset();
  tls_->forget_exporter();  // whoever had it would have all of them
  return keys;
}

void Session::send_message(Bytes message) {
  SEALANE_CHECK(complete_, "message before the session was complete");
  SEALANE_CHECK(message.size() <= kFrameBytesMax, "message too long");
  if (failure_) return;
  if (Status status = write_frame(Frame::message, message); !status) failure_ = status.error();
}

std::optional<std::vector<uint8_t>> Session::poll_message() {
  if (messages_.empty()) return std::nullopt;
  std::vector<uint8_t> message = std::move(messages_.front());
  messages_.erase(messages_.begin());
  return message;
}

}  // namespace sealane
