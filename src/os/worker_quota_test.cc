// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do workers keep to the cores, the quota and the node they may use, leave to others what those
// use, and share the machine with other processes, dead ones included?

#include "os/worker_quota.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "os/worker_pool.h"

namespace sealane {
namespace {

namespace fs = std::filesystem;

// A machine made of files.
class WorkerQuotaTest : public testing::Test {
 protected:
  WorkerQuotaTest() {
    EXPECT_NE(mkdtemp(root_.data()), nullptr);
    write("/proc/loadavg", "0.00 0.00 0.00 1/100 1234\n");
  }
  ~WorkerQuotaTest() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  // Ticks that each core has been busy and idle.
  void write_stat(const std::vector<std::pair<int, int>>& cores) const {
    std::string text = "cpu  1 2 3 4 5 6 7 8\n";
    for (size_t i = 0; i < cores.size(); ++i) {
      text += "cpu" + std::to_string(i) + " " + std::to_string(cores[i].first) + " 0 0 " +
              std::to_string(cores[i].second) + " 0 0 0 0 0 0\n";
    }
    write("/proc/stat", text + "intr 12345\n");
  }
  static std::vector<unsigned> first(unsigned count) {
    std::vector<unsigned> out;
    for (unsigned core = 0; core < count; ++core) out.push_back(core);
    return out;
  }
  CpuTopology cores(unsigned count, unsigned here = 0) const {
    return read_cpu_topology({root_}, first(count), here);
  }

  std::string root_ = fs::temp_directory_path() / "sealane-cores-XXXXXX";
};

TEST(CpuTopology, KernelTextsAreRead) {
  EXPECT_EQ(parse_core_list("0-2,8\n"), (std::vector<unsigned>{0, 1, 2, 8}));
  EXPECT_TRUE(parse_core_list("").empty());
  EXPECT_TRUE(parse_core_list("nonsense").empty());
  EXPECT_DOUBLE_EQ(parse_quota("150000 100000\n"), 1.5);
  EXPECT_GT(parse_quota("max 100000\n"), 1e6);
  EXPECT_GT(parse_quota("-1\n 100000\n"), 1e6);
  EXPECT_GT(parse_quota(""), 1e6);
  const char* const groups = "4:cpu,cpuacct:/a/b\n3:memory:/m\n0::/user/one\n";
  EXPECT_EQ(group_of(groups, "cpu"), "/a/b");
  EXPECT_EQ(group_of(groups, ""), "/user/one");
  EXPECT_EQ(group_of(groups, "pids"), "");
  EXPECT_EQ(group_of("0::/\n", ""), "");
}

TEST_F(WorkerQuotaTest, HalfOfTheCoresAtMost) {
  EXPECT_EQ(cores(1).workers_max(), 1u);
  EXPECT_EQ(cores(2).workers_max(), 1u);
  EXPECT_EQ(cores(12).workers_max(), 6u);
  EXPECT_EQ(cores(200).workers_max(), 16u);
  EXPECT_EQ(cores(0).workers_max(), 1u) << "nothing could be read";
}

TEST_F(WorkerQuotaTest, AQuotaCountsWhereverItIsSet) {
  write("/proc/self/cgroup", "0::/pod/container\n");
  write("/sys/fs/cgroup/pod/container/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/pod/cpu.max", "400000 100000\n");
  EXPECT_DOUBLE_EQ(cores(32).quota, 4);
  EXPECT_EQ(cores(32).workers_max(), 2u);
  write("/proc/self/cgroup", "1:cpu:/old\n0::/pod\n");
  write("/sys/fs/cgroup/cpu/old/cpu.cfs_quota_us", "200000\n");
  write("/sys/fs/cgroup/cpu/old/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(cores(32).quota, 2);
}

TEST_F(WorkerQuotaTest, WorkersStayOnTheNodeOfWhoAsks) {
  write("/sys/devices/system/node/node0/cpulist", "0-7\n");
  write("/sys/devices/system/node/node1/cpulist", "8-15\n");
  write("/sys/devices/system/node/node2/cpulist", "\n");  // memory only
  const CpuTopology second = cores(12, 9);
  EXPECT_EQ(second.nodes, 2u);
  EXPECT_EQ(second.node, 1u);
  EXPECT_EQ(second.own, (std::vector<unsigned>{8, 9, 10, 11}));
  EXPECT_EQ(second.of_node, 8u);
  EXPECT_TRUE(second.stay);
  EXPECT_EQ(second.workers_max(), 2u);
  EXPECT_FALSE(cores(8, 0).stay) << "it cannot leave the node";
}

TEST_F(WorkerQuotaTest, WhatOthersUseIsLeftToThem) {
  const CpuTopology eight = cores(8);
  EXPECT_EQ(workers_for(eight, 0, 0), 4u);
  EXPECT_EQ(workers_for(eight, 6.2, 0), 2u);
  EXPECT_EQ(workers_for(eight, 8, 0), 1u);
  EXPECT_EQ(workers_for(eight, 30, 0), 1u);
  EXPECT_EQ(workers_for(eight, 7, 3), 4u) << "three of the seven were ours";
}

TEST_F(WorkerQuotaTest, LoadIsTheLoadAverageFirstAndThenWhatTheCoresDid) {
  write("/proc/loadavg", "2.50 1.00 0.50 3/100 1234\n");
  write_stat({{100, 900}, {100, 900}, {0, 0}});
  CoreLoad load({root_}, {0, 1});
  EXPECT_DOUBLE_EQ(load.look(), 2.5);
  write_stat({{200, 900}, {150, 950}, {999, 0}});  // the third core is not ours to run on
  EXPECT_DOUBLE_EQ(load.look(), 1.5);
  EXPECT_DOUBLE_EQ(load.look(), 0) << "no time has passed";
}

TEST_F(WorkerQuotaTest, MemoryIsThatOfTheNodeWithinTheGroupsLimit) {
  EXPECT_EQ(read_memory_bytes({root_}, 0), 0u);
  write("/proc/meminfo", "MemTotal:       2000 kB\nMemFree:         100 kB\n");
  EXPECT_EQ(read_memory_bytes({root_}, 0), 2000u << 10);
  write("/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal:       1200 kB\n");
  EXPECT_EQ(read_memory_bytes({root_}, 1), 1200u << 10);
  write("/proc/self/cgroup", "0::/a/b\n");
  write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  EXPECT_EQ(read_memory_bytes({root_}, 1), 1200u << 10);
  write("/sys/fs/cgroup/a/memory.max", "65536\n");
  EXPECT_EQ(read_memory_bytes({root_}, 1), 65536u);
}

TEST_F(WorkerQuotaTest, SlotsAreSharedAndComeBack) {
  SharedUnits one(root_, "workers", 0, 6);
  SharedUnits other(root_, "workers", 0, 6);
  SharedUnits elsewhere(root_, "workers", 1, 6);
  EXPECT_EQ(one.want(4), 4u);
  EXPECT_EQ(other.want(4), 2u);
  EXPECT_EQ(elsewhere.want(6), 6u) << "another node";
  EXPECT_EQ(one.want(1), 1u);
  EXPECT_EQ(other.want(4), 4u);
  EXPECT_EQ(one.want(9), 2u);
}

TEST_F(WorkerQuotaTest, SoAreThoseOfAProcessThatDied) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    SharedUnits theirs(root_, "workers", 0, 4);
    const char held = static_cast<char>(theirs.want(4));
    static_cast<void>(!::write(ready[1], &held, 1));
    pause();
    _exit(0);
  }
  char held = 0;
  ASSERT_EQ(read(ready[0], &held, 1), 1);
  EXPECT_EQ(held, 4);
  SharedUnits mine(root_, "workers", 0, 4);
  EXPECT_EQ(mine.want(2), 0u);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(mine.want(2), 2u);
  close(ready[0]);
  close(ready[1]);
}

TEST_F(WorkerQuotaTest, WithoutAPlaceForSlotsThereIsNoCommonBound) {
  SharedUnits none(root_ + "/missing", "workers", 0, 1);
  EXPECT_EQ(none.want(5), 5u);
}

TEST_F(WorkerQuotaTest, APoolWorksWithWhatItGets) {
  write_stat({{0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}});
  SharedUnits greedy(root_, "workers", 0, 4);  // half of eight cores, all taken
  ASSERT_EQ(greedy.want(4), 4u);
  WorkerPool& pool =
      *new WorkerPool(std::make_unique<WorkerQuota>(cores(8), KernelFiles{root_}, root_));
  EXPECT_EQ(pool.size(), 1u);
  EXPECT_FALSE(pool.post([](void*) {}, nullptr));
  std::atomic<int> steps{0};
  pool.each(50, [&](size_t) { ++steps; });
  EXPECT_EQ(steps, 50);
  greedy.want(0);
  WorkerPool& lucky =
      *new WorkerPool(std::make_unique<WorkerQuota>(cores(8), KernelFiles{root_}, root_));
  EXPECT_EQ(lucky.size(), 4u);
  lucky.each(50, [&](size_t) { ++steps; });
  EXPECT_EQ(steps, 100);
}

}  // namespace
}  // namespace sealane
