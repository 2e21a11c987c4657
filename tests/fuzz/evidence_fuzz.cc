// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Evidence of a peer: nothing crashes, and of what a rank has presented nothing can be changed but
// the evidence itself, which is for the user's command to judge.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "core/session/attested_key.h"

using namespace sealane;

namespace {

constexpr std::array<uint8_t, 32> kSession{7};

const std::vector<uint8_t>& genuine() {
  static const std::vector<uint8_t> presented = [] {
    SeededRandom random(1);
    const std::array<uint8_t, 64> evidence{1, 2, 3};
    return AttestedKey::random(random).present(kSession, evidence);
  }();
  return presented;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes input(data, size);
  if (const auto read = read_presented(kSession, input)) {
    SEALANE_CHECK(read->evidence.data() == data + kPresentedExtraBytes &&
                      read->evidence.size() == size - kPresentedExtraBytes,
                  "evidence that is not all of what was sent");
  }

  std::vector<uint8_t> changed = genuine();
  for (size_t i = 0; i < std::min(size, changed.size()); ++i) changed[i] ^= data[i];
  const bool same_proof =
      std::equal(changed.begin(), changed.begin() + kPresentedExtraBytes, genuine().begin());
  SEALANE_CHECK(read_presented(kSession, changed).ok() == same_proof,
                "a changed proof was accepted, or a whole one refused");
  return 0;
}
