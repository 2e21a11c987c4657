// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Is a header what was written, and is anything else refused?

#include "seal/record.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace sealane {
namespace {

RecordHeader any_header() {
  RecordHeader header;
  header.length = *rc::gen::inRange<uint32_t>(0, kRecordPayloadBytesMax + 1);
  header.lane = *rc::gen::arbitrary<uint32_t>();
  header.epoch = *rc::gen::arbitrary<uint32_t>();
  header.position = *rc::gen::arbitrary<uint64_t>();
  header.communicator = *rc::gen::arbitrary<uint32_t>();
  header.operation = *rc::gen::arbitrary<uint64_t>();
  header.phase = *rc::gen::arbitrary<uint8_t>();
  header.type = static_cast<ElementType>(*rc::gen::inRange(0, 128));
  header.op = static_cast<ReduceOperator>(*rc::gen::inRange(0, 9));
  header.chunk = *rc::gen::arbitrary<uint32_t>();
  header.origin = *rc::gen::arbitrary<uint32_t>();
  header.collective = *rc::gen::arbitrary<uint8_t>();
  header.root = *rc::gen::arbitrary<uint16_t>();
  header.call_bytes = *rc::gen::arbitrary<uint64_t>();
  return header;
}

RC_GTEST_PROP(RecordHeaderProperty, SurvivesTheWire, ()) {
  const RecordHeader header = any_header();
  const auto parsed = RecordHeader::parse(header.encode());
  RC_ASSERT(parsed.ok());
  RC_ASSERT(*parsed == header);
}

// Whatever parses is exactly one header: no two byte strings mean the same, so the additional data
// that is authenticated is the header that was on the wire.
RC_GTEST_PROP(RecordHeaderProperty, EveryAcceptedEncodingIsCanonical, ()) {
  auto bytes = any_header().encode();
  bytes[*rc::gen::inRange<size_t>(0, bytes.size())] ^= *rc::gen::inRange<uint8_t>(1, 255);
  const auto parsed = RecordHeader::parse(bytes);
  if (parsed) RC_ASSERT(parsed->encode() == bytes);
}

TEST(RecordHeader, RefusesWhatIsNotAHeader) {
  const auto good = RecordHeader{}.encode();
  const auto refused = [&](size_t at, uint8_t value) {
    auto bytes = good;
    bytes[at] = value;
    const auto parsed = RecordHeader::parse(bytes);
    return !parsed.ok() && parsed.error().kind == ErrorKind::crypto;
  };
  EXPECT_TRUE(RecordHeader::parse(good).ok());
  EXPECT_TRUE(refused(0, 0)) << "first byte";
  EXPECT_TRUE(refused(1, 1)) << "version";
  EXPECT_TRUE(refused(7, 2)) << "length above 16 MiB";
  EXPECT_TRUE(refused(41, 128)) << "element type";
  EXPECT_TRUE(refused(42, 9)) << "operator";
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(RecordHeader::parse(Bytes(good).first(size)).ok());
  }
}

}  // namespace
}  // namespace sealane
