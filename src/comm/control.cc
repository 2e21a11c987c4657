// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/control.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace sealane {
namespace {

constexpr size_t kDescriptorsDue = 2;  // in the life of a link: an outbox and a bell

}  // namespace

ControlLink::~ControlLink() { close_passed(); }

// Nothing is read any more of a session that has failed: who floods it would not let go of us.
void ControlLink::pump() {
  std::array<uint8_t, 16_KiB> piece;
  while (!gone_ && !failure()) {
    const ptrdiff_t count = socket_.receive(piece, &passed_);
    if (taken_ + passed_.size() > kDescriptorsDue) return refuse_descriptors();
    if (count == 0) break;
    if (count < 0) {
      gone_ = true;
      break;
    }
    session_->handle_received(Bytes(piece).first(static_cast<size_t>(count)));
  }
  transmit();
}

// Nobody can fill this process's table of descriptors by sending some.
void ControlLink::refuse_descriptors() {
  failure_ = peer_error(concat("passed ", taken_ + passed_.size(),
                               " descriptors where the protocol has at most ", kDescriptorsDue));
  close_passed();
  gone_ = true;
}

void ControlLink::close_passed() {
  for (const int descriptor : passed_) close(descriptor);
  passed_.clear();
}

void ControlLink::send(Bytes message, int pass_descriptor) {
  session_->send_message(message);
  if (pass_descriptor >= 0) to_pass_.push_back(pass_descriptor);
  transmit();
}

// A descriptor goes with the first bytes that find room, so never after its message; while several
// wait, each with one byte.
void ControlLink::transmit() {
  const std::vector<uint8_t> more = session_->poll_transmit();
  unsent_.insert(unsent_.end(), more.begin(), more.end());
  while (!gone_ && !unsent_.empty()) {
    const Bytes next = Bytes(unsent_).first(to_pass_.size() > 1 ? 1 : unsent_.size());
    const ptrdiff_t count = socket_.send(next, to_pass_.empty() ? -1 : to_pass_.front());
    if (count < 0) gone_ = true;
    if (count <= 0) break;
    if (!to_pass_.empty()) to_pass_.erase(to_pass_.begin());
    unsent_.erase(unsent_.begin(), unsent_.begin() + count);
  }
}

std::optional<int> ControlLink::take_descriptor() {
  if (passed_.empty()) return std::nullopt;
  const int descriptor = passed_.front();
  passed_.erase(passed_.begin());
  ++taken_;
  return descriptor;
}

void Control::send(uint32_t rank, ControlKind type, Bytes payload, int pass_descriptor) {
  const std::lock_guard lock(mutex_);
  send_locked(rank, type, payload, pass_descriptor);
}

void Control::send_locked(uint32_t rank, ControlKind type, Bytes payload, int pass_descriptor) {
  std::vector<uint8_t> message(1 + payload.size());
  message[0] = static_cast<uint8_t>(type);
  std::copy(payload.begin(), payload.end(), message.begin() + 1);
  links_[rank]->send(message, pass_descriptor);
}

void Control::abort(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(told_, true)) return;
  for (uint32_t rank = 0; rank < links_.size(); ++rank) {
    const auto& link = links_[rank];
    if (link == nullptr || link->gone() || !link->session().complete()) continue;
    send_locked(rank, ControlKind::abort,
                as_bytes(std::string_view(reason).substr(0, kPeerTextMax)), -1);
  }
}

std::optional<std::vector<uint8_t>> Control::take_call(uint32_t rank) {
  return std::exchange(calls_[rank], std::nullopt);
}

void Control::pump() {
  const std::lock_guard lock(mutex_);
  for (uint32_t rank = 0; rank < links_.size(); ++rank) {
    ControlLink* link = links_[rank].get();
    if (link == nullptr) continue;
    link->pump();
    while (const auto message = link->poll_message()) {
      if (!message->empty() && (*message)[0] == static_cast<uint8_t>(ControlKind::call)) {
        calls_[rank].emplace(message->begin() + 1, message->end());
      }
      const bool abort =
          !message->empty() && (*message)[0] == static_cast<uint8_t>(ControlKind::abort);
      if (!abort || aborted_) continue;
      const std::string reason = printable(as_text(Bytes(*message).subspan(1)), kPeerTextMax);
      aborted_ = peer_error(concat("rank ", rank, " gave up: ", reason));
    }
    const auto& failure = link->failure();
    if (failure && !aborted_) {
      aborted_ =
          Error{failure->kind, concat("rank ", rank, ", control connection: ", failure->message)};
    }
  }
}

}  // namespace sealane
