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
    std::vector<std::shared_ptr<ReceiveStream>> streams;
    for (uint8_t i = 0; i < 2; ++i) {
      auto socket = Socket::connect_tcp("127.0.0.1", listener->port());
      streams.push_back(std::make_shared<ReceiveStream>(
          std::move(*socket), i, *worker_, end_, nullptr, std::nullopt, std::nullopt, kChunk));
    }
    end_->attach(std::move(streams));
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

// ---- Streams that have ended ----

TEST_F(Chunks, MayComeByAStreamThatIsOpen) {
  end_->stream_ended(0);
  EXPECT_FALSE(end_->failed());
  EXPECT_TRUE(end_->chunk_received(0, 0, 7, true).ok());
  EXPECT_EQ(done(), 7U);
  end_->stream_ended(1);
  EXPECT_FALSE(end_->failed());  // nothing is waited for
  EXPECT_FALSE(end_->receive(memory_.data(), memory_.size()).ok());
}

TEST_F(Chunks, ThatNoStreamCanBringAreNotWaitedFor) {
  end_->stream_ended(1);
  end_->stream_brings_from(0, 0);  // the very message
  EXPECT_FALSE(end_->failed());
  end_->stream_brings_from(0, 1);
  EXPECT_TRUE(end_->failed());
}

}  // namespace
}  // namespace sealane::net
