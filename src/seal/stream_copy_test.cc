// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "seal/stream_copy.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "base/random.h"

namespace sealane {
namespace {

std::vector<uint8_t> random_bytes(uint64_t seed, size_t size) {
  std::vector<uint8_t> bytes(size);
  SeededRandom(seed).fill(bytes);
  return bytes;
}

// Both buffers have room around the copied part, so that a byte too many shows.
void expect_like_memcpy(const StreamCopyPath& path, size_t size, size_t to_offset,
                        size_t from_offset, uint64_t seed) {
  const std::vector<uint8_t> source = random_bytes(seed, size + from_offset + 64);
  std::vector<uint8_t> expected = random_bytes(seed + 1, size + to_offset + 64);
  std::vector<uint8_t> actual = expected;
  std::copy_n(source.begin() + from_offset, size, expected.begin() + to_offset);
  path.copy(MutableBytes(actual).subspan(to_offset, size),
            Bytes(source).subspan(from_offset, size));
  ASSERT_EQ(actual, expected) << path.name << " size " << size << " to +" << to_offset << " from +"
                              << from_offset;
}

TEST(StreamCopy, EverySmallSizeAtEveryAlignmentOfTheDestination) {
  for (const StreamCopyPath& path : stream_copy_paths()) {
    for (size_t size = 0; size <= 200; ++size) {
      for (size_t to_offset = 0; to_offset < 64; to_offset += 3) {
        expect_like_memcpy(path, size, to_offset, size % 64, size);
      }
    }
  }
}

RC_GTEST_PROP(StreamCopy, CopiesLikeMemcpy, ()) {
  const auto size = *rc::gen::inRange<size_t>(0, 300'000);
  const auto to_offset = *rc::gen::inRange<size_t>(0, 128);
  const auto from_offset = *rc::gen::inRange<size_t>(0, 128);
  const auto seed = *rc::gen::arbitrary<uint64_t>();
  for (const StreamCopyPath& path : stream_copy_paths()) {
    expect_like_memcpy(path, size, to_offset, from_offset, seed);
  }
}

TEST(StreamCopy, TheDefaultCopies) {
  const std::vector<uint8_t> source = random_bytes(5, 10'000);
  std::vector<uint8_t> copy(source.size());
  stream_copy(copy, source);
  EXPECT_EQ(copy, source);
}

TEST(StreamCopy, WhatLeavesTheCachesIsStillThere) {
  const std::vector<uint8_t> source = random_bytes(6, 10'000);
  std::vector<uint8_t> copy = source;
  evict(copy);
  EXPECT_EQ(copy, source);
}

TEST(StreamCopyDeathTest, SizesThatDifferAreABug) {
  std::vector<uint8_t> small(3);
  const std::vector<uint8_t> large(4);
  EXPECT_DEATH(stream_copy(small, large), "sizes differ");
}

}  // namespace
}  // namespace sealane
