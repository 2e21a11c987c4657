// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Does a receiving end add chunks up to messages, and refuse those that do not fit together? The
// streams are there and carry nothing: what they would report is said here.

#include "net/end.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/random.h"
#include "net/hosts_for_tests.h"
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

// A place for a request is used again much later, or never: what the caller has given up is not
// kept until then. GPU memory's context may be gone by that time.
TEST_F(Chunks, ThatAreAllThereLeaveTheCallersMemoryAlone) {
  const auto owner = std::make_shared<int>();
  const std::shared_ptr<const DeviceMemory> device(owner, nullptr);
  request_ = *end_->receive(memory_.data(), memory_.size(), device);
  EXPECT_TRUE(end_->chunk_received(1, 0, 7, true).ok());
  EXPECT_EQ(done(), 7U);
  EXPECT_EQ(owner.use_count(), 2);  // it and `device`
}

// ---- Memory ----

struct Mapped {
  explicit Mapped(size_t size)
      : bytes(size),
        at(static_cast<uint8_t*>(
            mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    std::memset(at, 1, bytes);
  }
  ~Mapped() { munmap(at, bytes); }
  size_t bytes;
  uint8_t* at;
};

// One message after the other until there is a failure. Nothing: not yet.
Result<Request*> begin(SendEnd& end, const Mapped& memory) {
  return end.send(memory.at, memory.bytes);
}
Result<Request*> begin(ReceiveEnd& end, const Mapped& memory) {
  return end.receive(memory.at, memory.bytes);
}
template <typename SomeEnd>
bool has_failed(SomeEnd& end, const Mapped& memory, Request*& request) {
  if (request == nullptr) {
    const auto begun = begin(end, memory);
    if (!begun) return true;
    request = *begun;
  }
  if (request == nullptr) return false;
  const auto done = end.test(*request);
  if (done && *done) request = nullptr;
  return !done.ok();
}

// Its memory is gone as soon as it hears of the failure, for which it looks all the time.
template <typename SomeEnd>
void use_until_it_fails(SomeEnd& end, size_t bytes) {
  const Mapped memory(bytes);
  Request* request = nullptr;
  const Instant until = SteadyClock().now() + std::chrono::minutes(5);
  bool failed = false;
  while (!failed && SteadyClock().now() < until) failed = has_failed(end, memory, request);
  EXPECT_TRUE(failed);
}

std::shared_ptr<Network> open_with_large_chunks(NetworkOptions options) {
  options.interfaces = "lo";
  options.workers = options.streams = 4;
  options.chunk_bytes = 1 << 20;
  return open_network(std::move(options));
}

// A job that has failed frees its buffers before it closes its connections.
TEST(Memory, IsNobodysOnceACallHasSaidThatAllHasFailed) {
  constexpr size_t kBytes = 8 << 20;
  for (const bool sealed : {true, false}) {
    const auto network = sealed ? open_with_large_chunks(options_for_tests())
                                : open_with_large_chunks(NetworkOptions());
    SeededRandom random(7);
    for (int round = 0; round < 150; ++round) {
      Host host(network);
      Guest guest(network, host.handle);
      ASSERT_TRUE(meet(guest, host));
      std::thread receives([&] { use_until_it_fails(*host.end, kBytes); });
      std::thread sends([&] { use_until_it_fails(*guest.end, kBytes); });
      std::this_thread::sleep_for(std::chrono::microseconds(random.below(3000)));
      if (round % 2 == 0) host.end->fail(peer_error("enough"));
      if (round % 2 != 0) guest.end->fail(peer_error("enough"));
      sends.join();
      receives.join();
      guest.end->close();
      host.end->close();
    }
  }
}

TEST_F(Chunks, AFailureIsToldWhenNobodyIsAtThem) {
  {
    const End::Serving serving(*end_);
    end_->fail(peer_error("enough"));
    EXPECT_FALSE(done());
    const auto another = end_->receive(memory_.data(), memory_.size());
    ASSERT_TRUE(another.ok()) << "to be tried again";
    EXPECT_EQ(*another, nullptr);
  }
  EXPECT_TRUE(eventually([&] { return !end_->test(*request_).ok(); }));
  EXPECT_FALSE(end_->receive(memory_.data(), memory_.size()).ok());
}

// ---- exit() ----

// Whether calls while streams are at work are told to come again, and only then of the exit.
bool exit_is_told_when_nobody_is_at_work(Guest& guest, Host& host, std::atomic<bool>& ready) {
  std::vector<uint8_t> memory(kChunk);
  const auto calls = [&](auto& begun) {
    const auto another = host.end->receive(memory.data(), memory.size());
    const auto sent = guest.end->send(memory.data(), memory.size());
    const auto done = host.end->test(*begun);
    return std::array{another.ok() && *another == nullptr, sent.ok() && *sent == nullptr,
                      done.ok() && !*done, !another.ok() && !sent.ok() && !done.ok()};
  };
  const auto receiving = host.end->receive(memory.data(), memory.size());
  if (!receiving) return false;
  {
    const End::Serving sends(*guest.end);
    const End::Serving receives(*host.end);
    ready = true;
    if (!eventually(process_exits)) return false;
    for (int i = 0; i < 10; ++i) {
      if (calls(*receiving) != std::array{true, true, true, false}) return false;
    }
  }
  return eventually([&] { return calls(*receiving).back(); });
}

// Not by _exit(), for which ThreadSanitizer asks who has joined the network's threads.
[[noreturn]] void end_process(int code) {
  while (true) syscall(SYS_exit_group, code);
}

[[noreturn]] void exit_while_streams_are_at_work() {
  std::atexit([] {
    while (true) pause();  // runs after every handler of ours; the judge ends the process
  });
  static std::atomic<bool> ready{false};
  auto* const host = new Host;
  auto* const guest = new Guest(open_network(), host->handle);
  if (!meet(*guest, *host)) end_process(2);
  std::thread([=] {
    end_process(exit_is_told_when_nobody_is_at_work(*guest, *host, ready) ? 0 : 1);
  }).detach();
  while (!ready) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  exit(3);
}

// Who hears of it frees his buffers, as of any failure, and a stream may be in its last turn.
TEST(Memory, IsNobodysOnceACallHasSaidThatTheProcessExits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // nothing has registered handlers before ours
  EXPECT_EXIT(exit_while_streams_are_at_work(), ::testing::ExitedWithCode(0), "");
}

// ---- Streams that are not there ----

// As where a user has more descriptors watched than the kernel allows: here by one that is watched
// already, as another Socket's. Both close it; nobody else opens one meanwhile.
TEST_F(Chunks, AreNotWaitedForFromAStreamNobodyWatches) {
  const auto listener = Socket::listen_tcp("127.0.0.1", 0);
  Socket first = std::move(*Socket::connect_tcp("127.0.0.1", listener->port()));
  const int descriptor = first.descriptor();
  const auto make_end = [&](Socket socket) {
    auto end = std::make_shared<ReceiveEnd>("somebody", kChunk);
    const auto stream = std::make_shared<ReceiveStream>(
        std::move(socket), 0, *worker_, end, nullptr, std::nullopt, std::nullopt, kChunk);
    end->attach({stream});
    EXPECT_TRUE(end->receive(memory_.data(), memory_.size()).ok());
    stream->start();
    return end;
  };
  const auto watched = make_end(std::move(first));
  const auto unwatched = make_end(Socket(descriptor));
  EXPECT_TRUE(eventually([&] { return unwatched->failed(); }));
  EXPECT_FALSE(watched->failed());
  watched->close();
  unwatched->close();
}

// ---- Streams that have not joined yet ----

// Who waits for all of them reads nothing until then, and would not see us die behind bytes that
// have no room there.
TEST(Streams, SendNothingBeforeAllHaveJoined) {
  const auto worker = std::move(*Worker::start("test"));
  const auto listener = Socket::listen_tcp("127.0.0.1", 0);
  const auto end = std::make_shared<SendEnd>("somebody", kChunk);
  std::vector<std::shared_ptr<SendStream>> streams;
  for (uint8_t i = 0; i < 3; ++i) {
    auto socket = Socket::connect_tcp("127.0.0.1", listener->port());
    streams.push_back(std::make_shared<SendStream>(std::move(*socket), i, *worker, end, nullptr,
                                                   std::nullopt, std::nullopt, kChunk,
                                                   std::vector<uint8_t>(i == 0 ? 0 : 1)));
  }
  end->attach(streams);
  const std::vector<uint8_t> message(kChunk);
  ASSERT_TRUE(end->send(message.data(), message.size()).ok());
  EXPECT_FALSE(end->next_chunk(0));
  end->stream_joined();
  EXPECT_FALSE(end->next_chunk(0));
  end->stream_joined();
  EXPECT_TRUE(end->next_chunk(0));
  end->close();
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
