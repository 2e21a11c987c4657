// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "kv_swap/blocks.h"

#include <cstring>
#include <unordered_map>

#include "support/fail.h"
#include "support/report.h"

namespace examples {

std::string Blocks::check() const {
  struct Expected {
    uint32_t tokens = 0;
    std::vector<uint32_t> digest;
  };
  std::unordered_map<uint32_t, Expected> owners;
  Hash hash;
  for (size_t i = 0; i < readings_.size(); ++i) {
    Expected& expected = owners[readings_[i].owner];
    expected.digest.resize(settings_.token_words);
    for (; expected.tokens < readings_[i].tokens; ++expected.tokens) {
      for (uint32_t word = 0; word < token_words(); ++word) {
        expected.digest[word] =
            expected.digest[word] * 31 + kv_word(readings_[i].owner, expected.tokens, word);
      }
    }
    const uint32_t* const found = digests_.data() + i * settings_.token_words;
    if (std::memcmp(found, expected.digest.data(), digest_.bytes()) != 0) {
      fail("reading %zu: the KV cache is wrong", i);
    }
    hash.add(found[i % settings_.token_words]);
  }
  return hash.text();
}

}  // namespace examples
