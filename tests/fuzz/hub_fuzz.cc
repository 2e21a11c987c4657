// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// What answers in the place of the guest's data hub: nothing crashes, and only a body of an answer
// that says so is looked at for a key.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "comm/key_file.h"
#include "comm/key_source.h"

using namespace sealane;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view answer(reinterpret_cast<const char*>(data), size);
  const auto body = body_of(answer, "kbs:///default/sealane/key");
  if (body) {
    SEALANE_CHECK(answer.starts_with("HTTP/1.") && answer.substr(9, 3) == "200",
                  "a refusal was taken for an answer");
    SEALANE_CHECK(answer.ends_with(*body), "a body that is not of the answer");
  }
  static_cast<void>(parse_key(body ? *body : answer, "what was fuzzed").ok());
  return 0;
}
