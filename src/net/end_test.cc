// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Does a receiving end add chunks up to messages, and refuse those that do not fit together? The
// streams are there and carry nothing: what they would report is said here.

#include "net/end.h"

#include <gtest/gtest.h>

#include "net/stream.h"

namespace sealane::net {
namespace {

constexpr uint32_t kChunk = 128;

class Chunks : public ::testing::Test {
 protected:
  Chunks() {
    auto listener = Socket::listen_tcp("127.0.0.1", 0);
    auto socket = Socket::connect_tcp("127.0.0.1", listener->port());
    end_->attach({std::make_shared<ReceiveStream>(std::move(*socket), uint8_t{0}, *worker_, end_,
                                                  nullptr, std::nullopt, std::nullopt, kChunk)});
    request_ = *end_->receive(memory_.data(), memory_.size());
  }
  ~Chunks() override { end_->close(); }

  std::optional<size_t> done() { return *end_->test(*request_); }

  std::unique_ptr<Worker> worker_ = std::move(*Worker::start("test"));
  std::shared_ptr<ReceiveEnd> end_ = std::make_shared<ReceiveEnd>("somebody", kChunk);
  std::vector<uint8_t> memory_ = std::vector<uint8_t>(4 * kChunk);
  Request* request_ = nullptr;
};

TEST_F(Chunks, MakeAMessageInAnyOrder) {
  EXPECT_TRUE(end_->chunk_received(0, 2, 5, true).ok());
  EXPECT_TRUE(end_->chunk_received(0, 0, kChunk, false).ok());
  EXPECT_FALSE(done());
  EXPECT_TRUE(end_->chunk_received(0, 1, kChunk, false).ok());
  EXPECT_EQ(done(), 2 * kChunk + 5);
}

TEST_F(Chunks, BeyondTheReceiveAreRefused) {
  EXPECT_TRUE(end_->place(0, 3, kChunk).ok());
  EXPECT_FALSE(end_->place(0, 4, 1).ok());
  EXPECT_FALSE(end_->place(0, 3, kChunk + 1).ok());
  EXPECT_FALSE(end_->place(0, ~uint32_t{0}, kChunk).ok());
}

TEST_F(Chunks, OfAnOddSizeAreRefused) {
  EXPECT_FALSE(end_->chunk_received(0, 0, kChunk - 1, false).ok());
}

TEST_F(Chunks, TwoLastOnesAreRefused) {
  EXPECT_TRUE(end_->chunk_received(0, 3, 1, true).ok());
  EXPECT_FALSE(end_->chunk_received(0, 2, 1, true).ok());
}

TEST_F(Chunks, MoreThanTheLastOneSaysAreRefused) {
  EXPECT_TRUE(end_->chunk_received(0, 0, kChunk, false).ok());
  EXPECT_TRUE(end_->chunk_received(0, 0, kChunk, false).ok());
  EXPECT_FALSE(end_->chunk_received(0, 0, 1, true).ok());
}

}  // namespace
}  // namespace sealane::net
