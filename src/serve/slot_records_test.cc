// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Where does the hash of a record that was sealed ahead wait?

#include "serve/slot_records.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/random.h"
#include "seal/find_in_memory_for_tests.h"

namespace sealane::serve {
namespace {

using Raw = std::array<uint8_t, Key::kBytes>;

// With the ciphertext, which the driver puts where anybody may read it, it gives the hash's key.
TEST(SlotRecords, TheHashOfARecordWaitsAmongKeysAndGoesWithIt) {
  if (!kMemoryIsSearchable) GTEST_SKIP() << "a sanitizer's memory is too large to search";
  SystemRandom random;
  Raw raw;
  random.fill(raw);
  SlotRecords::Order order;
  order.schedule = SplitGcm::make(raw);
  wipe(raw);
  if (order.schedule == nullptr) GTEST_SKIP() << "no loop of our own here";
  std::vector<uint8_t> source(200'000);
  random.fill(source);
  order.host = {reinterpret_cast<uint64_t>(source.data()), source.size()};
  std::vector<uint8_t> same(source.size());
  GcmHash hash = order.schedule->seal_part(order.iv, 0, source.data(), same.data(), same.size());
  Needle needle({reinterpret_cast<const uint8_t*>(&hash), sizeof hash});
  wipe_hashes({&hash, 1});

  WorkerPool pool(0);
  SlotRecords records(pool, 1_MiB, nullptr);
  ASSERT_EQ(records.seal(order, records[3]), Speculator::Sealed::whole);
  EXPECT_EQ(places_among_secrets(needle), 1);
  records.drop(3, true);
  EXPECT_EQ(needle.places(), "");
}

}  // namespace
}  // namespace sealane::serve
