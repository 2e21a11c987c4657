// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "mini_llm/schedule.h"

#include <bit>

#include "support/random.h"

namespace examples {

std::vector<int32_t> make_prompt(const Settings& settings, const Shape& shape, size_t request,
                                 size_t tokens) {
  Random random(settings.seed * 1000003 + request);
  std::vector<int32_t> prompt(tokens);
  for (int32_t& token : prompt) token = static_cast<int32_t>(random.below(shape.vocabulary));
  return prompt;
}

std::string hash_of(const std::vector<Generation>& generations) {
  Hash hash;
  for (const Generation& generation : generations) {
    for (const Choice& choice : generation.choices) {
      hash.add(static_cast<uint64_t>(choice.token));
      hash.add(std::bit_cast<uint32_t>(choice.logit));
    }
  }
  return hash.text();
}

}  // namespace examples
