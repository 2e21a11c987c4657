// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/strangers.h"

#include <array>

#include "base/log.h"
#include "base/text.h"
#include "base/try.h"
#include "comm/wiring.h"

namespace sealane {
namespace {

constexpr size_t kStrangersMax = 64;
constexpr Duration kPatience = std::chrono::seconds(2);  // where others wait at the door

}  // namespace

bool Strangers::room() const { return all_.size() < kStrangersMax + ranks_; }

// Who finds no room waits at the door.
void Strangers::accept(const Listeners& listeners) {
  const auto idle = [now = SteadyClock().now()](const Stranger& stranger) {
    const bool known = stranger.link != nullptr && stranger.link->session().authenticated();
    return !known && now - stranger.since > kPatience;
  };
  if (!room()) std::erase_if(all_, idle);
  for (const Socket* listener : {&listeners.unix_socket, &listeners.tcp_socket}) {
    while (listener->valid() && room()) {
      auto socket = listener->accept();
      if (!socket) break;
      const bool local = listener == &listeners.unix_socket;
      if (local && !socket->peer_is_same_user()) continue;  // closed at once
      all_.push_back({std::move(*socket), {}, nullptr, false, local});
    }
  }
}

Status Strangers::hear() {
  for (Stranger& stranger : all_) {
    SEALANE_TRY(stranger.link != nullptr ? hear_session(stranger) : hear_hello(stranger));
  }
  std::erase_if(all_, [](const Stranger& stranger) { return stranger.done; });
  return {};
}

Status Strangers::hear_hello(Stranger& stranger) {
  const bool brings_data = !stranger.hello.empty() && stranger.hello[0] == Wiring::kDataHello;
  const size_t wanted = brings_data ? Wiring::kDataHelloBytes : 1;
  if (stranger.hello.size() < wanted) {
    std::array<uint8_t, Wiring::kDataHelloBytes> piece;
    const MutableBytes room = MutableBytes(piece).first(wanted - stranger.hello.size());
    const ptrdiff_t count = stranger.socket.receive(room);
    if (count < 0) stranger.done = true;
    if (count <= 0) return {};
    stranger.hello.insert(stranger.hello.end(), piece.begin(), piece.begin() + count);
    return hear_hello(stranger);
  }
  if (stranger.hello[0] != kControlHello) {
    stranger.done = true;
    if (brings_data) host_.admit_data(stranger.hello, std::move(stranger.socket));
    return {};
  }
  SEALANE_LET(auto session, host_.make_session());
  stranger.link = std::make_unique<ControlLink>(std::move(stranger.socket), std::move(session));
  return hear_session(stranger);
}

Status Strangers::hear_session(Stranger& stranger) {
  ControlLink& link = *stranger.link;
  link.pump();
  const auto peer = link.session().peer();
  const bool believed = peer && (stranger.same_user || link.session().authenticated() ||
                                 host_.says_another_key(*peer));
  const auto named = [&](const Error& error) {
    return Error{error.kind, concat("rank ", *peer, ": ", error.message)};
  };
  if (const auto& failure = link.failure()) {
    stranger.done = true;
    if (believed) return named(*failure);
    refused_ = peer ? named(*failure).message : failure->message;
    SEALANE_LOG(warn, "a connection was refused: %s", refused_.c_str());
    return {};
  }
  if (link.gone()) stranger.done = true;
  if (!link.session().complete()) {
    if (!link.gone() || !believed) return {};
    return peer_error(concat("rank ", *peer, " left while joining"));
  }
  stranger.done = true;
  return host_.admit_session(*peer, std::move(stranger.link));
}

void Strangers::add_interests(std::vector<Interest>& to) const {
  for (const Stranger& stranger : all_) {
    to.push_back(
        {stranger.link != nullptr ? stranger.link->descriptor() : stranger.socket.descriptor()});
  }
}

}  // namespace sealane
