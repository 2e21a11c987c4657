// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// A page as another process may have written it: a head that is taken holds text that ends, and an
// answer that fits behind it.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "watch/attach_page.h"

using namespace sealane;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Without the first words nothing would ever be taken.
  std::array<uint8_t, sizeof(serve::AttachHead)> bytes{};
  const bool helped = size > 0 && data[0] % 2 == 0;
  if (size > 0) std::memcpy(bytes.data(), data, size < bytes.size() ? size : bytes.size());
  if (helped) {
    std::memcpy(bytes.data(), serve::AttachHead::kMagic.data(), serve::AttachHead::kMagic.size());
    const uint32_t version = serve::AttachHead::kVersion;
    std::memcpy(bytes.data() + offsetof(serve::AttachHead, version), &version, sizeof version);
  }
  for (const size_t length : {size < bytes.size() ? size : bytes.size(), bytes.size()}) {
    const auto head = serve::parse_attach_head(std::span(bytes).first(length));
    if (!head) continue;
    SEALANE_CHECK(length == sizeof(serve::AttachHead), "a head that is not whole");
    SEALANE_CHECK(std::strlen(head->presence.data()) < head->presence.size(), "text that ends");
    SEALANE_CHECK(head->bytes <= serve::kAttachAnswerBytesMax, "an answer that fits");
  }
  return 0;
}
