// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// What can somebody without the key do, who crowds the door, has read handles and greetings, and
// sends what he likes? He may end a connection; he may not take part in one, nor hold up others,
// nor make memory and descriptors grow.

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "base/random.h"
#include "net/hosts_for_tests.h"
#include "seal/record.h"

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

// Between two processes: has looked at how a connection begins, and carries on what it likes.
class Relay {
 public:
  enum class Carries { nothing, hello, all };
  using Judge = std::function<Carries(const Hello&)>;

  Relay(const Host& host, Judge judge)
      : host_(host), judge_(std::move(judge)), door_(*Socket::listen_tcp("127.0.0.1", 0)) {}

  HandleBytes handle() const {
    Handle where = host_.where();
    where.address.port = door_.port();
    HandleBytes bytes{};
    where.encode(bytes);
    return bytes;
  }

  // The first bit of that byte of what the connecting side sends on a stream, behind the Hello.
  void change(uint8_t stream, size_t at) { change_ = {stream, at}; }

  // True if anything moved.
  bool run() {
    bool moved = false;
    if (auto socket = door_.accept()) {
      pairs_.push_back(std::make_unique<Pair>(Pair{std::move(*socket), std::nullopt, {}}));
    }
    for (const auto& pair : pairs_)
      moved = (pair->to ? carry_on(*pair) : listen_to(*pair)) || moved;
    return moved;
  }

 private:
  struct Pair {
    Socket from;
    std::optional<Socket> to;
    std::vector<uint8_t> begin;
    Carries carries = Carries::all;
    uint8_t stream = 0;
    size_t carried = 0;  // behind the Hello
  };

  bool listen_to(Pair& pair) {
    std::array<uint8_t, Hello::kBytes> piece;
    const size_t missing = Hello::kBytes - pair.begin.size();
    const ptrdiff_t count = pair.from.receive(MutableBytes(piece).first(missing));
    if (count <= 0) return false;
    pair.begin.insert(pair.begin.end(), piece.begin(), piece.begin() + count);
    if (pair.begin.size() < Hello::kBytes) return true;
    const Hello hello = *Hello::parse(pair.begin);
    pair.stream = hello.stream;
    pair.carries = judge_(hello);
    if (pair.carries == Carries::nothing) return true;
    pair.to = host_.knock();
    send_all(*pair.to, pair.begin);
    return true;
  }

  bool carry_on(Pair& pair) {
    if (pair.carries != Carries::all) return false;
    const auto tamper = [&](MutableBytes bytes) {
      const size_t at = change_ ? change_->second - pair.carried : 0;
      if (change_ && change_->first == pair.stream && at < bytes.size()) bytes[at] ^= 0x80;
      pair.carried += bytes.size();
    };
    const bool there = pump(pair.from, *pair.to, tamper);
    return pump(*pair.to, pair.from, [](MutableBytes) {}) || there;
  }
  template <typename Tamper>
  static bool pump(const Socket& from, const Socket& to, Tamper tamper) {
    std::array<uint8_t, 4096> piece;
    const ptrdiff_t count = from.receive(piece);
    if (count < 0) shutdown(to.descriptor(), SHUT_WR);
    if (count <= 0) return false;
    const MutableBytes got = MutableBytes(piece).first(static_cast<size_t>(count));
    tamper(got);
    send_all(to, got);
    return true;
  }
  static void send_all(const Socket& to, Bytes rest) {
    EXPECT_TRUE(eventually([&] {
      const ptrdiff_t sent = to.send(rest);
      if (sent > 0) rest = rest.subspan(static_cast<size_t>(sent));
      return sent < 0 || rest.empty();
    }));
  }

  const Host& host_;
  Judge judge_;
  Socket door_;
  std::optional<std::pair<uint8_t, size_t>> change_;
  std::vector<std::unique_ptr<Pair>> pairs_;
};

// Who reads greetings knows the connection's name. It does not make his socket one of its streams.
TEST(Streams, AreNotTakenFromSomebodyWhoOnlyKnowsTheConnectionsName) {
  Host host;
  std::vector<Socket> usurpers;
  Relay relay(host, [&](const Hello& seen) {
    for (int i = 0; i < 3 && seen.stream == 0; ++i) {
      Hello hello = seen;
      hello.stream = 1;
      usurpers.push_back(host.knock());
      EXPECT_EQ(usurpers.back().send(hello.encode()), static_cast<ptrdiff_t>(Hello::kBytes));
    }
    return Relay::Carries::all;
  });
  Guest guest(open_network(), relay.handle());
  ASSERT_TRUE(eventually([&] {
    relay.run();
    const bool polled = guest.poll();
    return host.accept() && polled;
  }));
  ASSERT_TRUE(guest.end != nullptr && host.end != nullptr);
  EXPECT_EQ(usurpers.size(), 3U);
  std::atomic<bool> done{false};
  std::thread carrier([&] {
    while (!done) relay.run();
  });
  EXPECT_TRUE(carry(guest, host, 1 << 20));
  done = true;
  carrier.join();
}

// The first stream has brought a message when its sender dies; the second never comes.
TEST(Streams, ASenderThatDiesBetweenTwoOfThemIsNoticedBehindWhatItSent) {
  NetworkOptions options = options_for_tests();
  options.patience = std::chrono::minutes(10);
  Host host(open_network(std::move(options)));
  std::array<uint8_t, 1000> memory{};
  {
    Relay relay(host, [](const Hello& hello) {
      return hello.stream == 0 ? Relay::Carries::all : Relay::Carries::nothing;
    });
    Guest guest(open_network(), relay.handle());
    ASSERT_TRUE(eventually([&] {
      relay.run();
      return guest.poll();
    }));
    ASSERT_TRUE(guest.end != nullptr);
    auto request = guest.end->send(memory.data(), memory.size());
    ASSERT_TRUE(request.ok());
    ASSERT_TRUE(eventually([&] {
      const auto sent = guest.end->test(**request);
      return !sent || sent->has_value();
    }));
    while (relay.run()) {
    }
    EXPECT_FALSE(host.accept());
  }
  EXPECT_TRUE(eventually([&] { return host.accept(); }));
  EXPECT_TRUE(host.failure && host.end == nullptr);
}

// The second stream is cut off with a message; the first has brought the one behind it, which
// nobody has asked for, so nobody reads on to its end.
TEST(Streams, ASenderThatDiesIsNoticedBehindAMessageNobodyAskedFor) {
  Host host;
  std::array<uint8_t, 1000> out{};
  std::array<uint8_t, 1000> in{};
  Request* request = nullptr;
  {
    Relay relay(host, [](const Hello& hello) {
      return hello.stream == 0 ? Relay::Carries::all : Relay::Carries::hello;
    });
    Guest guest(open_network(), relay.handle());
    ASSERT_TRUE(eventually([&] {
      relay.run();
      const bool polled = guest.poll();
      return host.accept() && polled;
    }));
    ASSERT_TRUE(guest.end != nullptr && host.end != nullptr);
    for (int i = 0; i < 3; ++i) {  // by streams 0, 1 and 0
      auto sending = guest.end->send(out.data(), out.size());
      ASSERT_TRUE(sending.ok());
      ASSERT_TRUE(eventually([&] { return guest.end->test(**sending)->has_value(); }));
    }
    while (relay.run()) {
    }
    auto first = host.end->receive(in.data(), in.size());
    ASSERT_TRUE(first.ok());
    ASSERT_TRUE(eventually([&] { return host.end->test(**first)->has_value(); }));
    auto second = host.end->receive(in.data(), in.size());
    ASSERT_TRUE(second.ok());
    request = *second;
  }
  EXPECT_TRUE(eventually([&] { return !host.end->test(*request).ok(); }));
}

// ---- Records ----

// No bit of a head is believed before its tag is: one that names a message nobody has asked for
// would be waited for without end.
TEST(Records, AChangedHeadEndsBothSides) {
  const auto one = open_network();
  const auto other = open_network();
  for (size_t at = 0; at < 4 + RecordHeader::kBytes; ++at) {
    Host host(one);
    Relay relay(host, [](const Hello&) { return Relay::Carries::all; });
    relay.change(1, at);
    Guest guest(other, relay.handle());
    ASSERT_TRUE(eventually([&] {
      relay.run();
      const bool polled = guest.poll();
      return host.accept() && polled;
    }));
    ASSERT_TRUE(guest.end != nullptr && host.end != nullptr);
    std::array<uint8_t, 1000> out{};
    std::array<std::array<uint8_t, 1000>, 2> in{};
    Request* last = nullptr;
    for (auto& memory : in) {
      auto receiving = host.end->receive(memory.data(), memory.size());
      ASSERT_TRUE(receiving.ok());
      last = *receiving;
      ASSERT_TRUE(guest.end->send(out.data(), out.size()).ok());  // by streams 0 and 1
    }
    ASSERT_TRUE(eventually([&] {
      relay.run();
      return !host.end->test(*last).ok();
    })) << "byte "
        << at;
    EXPECT_TRUE(eventually([&] {
      relay.run();
      return guest.end->failed() || !guest.end->send(out.data(), out.size()).ok();
    })) << "byte "
        << at;
  }
}

}  // namespace
}  // namespace sealane::net
