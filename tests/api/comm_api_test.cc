// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Can a program that has only libsealane.so and its headers do what they promise?

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sealane/comm.h"
#include "sealane/sealane.h"

namespace {

using sealane::Comm;
using sealane::CommError;
using sealane::CommOptions;
using sealane::DataType;
using sealane::ReduceOp;

class Api : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/sealane-api-XXXXXX";
    directory_ = mkdtemp(pattern);
    key_ = directory_ + "/key";
    std::ofstream(key_) << std::string(64, 'a') << '\n';
    chmod(key_.c_str(), 0600);
  }
  void TearDown() override { ASSERT_EQ(std::system(("rm -rf " + directory_).c_str()), 0); }

  CommOptions options(int rank, int size) const {
    CommOptions out;
    out.rank = rank;
    out.size = size;
    out.rendezvous = "file:" + directory_ + "/meet";
    out.key_file = key_;
    out.timeout = std::chrono::seconds(20);
    return out;
  }

  template <typename Body>
  static void on_ranks(int size, Body body) {
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < size; ++rank) ranks.emplace_back([&body, rank] { body(rank); });
    for (std::thread& rank : ranks) rank.join();
  }

  std::string directory_;
  std::string key_;
};

TEST_F(Api, CollectivesInCpp) {
  on_ranks(3, [&](int rank) {
    Comm comm(options(rank, 3));
    EXPECT_EQ(comm.rank(), rank);
    EXPECT_EQ(comm.size(), 3);
    std::vector<double> values(1000, rank + 1);
    comm.all_reduce(values.data(), values.data(), values.size(), DataType::float64, ReduceOp::avg);
    EXPECT_EQ(values, std::vector<double>(1000, 2.0));

    std::vector<float> a(5, 1), b(70'000, 2);
    const sealane::Work work = comm.start_all_reduce({{a.data(), a.size()}, {b.data(), b.size()}},
                                                     DataType::float32, ReduceOp::sum);
    work.wait();
    EXPECT_TRUE(work.done());
    EXPECT_EQ(a, std::vector<float>(5, 3));
    EXPECT_EQ(b, std::vector<float>(70'000, 6));

    std::vector<int64_t> token(1, rank == 2 ? 42 : 0);
    comm.broadcast(token.data(), token.data(), 1, DataType::int64, 2);
    EXPECT_EQ(token[0], 42);
    comm.barrier();
  });
}

TEST_F(Api, MeetsThroughAStoreOfTheProgram) {
  std::mutex mutex;
  std::map<std::string, std::string> store;
  on_ranks(2, [&](int rank) {
    CommOptions mine = options(rank, 2);
    mine.rendezvous.clear();
    mine.store_set = [&](const std::string& key, const std::string& value) {
      const std::lock_guard lock(mutex);
      store[key] = value;
    };
    mine.store_get = [&](const std::string& key, std::chrono::milliseconds) {
      while (true) {
        {
          const std::lock_guard lock(mutex);
          if (const auto found = store.find(key); found != store.end()) return found->second;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    };
    Comm comm(mine);
    comm.barrier();
  });
}

TEST_F(Api, AKeyInMemoryNeedsNoFileAndIsChecked) {
  on_ranks(2, [&](int rank) {
    CommOptions mine = options(rank, 2);
    mine.key_file = "/nonexistent";
    mine.key = std::string(32, 'k');
    Comm comm(mine);
    std::vector<float> values(100'000, 1);
    comm.all_reduce(values.data(), values.data(), values.size(), DataType::float32, ReduceOp::sum);
    EXPECT_EQ(values[99'999], 2);
    EXPECT_GE(comm.traffic().records, 2u);
    EXPECT_GE(comm.traffic().bytes, 100'000u);
  });
  CommOptions odd = options(0, 2);
  odd.key = "short";
  EXPECT_THROW(Comm{odd}, CommError);
}

TEST_F(Api, TwoGroupsSideBySide) {
  on_ranks(2, [&](int rank) {
    CommOptions first = options(rank, 2), second = options(rank, 2);
    first.group = "one";
    second.group = "two";
    second.transport = sealane::Transport::tcp;
    Comm one(first), two(second);
    int32_t value = 1;
    one.all_reduce(&value, &value, 1, DataType::int32, ReduceOp::sum);
    two.all_reduce(&value, &value, 1, DataType::int32, ReduceOp::sum);
    EXPECT_EQ(value, 4);
  });
}

TEST_F(Api, ErrorsAreExceptionsThatSayWhatToDo) {
  CommOptions none = options(0, 2);
  none.key_file.clear();
  unsetenv("SEALANE_KEY_FILE");
  try {
    Comm comm(none);
    FAIL() << "joined without a key";
  } catch (const CommError& error) {
    EXPECT_EQ(error.kind(), CommError::Kind::usage);
    EXPECT_NE(std::string(error.what()).find("sealane keygen"), std::string::npos);
  }
}

TEST_F(Api, CollectivesInC) {
  EXPECT_EQ(sealane_abi_version(), SEALANE_ABI_VERSION);
  on_ranks(2, [&](int rank) {
    sealane_comm_options given;
    sealane_comm_options_init(&given);
    const std::string meet = "file:" + directory_ + "/meet-c";
    given.rank = rank;
    given.size = 2;
    given.rendezvous = meet.c_str();
    given.key_file = key_.c_str();
    sealane_comm* comm = nullptr;
    ASSERT_EQ(sealane_comm_create(&given, &comm), SEALANE_OK) << sealane_last_error();
    float values[3] = {1, 2, 3};
    EXPECT_EQ(sealane_all_reduce(comm, values, values, 3, SEALANE_FLOAT32, SEALANE_SUM),
              SEALANE_OK);
    EXPECT_EQ(values[2], 6);
    sealane_work* work = nullptr;
    EXPECT_EQ(
        sealane_start_all_reduce(comm, values, values, 3, SEALANE_FLOAT32, SEALANE_MAX, &work),
        SEALANE_OK);
    EXPECT_EQ(sealane_work_wait(work), SEALANE_OK);
    EXPECT_EQ(sealane_all_reduce(comm, values, values, 3, 99, SEALANE_SUM), SEALANE_ERROR_USAGE);
    EXPECT_STRNE(sealane_last_error(), "");
    EXPECT_EQ(sealane_barrier(comm), SEALANE_OK);
    sealane_comm_destroy(comm);
  });
}

TEST_F(Api, AnOlderCallerOfTheCInterfaceIsUnderstood) {
  sealane_comm_options given;
  sealane_comm_options_init(&given);
  given.rank = 0;
  given.size = 1;
  given.timeout_ms = -12345;  // beyond what the caller says it knows
  given.struct_bytes = offsetof(sealane_comm_options, timeout_ms);
  given.key_file = key_.c_str();
  sealane_comm* comm = nullptr;
  EXPECT_EQ(sealane_comm_create(&given, &comm), SEALANE_OK) << sealane_last_error();
  sealane_comm_destroy(comm);
  given.struct_bytes = 0;
  EXPECT_EQ(sealane_comm_create(&given, &comm), SEALANE_ERROR_USAGE);
}

}  // namespace
