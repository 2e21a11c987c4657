// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A process with a group forks: can the child use, hang on or keep alive what is not its own?

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/endpoint.h"
#include "comm/group_fixture.h"
#include "comm/rendezvous.h"
#include "seal/find_in_memory_for_tests.h"

namespace {

// Secrets of TLS sessions as OpenSSL tells them to a log of keys: of the last session that was made
// while somebody listened. Inverted, so that they are not one more copy.
std::mutex told_mutex;
bool wanted = false;
std::map<std::string, std::vector<uint8_t>> told;
std::atomic<SSL_CTX_keylog_cb_func> callback_of_the_library{nullptr};

void tell(const std::string& name, uint8_t byte) {
  told[name].push_back(static_cast<uint8_t>(~byte));
}

// This end's part of the Diffie-Hellman exchange.
void tell_ephemeral(const SSL* ssl) {
  EVP_PKEY* key = nullptr;
  std::array<uint8_t, 32> secret{};
  size_t length = secret.size();
  if (SSL_get_tmp_key(const_cast<SSL*>(ssl), &key) != 1) return;
  told["EPHEMERAL"].clear();
  if (EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PRIV_KEY, secret.data(), length,
                                      &length) == 1) {
    for (const uint8_t byte : secret) tell("EPHEMERAL", byte);
  }
  OPENSSL_cleanse(secret.data(), secret.size());
  EVP_PKEY_free(key);
}

void listen_too(const SSL* ssl, const char* line) {
  callback_of_the_library.load()(ssl, line);
  const std::lock_guard lock(told_mutex);
  if (!wanted) return;
  const std::string_view text(line);
  const std::string_view digits = text.substr(text.rfind(' ') + 1);
  const std::string name(text.substr(0, text.find(' ')));
  told[name].clear();
  const auto value = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    tell(name, static_cast<uint8_t>(value(digits[i]) << 4 | value(digits[i + 1])));
  }
  if (name == "CLIENT_TRAFFIC_SECRET_0") tell_ephemeral(ssl);
}

// As if some thread had OpenSSL's lock of all objects' ends; how many came to it.
std::atomic<bool> somebody_ends{false};
std::atomic<int> ends{0};

}  // namespace

// Before the one of OpenSSL.
extern "C" void SSL_CTX_set_keylog_callback(SSL_CTX* context, SSL_CTX_keylog_cb_func callback) {
  static const auto real = reinterpret_cast<void (*)(SSL_CTX*, SSL_CTX_keylog_cb_func)>(
      dlsym(RTLD_NEXT, "SSL_CTX_set_keylog_callback"));
  callback_of_the_library.store(callback);
  real(context, listen_too);
}

extern "C" __attribute__((visibility("default"))) void CRYPTO_free_ex_data(int class_index,
                                                                           void* object,
                                                                           CRYPTO_EX_DATA* data) {
  static const auto real = reinterpret_cast<void (*)(int, void*, CRYPTO_EX_DATA*)>(
      dlsym(RTLD_NEXT, "CRYPTO_free_ex_data"));
  while (somebody_ends) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ++ends;
  real(class_index, object, data);
}

namespace sealane {
namespace {

constexpr unsigned kPatienceSeconds = 300;  // of a child that hangs

// Exit status of a child of this process; -1 if it had to be ended.
int end_of(pid_t child, std::chrono::seconds patience) {
  int status = 0;
  const auto until = std::chrono::steady_clock::now() + patience;
  while (waitpid(child, &status, WNOHANG) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (std::chrono::steady_clock::now() > until) kill(child, SIGKILL);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Exit status of a child that runs `body`; -1 if it had to be ended.
template <typename Body>
int in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(kPatienceSeconds);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Fork, AChildSealsNothingAndTheParentGoesOn) {
  for (const TransportKind transport : {TransportKind::shm, TransportKind::tcp}) {
    GroupSetup setup;
    setup.transport = transport;
    ThreadGroup group(setup);
    const auto outcomes = group.run([](Communicator& comm) -> Status {
      std::vector<float> values(1000, 1);
      if (Status status = comm.run(sum_of(values)); !status) return status;
      if (comm.self().rank == 0) {
        const int refused = in_child([&] {
          const Status ran = comm.run(sum_of(values));
          const Status started = comm.start(sum_of(values)).get();
          const bool both = !ran && ran.error().kind == ErrorKind::usage && !started &&
                            started.error().message.find("fork()") != std::string::npos;
          return both ? 0 : 1;
        });
        if (refused != 0) return internal_error(concat("child: ", refused));
      }
      if (Status status = comm.run(sum_of(values)); !status) return status;
      return values == std::vector<float>(1000, 4) ? Status() : Status(internal_error("wrong"));
    });
    EXPECT_EQ(outcome(outcomes), "ok");
  }
}

// It ends inside of fork() what it has of the group, before any alarm of its own.
TEST(Fork, AChildWaitsForNoThreadThatIsInTheMiddleOfOpenSSL) {
  const int ends_before = ends;
  for (const bool busy : {false, true}) {
    ThreadGroup group({});
    std::atomic<bool> looked = false;
    const auto outcomes = group.run([&](Communicator& comm) -> Status {
      std::vector<float> values(10, 1);
      if (comm.self().rank == 1) {
        while (!looked) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return comm.run(sum_of(values));
      }
      std::shared_future<Status> running;
      if (busy) running = comm.start(sum_of(values));
      while (busy && comm.awaited() != 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      somebody_ends = true;
      const pid_t child = fork();
      if (child == 0) _exit(0);
      somebody_ends = false;  // in the child it stays so
      EXPECT_EQ(end_of(child, std::chrono::minutes(1)), 0) << busy;
      looked = true;
      return busy ? running.get() : comm.run(sum_of(values));
    });
    EXPECT_EQ(outcome(outcomes), "ok");
  }
  EXPECT_GT(ends, ends_before) << "OpenSSL ends its objects in another way: nothing was tested";
}

TEST(Fork, AChildCanEndTheCommunicatorWhoseThreadIsNotThere) {
  GroupSetup setup;
  setup.size = 1;
  const ThreadGroup group(setup);
  auto comm = Communicator::create(group.options(0));
  ASSERT_TRUE(comm.ok());
  std::vector<float> values(10, 1);
  ASSERT_TRUE((*comm)->start(sum_of(values)).get().ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // its thread goes back to sleep
  EXPECT_EQ(in_child([&] {
              comm->reset();
              return 0;
            }),
            0);
  EXPECT_TRUE((*comm)->start(sum_of(values)).get().ok());
}

// A thread that is not in the child has the lock that the end of a callback wants: as Python's
// threads have the interpreter's, which what a callback holds of it needs to be let go.
TEST(Fork, AChildDoesNotLetGoWhatCallbacksOfQueuedOperationsHold) {
  ThreadGroup group({});
  std::mutex interpreter;
  std::atomic<bool> looked = false;
  const auto wait_for_look = [&] {
    while (!looked) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  const auto outcomes = group.run([&](Communicator& comm) -> Status {
    if (comm.self().rank == 1) {
      wait_for_look();
      return sum_until_error(comm, 10, 2);
    }
    std::shared_ptr<int> held(new int(0), [&](const int* number) {
      delete number;
      const std::lock_guard lock(interpreter);
    });
    std::vector<float> first(10, 1), second(10, 1);
    const auto running = comm.start(sum_of(first));  // waits for rank 1
    const auto queued = comm.start(sum_of(second), [held](const Status&) {});
    held.reset();
    std::atomic<bool> taken = false;
    std::thread owner([&] {
      const std::lock_guard lock(interpreter);
      taken = true;
      wait_for_look();
    });
    while (!taken) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(in_child([&] { return queued.get().ok() ? 1 : 0; }), 0);
    looked = true;
    owner.join();
    return running.get() ? queued.get() : running.get();
  });
  EXPECT_EQ(outcome(outcomes), "ok");
}

TEST(Fork, AChildDoesNotKeepADeadRankAlive) {
  const ThreadGroup group({});
  const pid_t rank1 = fork();
  if (rank1 == 0) {
    setpgid(0, 0);
    auto comm = Communicator::create(group.options(1));
    if (fork() == 0) {
      alarm(kPatienceSeconds);
      while (true) pause();
    }
    _exit(0);
  }
  auto comm = Communicator::create(group.options(0));
  ASSERT_TRUE(comm.ok()) << comm.error().message;
  std::vector<float> values(10, 1);
  const Status status = (*comm)->run(sum_of(values));
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("rank 1 is gone"), std::string::npos)
      << status.error().message;
  kill(-rank1, SIGKILL);  // the child that outlived it
  waitpid(rank1, nullptr, 0);
}

Needle needle_of(const std::string& label, size_t bytes = 48) {
  std::vector<uint8_t> secret = told[label];
  EXPECT_EQ(secret.size(), bytes) << label;
  for (uint8_t& byte : secret) byte = static_cast<uint8_t>(~byte);
  Needle needle(secret);
  wipe(secret);
  return needle;
}

// Whatever the other thread is in the middle of: also of a session, to which it listens twenty
// times a second. What all keys come from is nobody's any more once they are there.
TEST(Fork, AChildHasNothingOfASessionAlsoWhileAnOperationRuns) {
  if (!kMemoryIsSearchable) GTEST_SKIP() << "a sanitizer's memory is too large to search";
  wanted = true;
  ThreadGroup group({});
  std::atomic<bool> looked = false;
  const auto outcomes = group.run([&](Communicator& comm) -> Status {
    std::vector<float> values(10, 1);
    if (comm.self().rank == 1) {
      while (!looked) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return comm.run(sum_of(values));
    }
    const auto running = comm.start(sum_of(values));
    while (comm.awaited() != 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Needle exporter = needle_of("EXPORTER_SECRET");
    Needle traffic = needle_of("CLIENT_TRAFFIC_SECRET_0");
    EXPECT_EQ(exporter.places(), "");
    EXPECT_EQ(needle_of("EPHEMERAL", 32).places(), "");
    EXPECT_NE(traffic.places(), "") << "it is not what was looked for";
    EXPECT_EQ(in_child([&] { return traffic.places().empty() ? 0 : 1; }), 0);
    looked = true;
    return running.get();
  });
  wanted = false;
  EXPECT_EQ(outcome(outcomes), "ok");
}

// A child made by the bare system call, without handlers, as the first process of a new namespace.
// Made while no other thread runs: one that held the allocator's lock would hold it in the child
// for ever. Such a process ignores its own alarm, so whoever waits for it ends it.
class FirstProcess {
 public:
  template <typename Body>
  explicit FirstProcess(Body body) {
    const long flags = (geteuid() == 0 ? 0 : CLONE_NEWUSER) | CLONE_NEWPID | SIGCHLD;
    child_ = static_cast<pid_t>(syscall(SYS_clone, flags, 0, 0, 0, 0));
    if (child_ == 0) _exit(body());
  }
  static constexpr int kNone = 77;    // there could be no namespace
  static constexpr int kNoEnd = 78;   // it was ended by whoever waited
  static constexpr int kKilled = 79;  // it died of a signal

  // Its exit status, or one of these.
  int wait(std::chrono::seconds patience) {
    if (child_ < 0) return kNone;
    int status = 0;
    const auto until = std::chrono::steady_clock::now() + patience;
    while (waitpid(child_, &status, WNOHANG) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (std::chrono::steady_clock::now() < until) continue;
      kill(child_, SIGKILL);
      waitpid(child_, &status, 0);
      return kNoEnd;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : kKilled;
  }

 private:
  pid_t child_ = -1;
};

// Both have process number 1, both would seal at the same position.
TEST(Fork, AChildWithTheSameProcessNumberSealsNothing) {
  GroupSetup setup;
  setup.timeout = std::chrono::minutes(5);
  const ThreadGroup group(setup);
  FirstProcess rank1([&] {
    if (getpid() != 1) return 1;
    auto comm = Communicator::create(group.options(1));
    if (!comm) return 2;
    std::vector<float> values(100, 1);
    if (!(*comm)->run(sum_of(values))) return 3;
    return FirstProcess([&] {
             if (getpid() != 1) return FirstProcess::kNone;
             const Status status = (*comm)->run(sum_of(values));
             return !status && status.error().message.find("fork()") != std::string::npos ? 0 : 4;
           })
        .wait(std::chrono::seconds(200));
  });
  std::thread other([&] {
    auto comm = Communicator::create(group.options(0));
    std::vector<float> values(100, 1);
    while (comm && (*comm)->run(sum_of(values))) {
    }
  });
  const int answer = rank1.wait(std::chrono::seconds(400));
  other.join();
  if (answer == FirstProcess::kNone) GTEST_SKIP() << "no namespaces to be had here";
  EXPECT_EQ(answer, 0);
}

// A rank in a process of its own, whose other thread runs `body` with a child of its, which
// outlives it. All of them end with the object.
class RankWithChild {
 public:
  RankWithChild(const std::function<void()>& body, const std::function<bool()>& ready)
      : process_(fork()) {
    if (process_ != 0) return;
    setpgid(0, 0);
    std::thread(body).detach();
    while (!ready()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (fork() == 0) {
      alarm(kPatienceSeconds);
      while (true) pause();
    }
    raise(SIGKILL);
  }
  ~RankWithChild() {
    wait_until_dead();
    kill(-process_, SIGKILL);
  }
  void wait_until_dead() {
    if (!std::exchange(dead_, true)) waitpid(process_, nullptr, 0);
  }

 private:
  pid_t process_;
  bool dead_ = false;
};

TEST(Fork, WhileAnOperationRunsTheChildDoesNotKeepADeadRankAlive) {
  for (const TransportKind transport : {TransportKind::shm, TransportKind::tcp}) {
    GroupSetup setup;
    setup.transport = transport;
    setup.timeout = std::chrono::minutes(5);
    const ThreadGroup group(setup);
    std::atomic<Communicator*> joined = nullptr;
    RankWithChild rank1(
        [&] {
          auto comm = Communicator::create(group.options(1));
          if (!comm) _exit(1);
          joined = comm->get();
          static_cast<void>(sum_until_error(**comm, 1000, kEndless));
        },
        [&] { return joined != nullptr && joined.load()->awaited() == 0; });
    auto comm = Communicator::create(group.options(0));
    ASSERT_TRUE(comm.ok()) << comm.error().message;
    rank1.wait_until_dead();  // which it is once it has waited for this rank in an operation
    const Status status = sum_until_error(**comm, 1000, kEndless);
    EXPECT_NE(status.error().message.find("rank 1 is gone"), std::string::npos)
        << status.error().message;
  }
}

// Rank 2 has an address and never says a word: the other two wait for it.
TEST(Fork, WhileAGroupIsJoinedTheChildDoesNotKeepADeadRankAlive) {
  GroupSetup setup;
  setup.size = 3;
  setup.timeout = std::chrono::minutes(10);
  const ThreadGroup group(setup);
  // Evidence is asked of rank 1 once rank 0 has heard its name.
  const std::string heard = group.key_file() + ".heard";
  const auto attested = [&](uint32_t rank) {
    JoinOptions options = group.options(rank);
    options.attest_command = concat(rank == 1 ? concat("touch ", heard, "; ") : "", "echo ok #");
    return options;
  };
  const RankWithChild rank1([&] { auto comm = Communicator::create(attested(1)); },
                            [&] { return std::filesystem::exists(heard); });
  auto silent = open_listeners(false);
  ASSERT_TRUE(silent.ok());
  JoinOptions absent = group.options(2);
  auto meeting = make_rendezvous(absent);
  ASSERT_TRUE(meeting.ok());
  // Leaves its address, and does not wait for the others'.
  static_cast<void>((*meeting)->exchange(absent.self, silent->endpoint.encode(), Instant()));
  const auto comm = Communicator::create(attested(0));
  ASSERT_FALSE(comm.ok());
  EXPECT_NE(comm.error().message.find("rank 1 left while joining"), std::string::npos)
      << comm.error().message;
}

}  // namespace
}  // namespace sealane
