// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// What ranks find where they meet, which anybody may have written: addresses, names of files, what
// a guest says first. Nothing crashes, and what is accepted is what could have been written by a
// rank.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/text.h"
#include "comm/endpoint.h"
#include "comm/meeting_places.h"

using namespace sealane;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);

  if (const auto endpoint = Endpoint::decode(input)) {
    const std::string text = endpoint->encode();
    const auto again = Endpoint::decode(text);
    SEALANE_CHECK(again && again->encode() == text, "an address changed on its way");
  }
  if (const auto found = identity_in_name(input)) {
    SEALANE_CHECK(check_identity(*found).ok(), "a name of nobody was accepted");
  }
  std::string text = input;
  if (const auto guest = take_identity(text, 1)) {
    SEALANE_CHECK(check_identity(*guest).ok(), "a guest that is nobody was accepted");
    SEALANE_CHECK(input.ends_with("\n" + text), "a guest's words were changed");
  } else {
    SEALANE_CHECK(text == input, "words of nobody were taken");
  }
  return 0;
}
