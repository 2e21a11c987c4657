// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// A connection's clear parts and its greeting, written by a stranger: nothing crashes, and nobody
// without the key completes a greeting, on either side.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "net/greeting.h"

namespace sealane::net {
namespace {

Credence& credence() {
  static Pairs pairs;
  static Credence one = [] {
    Credence made;
    std::array<uint8_t, Key::kBytes> bytes;
    bytes.fill(9);
    made.credentials = Credentials(PresharedKey{*Key::from_bytes(bytes)});
    made.pairs = &pairs;
    return made;
  }();
  return one;
}

}  // namespace
}  // namespace sealane::net

using namespace sealane;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes input(data, size);
  static_cast<void>(net::Handle::parse(input).ok());

  if (const auto hello = net::Hello::parse(input); hello && hello->stream == 0) {
    net::Greeting accepting(net::credence(), *hello);
    accepting.handle_received(input.subspan(net::Hello::kBytes));
    SEALANE_CHECK(!accepting.complete(), "a stranger was accepted");
  }
  net::Greeting connecting(net::credence(), net::Hello{}, net::ProcessId{1});
  connecting.handle_received(input);
  SEALANE_CHECK(!connecting.complete(), "a stranger was connected to");
  return 0;
}
