// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "net/greeting.h"

#include <algorithm>

#include "base/check.h"
#include "base/random.h"
#include "base/text.h"
#include "base/try.h"
#include "core/session/key_chain.h"

namespace sealane::net {
namespace {

constexpr size_t kRefusalMax = 200;

// A session with the largest evidence fits twice.
constexpr size_t kGreetingBytesMax = 4 << 20;

Key derive(const Key& from, std::string_view label, Bytes context = {}) {
  std::string info(label);
  info.append(as_text(context));
  std::array<uint8_t, Key::kBytes> bytes;
  hkdf_expand(from.secret(), info, bytes);
  Key key = *Key::from_bytes(bytes);
  wipe(bytes);
  return key;
}

std::string short_name(const ProcessId& id) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "process ";
  for (size_t i = 0; i < 4; ++i) {
    out += kDigits[id[i] >> 4];
    out += kDigits[id[i] & 15];
  }
  return out;
}

}  // namespace

Key stream_key(const Key& connection, uint8_t stream, bool from_connector) {
  const std::array<uint8_t, 2> which = {stream, static_cast<uint8_t>(from_connector ? 1 : 2)};
  return derive(connection, "sealane net stream", which);
}

PairId join_proof(const Key& connection, uint8_t stream) {
  PairId proof;
  hkdf_expand(connection.secret(), concat("sealane net join ", stream), proof);
  return proof;
}

Greeting::Greeting(const Credence& credence, Hello hello, const ProcessId& peer)
    : credence_(credence), connecting_(true), hello_(hello), peer_(peer), step_(Step::answer) {
  hello_.process = credence_.pairs->self();
  hello_.job = credence_.job;
  hello_.pair = credence_.pairs->with(peer).value_or(PairId{});
  const auto bytes = hello_.encode();
  transmit_.assign(bytes.begin(), bytes.end());
}

Greeting::Greeting(const Credence& credence, const Hello& hello)
    : credence_(credence),
      connecting_(false),
      hello_(hello),
      peer_(hello.process),
      peer_job_(hello.job),
      step_(Step::session) {
  SystemRandom().fill(answer_.nonce);
  answer_.process = credence_.pairs->self();
  answer_.job = credence_.job;
  auto secret = credence_.pairs->find(hello_.pair, peer_, peer_job_);
  answer_.resume = secret.has_value() || !hello_.sealed;
  append_frame(transmit_, FrameKind::answer, answer_.encode());
  Status status;
  if (hello_.sealed != credence_.credentials.has_value()) {
    status = usage_error("one side seals and the other does not");
  } else if (!hello_.sealed) {
    status = use_pair(*Key::from_bytes(std::array<uint8_t, Key::kBytes>{}));
  } else {
    status = secret ? use_pair(std::move(*secret)) : start_session();
  }
  if (!status) fail(status.error());
}

Greeting::~Greeting() = default;

std::string Greeting::peer_name() const {
  return peer_job_ ? concat("rank ", peer_job_->rank) : short_name(peer_);
}

std::vector<uint8_t> Greeting::poll_transmit() { return std::exchange(transmit_, {}); }

void Greeting::fail(const Error& error) {
  if (failure_) return;
  append_frame(transmit_, FrameKind::refusal,
               as_bytes(std::string_view(error.message).substr(0, kRefusalMax)));
  failure_ = Error{error.kind, concat(peer_name(), ": ", error.message)};
}

size_t Greeting::wanted() const {
  if (received_.size() < kFrameHeadBytes) return kFrameHeadBytes - received_.size();
  const size_t length = std::min<size_t>(load_le<uint32_t>(received_.data()), kFramePayloadMax);
  return kFrameHeadBytes + length - received_.size();
}

void Greeting::handle_received(Bytes bytes) {
  heard_bytes_ += bytes.size();
  if (heard_bytes_ > kGreetingBytesMax) {
    return fail(peer_error("sends more than a greeting can be"));
  }
  received_.insert(received_.end(), bytes.begin(), bytes.end());
  while (!failure_ && !complete_) {
    auto frame = take_frame(received_);
    if (!frame) return fail(frame.error());
    if (!*frame) return;
    if (Status status = handle(**frame); !status) return fail(status.error());
  }
}

Status Greeting::handle(const Frame& frame) {
  if (frame.kind == FrameKind::refusal) {
    const Error told = peer_error(
        concat("refused the connection: ", printable(as_text(frame.payload), kRefusalMax)));
    failure_ = Error{told.kind, concat(peer_name(), " ", told.message)};
    return {};
  }
  if (frame.kind == FrameKind::answer && step_ == Step::answer) return handle_answer(frame.payload);
  if (frame.kind == FrameKind::session && step_ == Step::session) return run_session(frame.payload);
  // The other side may confirm before the last piece of the session has been looked at here, not
  // the reverse: its proof waits for the same step.
  if (frame.kind == FrameKind::confirm && step_ == Step::confirm) {
    return handle_confirm(frame.payload);
  }
  return peer_error("sent parts of a greeting out of order");
}

Status Greeting::handle_answer(Bytes payload) {
  SEALANE_LET(answer_, Answer::parse(payload));
  peer_job_ = answer_.job;
  if (answer_.process != peer_) {
    return peer_error("another process than the handle names has answered");
  }
  if (!hello_.sealed) return use_pair(*Key::from_bytes(std::array<uint8_t, Key::kBytes>{}));
  if (!answer_.resume) return start_session();
  auto secret = credence_.pairs->find(hello_.pair, peer_, peer_job_);
  if (!secret) return peer_error("claims a shared secret that this process does not have");
  resumed_ = true;
  return use_pair(std::move(*secret));
}

Status Greeting::start_session() {
  step_ = Step::session;
  Identity self{credence_.group, 2, credence_.pairs->self() < peer_ ? 0U : 1U};
  std::optional<uint32_t> server;
  if (credence_.job && peer_job_) {
    if (credence_.job->size != peer_job_->size) {
      return usage_error(concat("is of a job of ", peer_job_->size, " ranks, this process of ",
                                credence_.job->size));
    }
    if (credence_.job->rank == peer_job_->rank) {
      return usage_error(concat("two processes say that they are rank ", peer_job_->rank));
    }
    self.size = credence_.job->size;
    self.rank = credence_.job->rank;
    if (peer_job_->rank < self.rank) server = peer_job_->rank;
  } else {
    if (std::holds_alternative<Certificates>(*credence_.credentials)) {
      return usage_error(
          "certificates name ranks, and not both sides have one: set RANK and "
          "WORLD_SIZE, or use a key file");
    }
    if (self.rank == 1) server = 0;
  }
  SystemRandom random;
  unused_broadcast_ = Key::random(random);
  SEALANE_LET(session_, Session::create({self, server, &*credence_.credentials, &*unused_broadcast_,
                                         credence_.attestor}));
  return run_session({});
}

Status Greeting::run_session(Bytes payload) {
  session_received_.add(payload);
  if (!payload.empty()) session_->handle_received(payload);
  const std::vector<uint8_t> out = session_->poll_transmit();
  session_sent_.add(out);
  for (size_t at = 0; at < out.size(); at += kFramePayloadMax) {
    const size_t length = std::min(out.size() - at, kFramePayloadMax);
    append_frame(transmit_, FrameKind::session, Bytes(out).subspan(at, length));
  }
  if (session_->failure()) return *session_->failure();
  if (!session_->complete()) return {};
  SessionKeys keys = session_->take_keys();
  // One secret for the pair: that of the lower process's direction.
  const bool lower = credence_.pairs->self() < peer_;
  Key secret = lower ? std::move(keys.send) : std::move(keys.receive);
  shared_ = secret.duplicate();
  session_.reset();
  return use_pair(std::move(secret));
}

Status Greeting::use_pair(Key secret) {
  const auto hello = hello_.encode();
  const auto answer = answer_.encode();
  std::vector<uint8_t> transcript(hello.begin(), hello.end());
  transcript.insert(transcript.end(), answer.begin(), answer.end());
  // Nothing of the session is under way any more: a piece that came later would be out of order.
  for (const bool of_connector : {true, false}) {
    const auto digest = (of_connector == connecting_ ? session_sent_ : session_received_).digest();
    transcript.insert(transcript.end(), digest.begin(), digest.end());
  }
  secret_ = derive(secret, "sealane net connection", transcript);
  append_frame(transmit_, FrameKind::confirm, proof(connecting_));
  step_ = Step::confirm;
  return {};
}

std::array<uint8_t, 32> Greeting::proof(bool of_connector) const {
  std::array<uint8_t, 32> out;
  hkdf_expand(secret_->secret(), of_connector ? "sealane net confirm 1" : "sealane net confirm 2",
              out);
  return out;
}

Status Greeting::handle_confirm(Bytes payload) {
  if (!constant_time_equal(payload, proof(!connecting_))) {
    return crypto_error("does not know the connection's key: somebody changed the greeting");
  }
  // Not before: until now whose process this is was only said.
  if (shared_) credence_.pairs->add(peer_, peer_job_, std::move(*shared_));
  shared_.reset();
  step_ = Step::done;
  complete_ = true;
  return {};
}

Key Greeting::take_secret() {
  SEALANE_CHECK(complete() && secret_, "secret taken before the greeting was complete");
  Key key = std::move(*secret_);
  secret_.reset();
  return key;
}

}  // namespace sealane::net
