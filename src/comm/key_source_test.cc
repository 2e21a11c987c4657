// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Does a key come from a command or from the guest's confidential data hub, and from nowhere else?

#include "comm/key_source.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "comm/key_file.h"

namespace sealane {
namespace {

const std::string kDigits(64, 'a');

// Stands in for the hub: answers one request, and keeps what it was asked.
class StandIn {
 public:
  explicit StandIn(std::string answer, bool local = false) : answer_(std::move(answer)) {
    if (local) {
      std::string name = std::filesystem::temp_directory_path() / "sealane-hub-XXXXXX";
      EXPECT_NE(mkdtemp(name.data()), nullptr);
      directory_ = name;
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      name += "/hub";
      std::copy(name.begin(), name.end(), address.sun_path);
      open(AF_UNIX, reinterpret_cast<sockaddr*>(&address), sizeof address);
      where_ = "unix:" + name;
    } else {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      open(AF_INET, reinterpret_cast<sockaddr*>(&address), sizeof address);
      socklen_t bytes = sizeof address;
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &bytes);
      where_ = concat("127.0.0.1:", ntohs(address.sin_port));
    }
    thread_ = std::thread([this] { serve(); });
  }
  ~StandIn() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }

  const std::string& where() const { return where_; }
  std::string asked() {
    shutdown(listener_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    thread_ = std::thread([] {});
    return asked_;
  }

 private:
  void open(int family, const sockaddr* address, socklen_t bytes) {
    listener_ = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(bind(listener_, address, bytes), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
  }
  void serve() {
    const int peer = accept(listener_, nullptr, nullptr);
    if (peer < 0) return;
    char piece[1024];
    while (asked_.find("\r\n\r\n") == std::string::npos) {
      const ssize_t count = read(peer, piece, sizeof piece);
      if (count <= 0) break;
      asked_.append(piece, static_cast<size_t>(count));
    }
    EXPECT_EQ(send(peer, answer_.data(), answer_.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(answer_.size()));
    close(peer);
  }

  std::string answer_;
  std::string where_;
  std::string directory_;
  std::string asked_;
  int listener_ = -1;
  std::thread thread_;
};

std::string ok(const std::string& body) {
  return concat("HTTP/1.1 200 OK\r\ncontent-length: ", body.size(), "\r\n\r\n", body);
}

// A hub that nobody serves: its queue is full, so that one who connects waits.
class Unserved {
 public:
  Unserved() : listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    std::string name = std::filesystem::temp_directory_path() / "sealane-hub-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    name += "/hub";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(name.begin(), name.end(), address.sun_path);
    const auto* const at = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(bind(listener_, at, sizeof address), 0);
    EXPECT_EQ(listen(listener_, 0), 0);
    while (true) {
      waiting_.push_back(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      if (connect(waiting_.back(), at, sizeof address) != 0) break;
    }
    where_ = "unix:" + name;
  }
  ~Unserved() {
    for (const int descriptor : waiting_) close(descriptor);
    close(listener_);
    std::filesystem::remove_all(directory_);
  }
  const std::string& where() const { return where_; }

 private:
  int listener_;
  std::vector<int> waiting_;
  std::string where_;
  std::string directory_;
};

// As long as the join may last, and not the minute that there is where nobody is in a hurry.
void expect_in_time(const std::string& hub) {
  JoinOptions options;
  options.key_file = "kbs:///a/b/c";
  options.key_hub = hub;
  options.timeout = std::chrono::milliseconds(300);
  const Instant start = SteadyClock().now();
  const auto credentials = read_credentials(options);
  ASSERT_FALSE(credentials.ok());
  EXPECT_EQ(credentials.error().kind, ErrorKind::io) << credentials.error().message;
  EXPECT_LT(SteadyClock().now() - start, std::chrono::seconds(50));
}

TEST(KeySource, AHubThatAcceptsNobodyEndsTheJoinInTime) { expect_in_time(Unserved().where()); }

TEST(KeySource, AHubThatAnswersByteByByteEndsTheJoinInTime) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), bytes), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &bytes);
  std::thread hub([&] {
    const int peer = accept(listener, nullptr, nullptr);
    while (send(peer, "x", 1, MSG_NOSIGNAL) == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    close(peer);
  });
  expect_in_time(concat("127.0.0.1:", ntohs(address.sin_port)));
  hub.join();
  close(listener);
}

TEST(KeySource, TheHubIsAskedForTheResource) {
  for (const bool local : {false, true}) {
    StandIn hub(ok(kDigits + "\n"), local);
    const auto key = key_from_hub("kbs:///default/sealane/group-1", hub.where());
    ASSERT_TRUE(key.ok()) << key.error().message;
    EXPECT_EQ(key->secret()[31], 0xaa);
    EXPECT_TRUE(hub.asked().starts_with("GET /cdh/resource/default/sealane/group-1 HTTP/1.0\r\n"));
  }
}

TEST(KeySource, WhatTheHubRefusesOrSpoilsIsAnErrorThatTellsNothing) {
  for (const std::string& answer :
       {std::string("HTTP/1.1 403 Forbidden\r\n\r\n") + kDigits, ok("short"), ok(kDigits + "b"),
        ok(""), std::string("hello"), std::string(), std::string(64 << 10, 'x')}) {
    StandIn hub(answer.substr(0, 32 << 10));
    const auto key = key_from_hub("kbs:///a/b/c", hub.where());
    ASSERT_FALSE(key.ok()) << answer.substr(0, 30);
    EXPECT_EQ(key.error().message.find("aaaa"), std::string::npos) << key.error().message;
  }
}

TEST(KeySource, OnlyThisGuestsOwnHubIsAsked) {
  for (const char* where : {"10.0.0.1:8006", "hub.example:8006", "0.0.0.0:1", "127.0.0.1",
                            "127.0.0.1:x", "127.0.0.1:0", "unix:"}) {
    const auto key = key_from_hub("kbs:///a/b/c", where);
    ASSERT_FALSE(key.ok()) << where;
    EXPECT_EQ(key.error().kind, ErrorKind::usage) << where;
  }
}

TEST(KeySource, AResourceIsThreePlainWords) {
  for (const char* name :
       {"kbs://", "kbs:///", "kbs:///a", "kbs:///a/b", "kbs:///a/b/c/d", "kbs://elsewhere/a/b/c",
        "kbs:///a/../c", "kbs:///a/b/c HTTP/1.1", "kbs:///a/b/c\r\nX: y", "kbs:////b/c"}) {
    const auto key = key_from_hub(name, "127.0.0.1:1");
    ASSERT_FALSE(key.ok()) << name;
    EXPECT_NE(key.error().message.find("is no resource"), std::string::npos) << name;
  }
}

TEST(KeySource, ACommandTellsTheKey) {
  const auto key = key_from_command("printf '%s\\n' " + kDigits);
  ASSERT_TRUE(key.ok()) << key.error().message;
  EXPECT_EQ(key->secret()[0], 0xaa);
}

TEST(KeySource, ACommandThatFailsOrSaysSomethingElseIsRefused) {
  for (const std::string& command :
       {std::string("exit 3"), "echo " + kDigits + "; exit 1", std::string("echo short"),
        std::string("true"), std::string("head -c 100000 /dev/zero"),
        std::string("/nonexistent/program 2>/dev/null")}) {
    const auto key = key_from_command(command);
    ASSERT_FALSE(key.ok()) << command;
    EXPECT_EQ(key.error().message.find("aaaa"), std::string::npos) << key.error().message;
  }
}

TEST(KeySource, OptionsNameOneSource) {
  JoinOptions options;
  options.key_command = "echo " + kDigits;
  EXPECT_TRUE(read_credentials(options).ok());
  options.key_file = "/some/file";
  EXPECT_FALSE(read_credentials(options).ok());
  options.key_command.clear();
  StandIn hub(ok(kDigits));
  options.key_file = "kbs:///a/b/c";
  options.key_hub = hub.where();
  EXPECT_TRUE(read_credentials(options).ok());
}

}  // namespace
}  // namespace sealane
