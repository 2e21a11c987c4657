// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Record headers and whole records from a hostile bus: nothing crashes, and what is accepted is
// canonical.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "core/lane/lane.h"
#include "seal/engine.h"
#include "seal/record.h"

using namespace sealane;

namespace {

LaneSecret secret() {
  SeededRandom random(1);
  LaneSecret made;
  made.aead = (*chosen_engine())->make(Key::random(random));
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes input(data, size);
  const auto header = RecordHeader::parse(input);
  if (header) {
    const auto encoded = header->encode();
    SEALANE_CHECK(std::equal(encoded.begin(), encoded.end(), input.begin()),
                  "two encodings of one header");
  }

  // Nobody without the key makes a record that opens.
  ReceiveLane lane(0, secret());
  std::vector<uint8_t> out(4096);
  SEALANE_CHECK(!lane.open(input, out).ok(), "a forged record was opened");
  return 0;
}
