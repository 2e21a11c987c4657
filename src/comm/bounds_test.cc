// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does a rank stay within its memory whatever the message, and does it use no CPU while it waits?

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>

#include "comm/process_fixture.h"

namespace sealane {
namespace {

// What the system says, not what we count. Sanitizers have memory of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
uint64_t status_kib(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(field + ":", 0) == 0) return std::stoull(line.substr(field.size() + 1));
  }
  return 0;
}

TEST(Bounds, AProcessGrowsByLessThan32MiBWhateverTheMessage) {
  for (const TransportKind transport : {TransportKind::shm, TransportKind::tcp}) {
    GroupSetup setup;
    setup.size = 3;
    setup.transport = transport;
    ProcessGroup group(setup);
    group.start([](Communicator& comm) -> std::string {
      uint64_t most = 0;
      for (const size_t bytes : {1_MiB, 16_MiB, 96_MiB}) {
        std::vector<float> values(bytes / sizeof(float), 1);
        const uint64_t before = status_kib("VmRSS");
        if (const Status status = comm.run(sum_of(values)); !status) return status.error().message;
        most = std::max(most, status_kib("VmHWM") - std::min(status_kib("VmHWM"), before));
      }
      return std::to_string(most);
    });
    for (uint32_t rank = 0; rank < 3; ++rank) {
      const std::string answer = group.end_of(rank).answer;
      ASSERT_FALSE(answer.empty());
      ASSERT_EQ(answer.find_first_not_of("0123456789"), std::string::npos) << answer;
      EXPECT_LT(std::stoull(answer), 32u << 10) << "KiB";
    }
  }
}
#endif

TEST(Bounds, OwnCountOfMemoryStaysWithin32MiB) {
  for (const TransportKind transport :
       {TransportKind::shm, TransportKind::tcp, TransportKind::automatic}) {
    GroupSetup setup;
    setup.size = 9;
    setup.transport = transport;
    setup.tcp_streams = 4;
    if (transport == TransportKind::automatic) setup.hosts = two_hosts(setup.size);
    ThreadGroup group(setup);
    EXPECT_EQ(outcome(group.run([](Communicator& comm) -> Status {
                if (comm.memory_bytes() <= 32_MiB) return {};
                return internal_error(concat(comm.memory_bytes(), " bytes"));
              })),
              "ok");
  }
}

uint64_t cpu_ms() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1000 + static_cast<uint64_t>(time.tv_usec) / 1000;
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

// Rank 0 comes late; what the others use meanwhile is a small part of one core.
TEST(Bounds, IdleAndWaitingRanksUseNoCpu) {
  constexpr auto kPause = std::chrono::milliseconds(600);
  for (const TransportKind transport :
       {TransportKind::shm, TransportKind::tcp, TransportKind::automatic}) {
    GroupSetup setup;
    setup.size = 4;
    setup.transport = transport;
    if (transport == TransportKind::automatic) setup.hosts = two_hosts(setup.size);
    ProcessGroup group(setup);
    group.start([&](Communicator& comm) -> std::string {
      std::vector<float> values(1000, 1);
      // Asynchronous, so that the communicator has its thread.
      if (const Status s = comm.start(sum_of(values)).get(); !s) return s.error().message;
      const uint64_t before = cpu_ms();
      const Instant start = SteadyClock().now();
      std::this_thread::sleep_for(kPause);                             // nothing to do
      if (comm.self().rank == 0) std::this_thread::sleep_for(kPause);  // the others wait
      if (const Status s = comm.run(sum_of(values)); !s) return s.error().message;
      const auto took = SteadyClock().now() - start;  // longer on a busy machine
      return std::to_string(1'000'000'000 * (cpu_ms() - before) /
                            static_cast<uint64_t>(took.count()));
    });
    for (uint32_t rank = 0; rank < 4; ++rank) {
      const std::string answer = group.end_of(rank).answer;
      ASSERT_FALSE(answer.empty());
      ASSERT_EQ(answer.find_first_not_of("0123456789"), std::string::npos) << answer;
      EXPECT_LT(std::stoull(answer), 100u) << "ms of CPU per second";
    }
  }
}

}  // namespace
}  // namespace sealane
