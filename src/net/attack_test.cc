// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// What can somebody without the key do, who crowds the door, has read handles and greetings, and
// sends what he likes? He may end a connection; he may not take part in one, nor hold up others,
// nor make memory and descriptors grow.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "base/random.h"
#include "net/hosts_for_tests.h"

namespace sealane::net {
namespace {

std::vector<Socket> crowd_before(const Host& host, size_t count) {
  std::vector<Socket> strangers;
  for (size_t i = 0; i < count; ++i) strangers.push_back(host.knock());
  return strangers;
}

size_t open_descriptors() {
  namespace fs = std::filesystem;
  return static_cast<size_t>(
      std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

// ---- Before a word is said ----

// More strangers than there is room for stand at the door, silent, and stay. Who has something to
// say is let past them, and what they cost is bounded for all doors together.
TEST(Listener, SilentStrangersDoNotKeepAMemberOut) {
  NetworkOptions options = options_for_tests();
  options.stranger_patience = std::chrono::minutes(10);
  const auto network = open_network(std::move(options));
  Host host(network);
  Host other(network);
  const size_t before = open_descriptors();
  const auto strangers = crowd_before(host, 300);
  const auto more = crowd_before(other, 100);
  Guest guest(open_network(), host.handle);
  EXPECT_TRUE(meet(guest, host));
  Guest second(guest.network, other.handle);
  EXPECT_TRUE(meet(second, other));
  // 400 of them are the strangers' own, 256 the most that is let in; the rest is the connections.
  EXPECT_LT(open_descriptors() - before, 400U + 256 + 64);
}

TEST(Listener, StrangersThatTalkNonsenseAreDroppedAndDoNoHarm) {
  Host host;
  const auto strangers = crowd_before(host, 50);
  std::vector<uint8_t> nonsense(1000, 'x');
  for (const Socket& one : strangers) {
    ++nonsense[0];
    EXPECT_GT(one.send(nonsense), 0);
  }
  for (const Socket& one : strangers) EXPECT_TRUE(eventually([&] { return hung_up_on(one); }));
  Guest guest(open_network(), host.handle);
  EXPECT_TRUE(meet(guest, host));
}

// Every byte in time, the whole never: the patience is for the greeting and not for a byte of it.
TEST(Listener, AGreetingThatIsDribbledIsNotWaitedForWithoutEnd) {
  NetworkOptions options = options_for_tests();
  options.stranger_patience = std::chrono::milliseconds(100);
  Host host(open_network(std::move(options)));
  const Socket slow = host.knock();
  auto bytes = host.hello().encode();
  size_t sent = 0;
  EXPECT_TRUE(eventually([&] {
    if (sent + 1 < bytes.size() && slow.send(Bytes(bytes).subspan(sent, 1)) == 1) ++sent;
    return hung_up_on(slow);
  }));
  EXPECT_FALSE(host.accept());
}

// ---- With the listener's nonce ----

TEST(Greetings, AReplayedOneGivesNoConnection) {
  Host host;
  Guest guest(open_network(), host.handle);
  ASSERT_TRUE(meet(guest, host));
  host.end.reset();
  Hello hello = host.hello();
  hello.process = guest.network->credence().pairs->self();
  hello.pair = guest.network->credence().pairs->with(host.where().process).value_or(PairId{});
  const Socket replay = host.knock();
  ASSERT_EQ(replay.send(hello.encode()), static_cast<ptrdiff_t>(Hello::kBytes));
  std::array<uint8_t, 1024> answer;
  EXPECT_TRUE(eventually([&] { return replay.receive(answer) > 0; }));  // asks for a proof
  std::vector<uint8_t> proof;
  append_frame(proof, FrameKind::confirm, std::array<uint8_t, 32>{});
  EXPECT_GT(replay.send(proof), 0);
  EXPECT_TRUE(eventually([&] { return host.accept(); }));
  EXPECT_TRUE(host.failure && host.end == nullptr);
}

// Two halves of a greeting, each the echo of the other.
TEST(Greetings, AReflectedConfirmationProvesNothing) {
  Host host;
  Guest guest(open_network(), host.handle);
  ASSERT_TRUE(meet(guest, host));
  host.end.reset();
  Hello hello = host.hello();
  hello.process = guest.network->credence().pairs->self();
  hello.pair = guest.network->credence().pairs->with(host.where().process).value_or(PairId{});
  const Socket mirror = host.knock();
  ASSERT_EQ(mirror.send(hello.encode()), static_cast<ptrdiff_t>(Hello::kBytes));
  std::vector<uint8_t> heard;
  std::array<uint8_t, 1024> piece;
  constexpr size_t kAnswer = kFrameHeadBytes + Answer::kBytes;
  constexpr size_t kConfirm = kFrameHeadBytes + 32;
  ASSERT_TRUE(eventually([&] {
    const ptrdiff_t count = mirror.receive(piece);
    if (count > 0) heard.insert(heard.end(), piece.begin(), piece.begin() + count);
    return heard.size() >= kAnswer + kConfirm;
  }));
  ASSERT_GT(mirror.send(Bytes(heard).subspan(kAnswer, kConfirm)), 0);
  EXPECT_TRUE(eventually([&] { return host.accept(); }));
  EXPECT_TRUE(host.failure && host.end == nullptr);
}

TEST(Greetings, OneThatAsksForNoSealingIsRefused) {
  Host host;
  Hello hello = host.hello();
  hello.sealed = false;
  const Socket plain = host.knock();
  ASSERT_EQ(plain.send(hello.encode()), static_cast<ptrdiff_t>(Hello::kBytes));
  EXPECT_TRUE(eventually([&] { return host.accept(); }));
  ASSERT_TRUE(host.failure);
  EXPECT_NE(host.failure->message.find("one side seals"), std::string::npos);
}

std::vector<uint8_t> many_empty_frames() {
  std::vector<uint8_t> frames;
  for (int i = 0; i < 50'000; ++i) append_frame(frames, FrameKind::session, {});
  return frames;
}

// Sends faster than anybody reads, until hung up on.
class Flood {
 public:
  Flood(Socket socket, std::vector<uint8_t> begin) : socket_(std::move(socket)) {
    thread_ = std::thread([this, begin = std::move(begin)] {
      Bytes rest = begin;
      const std::vector<uint8_t> frames = many_empty_frames();
      while (!stop_) {
        if (rest.empty()) rest = frames;
        const ptrdiff_t count = socket_.send(rest);
        if (count < 0) break;
        rest = rest.subspan(static_cast<size_t>(count));
      }
      over_ = true;
    });
  }
  ~Flood() {
    stop_ = true;
    thread_.join();
  }
  bool over() const { return over_; }

 private:
  Socket socket_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

TEST(Greetings, AnEndlessOneIsEndedAndHoldsUpNobody) {
  const auto network = open_network();
  Host host(network);
  Host other(network);
  const auto bytes = host.hello().encode();
  Flood flood(host.knock(), {bytes.begin(), bytes.end()});
  Guest guest(open_network(), other.handle);  // whom the same thread greets
  EXPECT_TRUE(meet(guest, other));
  EXPECT_TRUE(eventually([&] { return flood.over(); }));
}

TEST(Greetings, AnEndlessAnswerIsEndedAndHoldsUpNobody) {
  auto evil = Socket::listen_tcp("127.0.0.1", 0);
  ASSERT_TRUE(evil.ok());
  Host host;
  Handle where = host.where();
  where.address.port = evil->port();
  HandleBytes handle{};
  where.encode(handle);
  const auto network = open_network();
  Guest lost(network, handle);
  std::optional<Socket> caller;
  ASSERT_TRUE(eventually([&] { return (caller = evil->accept()).has_value(); }));
  Answer answer;
  answer.process = where.process;
  std::vector<uint8_t> begin;
  append_frame(begin, FrameKind::answer, answer.encode());
  Flood flood(std::move(*caller), std::move(begin));
  Guest guest(network, host.handle);
  EXPECT_TRUE(meet(guest, host));
  EXPECT_TRUE(eventually([&] { return lost.poll(); }));
  EXPECT_TRUE(lost.failure);
}

// ---- Streams that join a connection ----

TEST(Streams, OfConnectionsThatWereNeverGreetedAreFewAndEndNothing) {
  NetworkOptions options = options_for_tests();
  options.patience = std::chrono::milliseconds(50);
  Host host(open_network(std::move(options)));
  std::vector<Socket> strays;
  for (int i = 0; i < 300; ++i) {
    Hello hello = host.hello();
    hello.stream = 1;
    SystemRandom().fill(hello.connection);
    strays.push_back(host.knock());
    ASSERT_EQ(strays.back().send(hello.encode()), static_cast<ptrdiff_t>(Hello::kBytes));
  }
  EXPECT_TRUE(eventually(
      [&] { return std::count_if(strays.begin(), strays.end(), hung_up_on) >= 300 - 64; }));
  std::this_thread::sleep_for(2 * std::chrono::milliseconds(50));  // the patience is over for all
  EXPECT_FALSE(host.accept()) << host.failure->message;
}

// Between two processes: carries on what passes, and has looked at it.
class Relay {
 public:
  explicit Relay(const Host& host) : host_(host), door_(*Socket::listen_tcp("127.0.0.1", 0)) {}

  HandleBytes handle() const {
    Handle where = host_.where();
    where.address.port = door_.port();
    HandleBytes bytes{};
    where.encode(bytes);
    return bytes;
  }

  // `hello` is what a connection began with.
  void run(const std::function<void(const Hello&)>& on_hello) {
    if (auto socket = door_.accept()) {
      pairs_.push_back(std::make_unique<Pair>(Pair{std::move(*socket), host_.knock(), {}, {}}));
    }
    for (const auto& pair : pairs_) {
      const size_t before = pair->there.size();
      pump(pair->from, pair->to, pair->there);
      pump(pair->to, pair->from, pair->back);
      if (before >= Hello::kBytes || pair->there.size() < Hello::kBytes) continue;
      const auto hello = Hello::parse(Bytes(pair->there).first(Hello::kBytes));
      if (hello) on_hello(*hello);
    }
  }

 private:
  struct Pair {
    Socket from;
    Socket to;
    std::vector<uint8_t> there;
    std::vector<uint8_t> back;
  };

  static void pump(const Socket& from, const Socket& to, std::vector<uint8_t>& seen) {
    std::array<uint8_t, 4096> piece;
    const ptrdiff_t count = from.receive(piece);
    if (count <= 0) return;
    const Bytes got = Bytes(piece).first(static_cast<size_t>(count));
    seen.insert(seen.end(), got.begin(), got.end());
    Bytes rest = got;
    EXPECT_TRUE(eventually([&] {
      const ptrdiff_t sent = to.send(rest);
      if (sent > 0) rest = rest.subspan(static_cast<size_t>(sent));
      return sent < 0 || rest.empty();
    }));
  }

  const Host& host_;
  Socket door_;
  std::vector<std::unique_ptr<Pair>> pairs_;
};

// Who reads greetings knows the connection's name. It does not make his socket one of its streams.
TEST(Streams, AreNotTakenFromSomebodyWhoOnlyKnowsTheConnectionsName) {
  Host host;
  Relay relay(host);
  Guest guest(open_network(), relay.handle());
  std::vector<Socket> usurpers;
  const auto step = [&] {
    relay.run([&](const Hello& seen) {
      if (seen.stream != 0) return;
      for (int i = 0; i < 3; ++i) {
        Hello hello = seen;
        hello.stream = 1;
        usurpers.push_back(host.knock());
        EXPECT_EQ(usurpers.back().send(hello.encode()), static_cast<ptrdiff_t>(Hello::kBytes));
      }
    });
  };
  ASSERT_TRUE(eventually([&] {
    step();
    const bool polled = guest.poll();
    return host.accept() && polled;
  }));
  ASSERT_TRUE(guest.end != nullptr && host.end != nullptr);
  EXPECT_EQ(usurpers.size(), 3U);
  std::atomic<bool> done{false};
  std::thread carrier([&] {
    while (!done) step();
  });
  EXPECT_TRUE(carry(guest, host, 1 << 20));
  done = true;
  carrier.join();
}

}  // namespace
}  // namespace sealane::net
