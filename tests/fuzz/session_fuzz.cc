// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// What a session is sent. By a stranger: a greeting and TLS records; nothing crashes, and nobody
// without the key is admitted. By somebody who has the key (the first byte is odd): frames inside
// TLS, in two pieces; he is admitted only as the rank he proved to be, and heard only after that.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "core/session/session.h"
#include "core/session/tls.h"  // what is inside of a session, to be a peer that says anything

using namespace sealane;

namespace {

constexpr uint32_t kGuest = 1;

Key key_of(uint8_t byte) {
  std::array<uint8_t, Key::kBytes> bytes;
  bytes.fill(byte);
  return *Key::from_bytes(bytes);
}

const Credentials& credentials() {
  static const Credentials one(PresharedKey{key_of(9)});
  return one;
}

std::unique_ptr<Session> host() {
  static const Key broadcast = key_of(3);
  auto made = Session::create({{"fuzz", 2, 0}, std::nullopt, &credentials(), &broadcast, nullptr});
  SEALANE_CHECK(made.ok(), "no session");
  return std::move(*made);
}

void be_a_stranger(Bytes input) {
  const auto session = host();
  session->handle_received(input);
  static_cast<void>(session->poll_transmit());
  SEALANE_CHECK(!session->authenticated() && !session->complete(), "a stranger was admitted");

  if (const auto hello = Hello::decode(input)) {
    const auto encoded = hello->encode();
    SEALANE_CHECK(std::equal(encoded.begin(), encoded.end(), input.begin(), input.end()),
                  "two encodings of one greeting");
  }
}

// The other end of the session, up to where frames may be sent.
std::unique_ptr<TlsEnd> shake_hands(Session& session) {
  Hello hello;
  hello.claimed = {"fuzz", 2, kGuest};
  const std::vector<uint8_t> own = hello.encode();
  auto made = TlsEnd::create(TlsEnd::Role::client, credentials());
  SEALANE_CHECK(made.ok(), "no TLS");
  TlsEnd& tls = **made;
  tls.use_session_key(psk_of_session(key_of(9), own, session.poll_transmit()));
  session.handle_received(own);
  for (bool done = false; !done;) {
    const auto state = tls.handshake();
    SEALANE_CHECK(state.ok() && !session.failure(), "the handshake failed");
    done = *state;
    session.handle_received(tls.poll_transmit());
    tls.handle_received(session.poll_transmit());
  }
  return std::move(*made);
}

void be_a_member(Bytes frames, size_t cut) {
  const auto session = host();
  const auto tls = shake_hands(*session);
  SEALANE_CHECK(session->authenticated() && !session->complete(), "admitted without a word");
  for (const Bytes piece : {frames.first(cut), frames.subspan(cut)}) {
    if (piece.empty() || !tls->write(piece)) continue;
    session->handle_received(tls->poll_transmit());
  }
  if (session->complete()) {
    SEALANE_CHECK(session->peer() == kGuest, "admitted as another rank");
    while (session->poll_message()) continue;
    static_cast<void>(session->take_keys());
  } else {
    SEALANE_CHECK(session->failure() || !session->poll_message(), "heard before it was admitted");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes input(data, size);
  if (size < 2 || data[0] % 2 == 0) {
    be_a_stranger(size == 0 ? input : input.subspan(1));
  } else {
    be_a_member(input.subspan(2), data[1] % (size - 1));
  }
  return 0;
}
