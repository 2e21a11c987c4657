// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Whatever is done to the records on their way: does every rank hear of it in time, and does no
// rank ever see a wrong sum?

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <map>

#include "base/random.h"
#include "comm/group_fixture.h"

namespace sealane {
namespace {

enum class Tamper {
  flip_header,
  flip_origin,
  flip_payload,
  flip_tag,
  truncate,
  drop,
  replay,
  swap,
  inject
};
constexpr Tamper kTampers[] = {Tamper::flip_header, Tamper::flip_origin, Tamper::flip_payload,
                               Tamper::flip_tag,    Tamper::truncate,    Tamper::drop,
                               Tamper::replay,      Tamper::swap,        Tamper::inject};

// Does it to the n-th record a rank sends. (Records on wires they were not meant for:
// cross_wire_test.cc.)
class HostileFabric final : public ForwardingFabric {
 public:
  HostileFabric(std::unique_ptr<Fabric> inner, Tamper tamper, uint32_t when)
      : ForwardingFabric(std::move(inner)), tamper_(tamper), left_(when) {}

  void commit(uint32_t wire, size_t bytes) override {
    const MutableBytes record = inner().slot(wire).first(bytes);
    const bool now = left_ > 0 && --left_ == 0;
    if (!now) {
      last_.assign(record.begin(), record.end());
      inner().commit(wire, bytes);
      if (!held_.empty() && held_wire_ == wire && inner().writable(wire)) release();
      return;
    }
    switch (tamper_) {
      case Tamper::flip_header:
        record[24] ^= 1;
        break;
      case Tamper::flip_origin:
        record[44] ^= 1;
        break;
      case Tamper::flip_payload:
        record[bytes > 70 ? 60 : 47] ^= 4;
        break;
      case Tamper::flip_tag:
        record[bytes - 1] ^= 0x80;
        break;
      case Tamper::truncate:
        bytes -= 1;
        break;
      case Tamper::drop:
        return;
      case Tamper::replay:
        if (last_.empty()) break;
        std::copy(last_.begin(), last_.end(), inner().slot(wire).begin());
        bytes = last_.size();
        break;
      case Tamper::swap:
        held_.assign(record.begin(), record.end());
        held_wire_ = wire;
        return;
      case Tamper::inject:
        SeededRandom(1).fill(record);
        break;
    }
    inner().commit(wire, bytes);
  }

 private:
  void release() {
    std::copy(held_.begin(), held_.end(), inner().slot(held_wire_).begin());
    inner().commit(held_wire_, held_.size());
    held_.clear();
  }

  Tamper tamper_;
  uint32_t left_;
  std::vector<uint8_t> last_;
  std::vector<uint8_t> held_;
  uint32_t held_wire_ = 0;
};

Status sum_50_times(Communicator& comm) { return sum_until_error(comm, 100'000, 50); }

// automatic: a group that spans two hosts.
class Tampered : public testing::TestWithParam<std::tuple<TransportKind, uint32_t, Algorithm>> {};

TEST_P(Tampered, EveryRankHearsOfItAndNobodyGetsAWrongSum) {
  const TransportKind transport = std::get<0>(GetParam());
  const uint32_t size = std::get<1>(GetParam());
  const Algorithm algorithm = std::get<2>(GetParam());
  SeededRandom random(size);
  for (const Tamper tamper : kTampers) {
    GroupSetup setup;
    setup.size = size;
    setup.transport = transport;
    setup.algorithm = algorithm;
    setup.timeout = std::chrono::milliseconds(1000);
    if (transport == TransportKind::automatic) setup.hosts = two_hosts(size);
    if (transport == TransportKind::tcp) setup.tcp_streams = size - 1;
    ThreadGroup group(setup);
    const auto when = static_cast<uint32_t>(2 + random.below(30));
    const auto victim = static_cast<uint32_t>(random.below(size));
    const auto outcomes = group.run(sum_50_times, with_wires<HostileFabric>(victim, tamper, when));
    for (const Status& status : outcomes) {
      ASSERT_FALSE(status.ok()) << "tamper " << static_cast<int>(tamper) << " at " << when;
      EXPECT_NE(status.error().message.find("rank "), std::string::npos) << status.error().message;
      EXPECT_EQ(status.error().message.find("WRONG"), std::string::npos);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Tampered,
                         testing::Values(std::tuple(TransportKind::shm, 2u, Algorithm::automatic),
                                         std::tuple(TransportKind::tcp, 2u, Algorithm::direct),
                                         std::tuple(TransportKind::shm, 3u, Algorithm::direct),
                                         std::tuple(TransportKind::shm, 3u, Algorithm::ring),
                                         std::tuple(TransportKind::shm, 3u, Algorithm::hub),
                                         std::tuple(TransportKind::tcp, 3u, Algorithm::ring),
                                         std::tuple(TransportKind::tcp, 3u, Algorithm::direct),
                                         std::tuple(TransportKind::automatic, 4u, Algorithm::ring),
                                         std::tuple(TransportKind::automatic, 4u,
                                                    Algorithm::direct)));

// Scribbles over the record that is being opened.
class RacingFabric final : public ForwardingFabric {
 public:
  explicit RacingFabric(std::unique_ptr<Fabric> inner) : ForwardingFabric(std::move(inner)) {
    scribbler_ = std::thread([this] { scribble(); });
  }
  ~RacingFabric() override {
    end_ = true;
    scribbler_.join();
  }
  Bytes front(uint32_t wire) override {
    const Bytes record = inner().front(wire);
    if (record.size() > 1000) target_ = const_cast<uint8_t*>(record.data()) + 500;
    return record;
  }

 private:
  // The race is the point of the test.
  __attribute__((no_sanitize("thread"))) void scribble() {
    uint8_t value = 0;
    while (!end_) {
      uint8_t* at = target_;
      if (at == nullptr) continue;
      // Flip and flip back: most opens see a mixture, some see the genuine bytes.
      volatile uint8_t& byte = *at;
      const uint8_t genuine = byte;
      byte = static_cast<uint8_t>(genuine ^ (++value | 1));
      byte = genuine;
    }
  }
  std::atomic<uint8_t*> target_{nullptr};
  std::atomic<bool> end_{false};
  std::thread scribbler_;
};

TEST(Attack, ARacingWriterNeverGetsAWrongSumThrough) {
  int errors = 0;
  const Instant until = SteadyClock().now() + std::chrono::minutes(5);
  for (int round = 0; round < 10 || (errors == 0 && SteadyClock().now() < until); ++round) {
    GroupSetup setup;
    setup.timeout = std::chrono::minutes(5);
    ThreadGroup group(setup);
    const auto outcomes = group.run(sum_50_times, with_wires<RacingFabric>(1));
    for (const Status& status : outcomes) {
      if (status) continue;
      EXPECT_EQ(status.error().message.find("WRONG"), std::string::npos);
      ++errors;
    }
  }
  EXPECT_GT(errors, 0) << "the writer never raced: the test shows nothing";
}

// ---- Who may join ----

TEST(Join, AWrongKeyIsRefusedByBoth) {
  GroupSetup setup;
  setup.timeout = std::chrono::minutes(5);
  ThreadGroup group(setup);
  TemporaryDirectory elsewhere;
  ASSERT_TRUE(write_key_file(elsewhere.path() + "/key").ok());
  const auto outcomes = group.run([](Communicator&) { return Status(); },
                                  [&](JoinOptions& options) {
                                    if (options.self.rank == 1) {
                                      options.key_file = elsewhere.path() + "/key";
                                    }
                                  });
  for (const Status& status : outcomes) {
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("rank 0 and rank 1 have different keys"),
              std::string::npos)
        << status.error().message;
  }
}

// The commands of docs/collectives.md.
void make_certificate(const std::string& directory, const std::string& authority, uint32_t rank) {
  const std::string script = concat(
      "cd ", directory, " && exec 2>/dev/null && (test -f ", authority,
      ".pem || openssl req -x509 ",
      "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=", authority,
      " -keyout ", authority, ".key -out ", authority, ".pem) && openssl req -newkey ec -pkeyopt ",
      "ec_paramgen_curve:P-256 -nodes -subj /CN=rank -keyout ", rank, ".key -out ", rank,
      ".csr && printf 'subjectAltName=URI:sealane://test/", rank, "\\n' > ", rank,
      ".ext && openssl x509 -req -in ", rank, ".csr -CA ", authority, ".pem -CAkey ", authority,
      ".key -CAcreateserial -days 30 -extfile ", rank, ".ext -out ", rank, ".pem");
  ASSERT_EQ(std::system(script.c_str()), 0) << script;
}

TEST(Join, CertificatesNameTheRankAndForeignOnesAreRefused) {
  if (std::system("openssl version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no openssl program";
  for (const bool foreign : {false, true}) {
    GroupSetup setup;
    setup.timeout = std::chrono::minutes(5);
    ThreadGroup group(setup);
    const TemporaryDirectory files;
    make_certificate(files.path(), "ca", 0);
    make_certificate(files.path(), foreign ? "other" : "ca", 1);
    const auto outcomes = group.run(sum_50_times, [&](JoinOptions& options) {
      const std::string own = concat(files.path(), "/", options.self.rank);
      options.key_file.clear();
      options.certificate_file = own + ".pem";
      options.private_key_file = own + ".key";
      options.authorities_file = files.path() + "/ca.pem";
    });
    for (const Status& status : outcomes) EXPECT_EQ(status.ok(), !foreign);
    if (foreign) {
      EXPECT_NE(outcome(outcomes).find("not accepted"), std::string::npos) << outcome(outcomes);
    } else {
      EXPECT_EQ(outcome(outcomes), "ok");
    }
  }
}

TEST(Join, SealedAndPlainDoNotMeet) {
  GroupSetup setup;
  setup.timeout = std::chrono::seconds(1);
  ThreadGroup group(setup);
  const auto outcomes = group.run([](Communicator&) { return Status(); },
                                  [](JoinOptions& options) {
                                    if (options.self.rank == 1) options.mode = CommMode::plain;
                                  });
  EXPECT_FALSE(outcomes[0].ok());
  EXPECT_FALSE(outcomes[1].ok());
}

TEST(Join, AKeyOthersCanReadIsRefusedWithTheRemedy) {
  ThreadGroup group({});
  chmod(group.key_file().c_str(), 0644);
  const auto key = read_key_file(group.key_file());
  ASSERT_FALSE(key.ok());
  EXPECT_NE(key.error().message.find("chmod 600 " + group.key_file()), std::string::npos);
  EXPECT_FALSE(write_key_file(group.key_file()).ok()) << "a key was overwritten";
  EXPECT_NE(read_key_file("").error().message.find("sealane keygen"), std::string::npos);
  std::ofstream(group.key_file()) << "short";
  chmod(group.key_file().c_str(), 0600);
  EXPECT_FALSE(read_key_file(group.key_file()).ok());
  unlink(group.key_file().c_str());
  ASSERT_EQ(mkfifo(group.key_file().c_str(), 0600), 0);
  EXPECT_FALSE(read_key_file(group.key_file()).ok()) << "a pipe is no file";
}

TEST(Join, AKeyOfAnotherUserIsRefused) {
  ThreadGroup group({});
  if (chown(group.key_file().c_str(), 12345, static_cast<gid_t>(-1)) != 0) {
    GTEST_SKIP() << "only root can give a file away";
  }
  const auto key = read_key_file(group.key_file());
  ASSERT_FALSE(key.ok());
  EXPECT_NE(key.error().message.find("another user"), std::string::npos);
}

TEST(Join, ARankThatNeverComesIsNamed) {
  GroupSetup setup;
  setup.timeout = std::chrono::milliseconds(300);
  ThreadGroup group(setup);
  const auto outcomes = group.run([](Communicator&) { return Status(); },
                                  [](JoinOptions& options) {
                                    if (options.self.rank == 1) options.rendezvous += "-of-others";
                                  });
  ASSERT_FALSE(outcomes[0].ok());
  EXPECT_NE(outcomes[0].error().message.find("rank 1"), std::string::npos);
}

TEST(Join, TheAttestationCommandDecides) {
  for (const bool accept : {true, false}) {
    GroupSetup setup;
    setup.timeout = std::chrono::minutes(5);
    ThreadGroup group(setup);
    const std::string script = group.key_file() + ".attest";
    std::ofstream(script)
        << "#!/bin/sh\n"
           "case $1 in\n"
           "  produce) echo evidence $SEALANE_ATTEST_BINDING ;;\n"
           "  check) read word binding; test \"$binding\" = \"$SEALANE_ATTEST_BINDING\" "
        << (accept ? ";;" : "&& false ;;") << "\nesac\n";
    chmod(script.c_str(), 0700);
    const auto outcomes = group.run([](Communicator&) { return Status(); },
                                    [&](JoinOptions& options) { options.attest_command = script; });
    if (accept) {
      EXPECT_EQ(outcome(outcomes), "ok");
    } else {
      EXPECT_NE(outcome(outcomes).find("attestation of rank"), std::string::npos);
    }
  }
}

// A quote takes a second, and a rank has many sessions. Ranks are threads here, so one process.
TEST(Join, EvidenceIsProducedOnceForAProcessAndCheckedOnceForARank) {
  GroupSetup setup;
  setup.size = 3;
  setup.timeout = std::chrono::minutes(5);
  ThreadGroup first(setup);
  const std::string script = first.key_file() + ".attest";
  const std::string asked = first.key_file() + ".asked";
  std::ofstream(script) << "#!/bin/sh\n"
                           "echo $1 $SEALANE_ATTEST_RANK >>'"
                        << asked
                        << "'\n"
                           "case $1 in\n"
                           "  produce) echo evidence $SEALANE_ATTEST_BINDING ;;\n"
                           "  check) read word binding; test \"$binding\" = "
                           "\"$SEALANE_ATTEST_BINDING\" ;;\nesac\n";
  chmod(script.c_str(), 0700);
  const auto join = [&](ThreadGroup& group) {
    return outcome(group.run([](Communicator&) { return Status(); },
                             [&](JoinOptions& options) { options.attest_command = script; }));
  };
  EXPECT_EQ(join(first), "ok");
  ThreadGroup second(setup);
  EXPECT_EQ(join(second), "ok");
  std::ifstream lines(asked);
  std::map<std::string, int> times;
  for (std::string line; std::getline(lines, line);) ++times[line.substr(0, 5)];
  EXPECT_EQ(times["produ"], 1);
  // Three ranks; two that are checked at once may both ask before one knows.
  EXPECT_GE(times["check"], 3);
  EXPECT_LE(times["check"], 6) << "none for the second group";
}

}  // namespace
}  // namespace sealane
