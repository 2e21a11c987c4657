// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// When is a user's attestation command asked, and when is what it said before good enough?

#include "comm/attest_command.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <iterator>
#include <thread>

#include "comm/group_fixture.h"

namespace sealane {
namespace {

class HandClock final : public Clock {
 public:
  Instant now() const override { return now_; }
  void pass(Duration time) { now_ += time; }

 private:
  Instant now_ = SteadyClock().now();
};

struct AttestCommandTest : ::testing::Test {
  AttestCommandTest() {
    std::ofstream(script()) << "#!/bin/sh\necho $1 >>" << asked() << "\n"
                            << "case $1 in\n"
                               "  produce) echo evidence $SEALANE_ATTEST_BINDING ;;\n"
                               "  check) read word binding; test \"$binding\" = "
                               "\"$SEALANE_ATTEST_BINDING\" ;;\nesac\n";
    chmod(script().c_str(), 0700);
  }

  std::string script() const { return directory.path() + "/attest"; }
  std::string asked() const { return directory.path() + "/asked"; }

  int times(const std::string& verb) const {
    std::ifstream lines(asked());
    return static_cast<int>(std::count(std::istream_iterator<std::string>(lines), {}, verb));
  }

  // One rank proves itself to another of this process.
  Status meet(uint32_t rank = 1) {
    const auto sent = command.produce(session);
    return sent ? command.check(rank, session, *sent) : sent.error();
  }

  TemporaryDirectory directory;
  HandClock clock;
  AttestCommand command{script(), &clock};
  const std::vector<uint8_t> session = std::vector<uint8_t>(32, 1);
};

TEST_F(AttestCommandTest, IsAskedOnceForManySessions) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(meet().ok());
  EXPECT_EQ(times("produce"), 1);
  EXPECT_EQ(times("check"), 1);
}

TEST_F(AttestCommandTest, IsAskedForEachRank) {
  for (const uint32_t rank : {1U, 2U}) EXPECT_TRUE(meet(rank).ok());
  EXPECT_EQ(times("check"), 2);
}

// Evidence may contain a token that expires, and a verifier may hear that a machine is not to be
// trusted any more: a process that joins again the next day is as fresh as one that starts then.
TEST_F(AttestCommandTest, IsAskedAnewLater) {
  EXPECT_TRUE(meet().ok());
  clock.pass(std::chrono::minutes(3));
  EXPECT_TRUE(meet().ok());
  EXPECT_EQ(times("produce"), 2);
  EXPECT_EQ(times("check"), 2);  // though the evidence is the same to the bit
}

TEST_F(AttestCommandTest, OfAChildMakesEvidenceOfItsOwn) {
  EXPECT_TRUE(meet().ok());
  const pid_t child = fork();
  if (child == 0) _exit(meet().ok() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(times("produce"), 2);
  EXPECT_EQ(times("check"), 2);
}

// Whoever has evidence of another process has no signature of its own session.
TEST_F(AttestCommandTest, IsNotAskedAboutEvidenceOfAnotherSession) {
  const auto sent = command.produce(session);
  ASSERT_TRUE(sent.ok());
  EXPECT_FALSE(command.check(1, std::vector<uint8_t>(32, 2), *sent).ok());
  EXPECT_EQ(times("check"), 0);
}

TEST_F(AttestCommandTest, ThatRefusesIsAskedAgain) {
  const auto sent = command.produce(session);
  std::ofstream(script()) << "#!/bin/sh\necho $1 >>" << asked() << "\nexit 1\n";
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(command.check(1, session, *sent).ok());
  EXPECT_EQ(times("check"), 2);
}

// Another group's join asks, with more time.
TEST_F(AttestCommandTest, IsNotWaitedForBeyondTheTimeThatItsCallerHas) {
  const std::string go_on = directory.path() + "/go_on";
  std::ofstream(script()) << "#!/bin/sh\necho $1 >>" << asked() << "\nuntil test -e " << go_on
                          << "; do sleep 0.01; done\necho evidence\n";
  auto asks = std::async(std::launch::async, [&] { return command.produce(session).ok(); });
  while (times("produce") == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  AttestCommand late(script(), &clock, SteadyClock().now());
  const auto evidence = late.produce(session);
  EXPECT_EQ(asks.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  std::ofstream(go_on).close();
  EXPECT_TRUE(asks.get());
  ASSERT_FALSE(evidence.ok());
  EXPECT_NE(evidence.error().message.find("than there was time"), std::string::npos)
      << evidence.error().message;
}

TEST_F(AttestCommandTest, EndsWithTheTimeThatItsCallerHas) {
  AttestCommand late("exec sleep 1000 #", nullptr, SteadyClock().now());
  const auto evidence = late.produce(session);
  ASSERT_FALSE(evidence.ok());
  EXPECT_NE(evidence.error().message.find("than there was time"), std::string::npos)
      << evidence.error().message;
}

}  // namespace
}  // namespace sealane
