// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Can a program that has only libsealane.so and its headers do what they promise?

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
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
    out.timeout = std::chrono::minutes(5);
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

TEST_F(Api, LabelsOfCallsAreComparedAndNamed) {
  using sealane::CallLabel;
  const auto product = [](CallLabel::Op op) {
    return CallLabel{CallLabel::Kind::all_reduce, CallLabel::Type::int8, op, -1};
  };
  std::vector<std::string> errors(2);
  on_ranks(2, [&](int rank) {
    Comm comm(options(rank, 2));
    std::vector<uint8_t> mine(4, 1), all(8);
    const auto gather = [&](const CallLabel& label) {
      comm.start_all_gather(mine.data(), all.data(), 4, DataType::uint8, label).wait();
    };
    gather(product(CallLabel::Op::product));
    gather({CallLabel::Kind::gather, CallLabel::Type{127}, CallLabel::Op::none, 1});
    for (const CallLabel& none :
         {CallLabel{CallLabel::Kind{9}, {}, {}, -1}, CallLabel{{}, CallLabel::Type{128}, {}, -1},
          CallLabel{{}, {}, CallLabel::Op{9}, -1}, CallLabel{CallLabel::Kind::gather, {}, {}, 2}}) {
      EXPECT_THROW(gather(none), CommError);  // and the group is none the worse for it
    }
    try {
      gather(product(rank == 0 ? CallLabel::Op::product : CallLabel::Op::bit_xor));
    } catch (const CommError& error) {
      errors[static_cast<size_t>(rank)] = error.what();
    }
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("all_reduce 2 of 4 bytes int8 product"), std::string::npos) << error;
    EXPECT_NE(error.find("all_reduce 2 of 4 bytes int8 bxor"), std::string::npos) << error;
  }
}

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

// How often these bytes, each inverted so that they are not what is looked for, are in memory that
// can be written.
int times_in_memory(const std::vector<unsigned char>& inverted) {
  std::ifstream maps("/proc/self/maps");
  int found = 0;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    char mode[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, mode) != 3) continue;
    if (mode[0] != 'r' || mode[1] != 'w') continue;
    std::vector<unsigned char> bytes(end - begin);
    const iovec to = {bytes.data(), bytes.size()};
    const iovec from = {reinterpret_cast<void*>(begin), bytes.size()};
    const ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
    for (ssize_t at = 0; at + static_cast<ssize_t>(inverted.size()) <= got; ++at) {
      size_t same = 0;
      while (same < inverted.size() &&
             bytes[static_cast<size_t>(at) + same] == static_cast<unsigned char>(~inverted[same])) {
        ++same;
      }
      if (same == inverted.size()) ++found;
    }
    std::fill(bytes.begin(), bytes.end(), static_cast<unsigned char>(0));
    __asm__ volatile("" ::"r"(bytes.data()) : "memory");
  }
  return found;
}

// A part needs no credential, so none of the caller's is copied. The first 16 bytes of memory that
// was given back are the allocator's.
TEST_F(Api, JoiningAPartLeavesNoCopyOfTheKeyBehind) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's memory is too large to search";
#endif
  std::vector<unsigned char> inverted;
  for (int i = 16; i < 32; ++i) inverted.push_back(static_cast<unsigned char>(~(i * 37 + 11)));
  // Byte by byte, so that this function has no part of it in a register that it might save.
  const auto write = [](std::string& text) {
    int i = 0;
    for (volatile char& byte : text) byte = static_cast<char>(i++ * 37 + 11);
  };
  CommOptions given[2];
  for (int rank = 0; rank < 2; ++rank) {
    given[rank] = options(rank, 2);
    given[rank].key_file.clear();
    given[rank].key.assign(32, '\0');
    write(given[rank].key);
  }
  const auto wipe = [](std::string& text) {
    for (volatile char& byte : text) byte = 0;
  };
  on_ranks(2, [&](int rank) {
    Comm whole(given[rank]);
    CommOptions& of_part = given[rank];
    of_part.group = "part";
    Comm part(whole, {0, 1}, of_part);
    part.barrier();
    whole.barrier();
  });
  EXPECT_GE(times_in_memory(inverted), 2) << "the caller's own were not found";
  for (CommOptions& one : given) wipe(one.key);
  EXPECT_EQ(times_in_memory(inverted), 0);
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

// As Kubernetes mounts a secret with fsGroup.
TEST_F(Api, AKeyOfAGroupIsTakenIfTheEnvironmentNamesThatGroup) {
  chmod(key_.c_str(), 0440);
  struct stat status {};
  ASSERT_EQ(stat(key_.c_str(), &status), 0);
  const std::string group = std::to_string(status.st_gid);
  unsetenv("SEALANE_KEY_GROUP");
  try {
    Comm comm(options(0, 2));
    FAIL() << "a key that others can read was taken";
  } catch (const CommError& error) {
    EXPECT_NE(std::string(error.what()).find("SEALANE_KEY_GROUP=" + group), std::string::npos)
        << error.what();
  }
  setenv("SEALANE_KEY_GROUP", group.c_str(), 1);
  on_ranks(2, [&](int rank) { EXPECT_NO_THROW(Comm(options(rank, 2)).barrier()); });
  unsetenv("SEALANE_KEY_GROUP");
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

template <typename Body>
void expect_usage_error(Body body) {
  try {
    body();
    ADD_FAILURE() << "accepted";
  } catch (const CommError& error) {
    EXPECT_EQ(error.kind(), CommError::Kind::usage) << error.what();
  }
}

TEST_F(Api, SizesThatWrapAndUnknownTypesAreUsageErrors) {
  Comm comm(options(0, 1));
  const size_t wraps = (size_t{1} << 61) + 1;  // times 8 is 8
  int64_t in[2] = {5, 5}, out[2] = {0, 0};
  expect_usage_error([&] { comm.all_reduce(in, out, wraps, DataType::int64, ReduceOp::sum); });
  expect_usage_error([&] {
    const std::vector<sealane::Tensor> tensors = {{in, SIZE_MAX / 8}, {in, SIZE_MAX / 8}};
    comm.all_reduce(tensors, DataType::int64, ReduceOp::sum);
  });
  expect_usage_error(
      [&] { comm.all_reduce(in, out, 1, static_cast<DataType>(99), ReduceOp::sum); });
  expect_usage_error(
      [&] { comm.all_reduce(in, out, 1, DataType::int64, static_cast<ReduceOp>(99)); });
  expect_usage_error([] { static_cast<void>(sealane::size_of(static_cast<DataType>(0))); });
  EXPECT_EQ(out[0], 0);
}

TEST_F(Api, TheLongestTimeoutIsLong) {
  on_ranks(2, [&](int rank) {
    CommOptions mine = options(rank, 2);
    mine.timeout = std::chrono::milliseconds::max();
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    Comm comm(mine);
    comm.barrier();
  });
}

// ---- The C interface and callers of another age ----

// Memory that ends where the program may not look any further.
class PageEnd {
 public:
  explicit PageEnd(size_t bytes)
      : pages_(static_cast<char*>(
            mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        start_(pages_ + kPage - bytes) {
    mprotect(pages_ + kPage, kPage, PROT_NONE);
  }
  PageEnd(const PageEnd&) = delete;
  PageEnd& operator=(const PageEnd&) = delete;
  ~PageEnd() { munmap(pages_, 2 * kPage); }
  sealane_comm_options* options() const { return reinterpret_cast<sealane_comm_options*>(start_); }

 private:
  static constexpr size_t kPage = 4096;
  char* pages_;
  char* start_;
};

int create_and_destroy(const sealane_comm_options* given) {
  sealane_comm* comm = nullptr;
  const int code = sealane_comm_create(given, &comm);
  sealane_comm_destroy(comm);
  return code;
}

TEST_F(Api, AnOlderCallerIsNeitherOverwrittenNorReadBeyondItsStructure) {
  for (const size_t bytes :
       {offsetof(sealane_comm_options, mode), offsetof(sealane_comm_options, timeout_ms)}) {
    const PageEnd older(bytes);
    sealane_comm_options_init_sized(older.options(), bytes);
    EXPECT_EQ(older.options()->struct_bytes, bytes);
    older.options()->rank = 0;
    older.options()->size = 1;
    EXPECT_EQ(create_and_destroy(older.options()), SEALANE_OK) << sealane_last_error();
  }
}

TEST_F(Api, WhatAnOlderCallerDoesNotKnowIsUnset) {
  sealane_comm_options given;
  sealane_comm_options_init(&given);
  given.rank = 0;
  given.size = 1;
  given.transport = 99;  // refused where it counts
  EXPECT_EQ(create_and_destroy(&given), SEALANE_ERROR_USAGE);
  given.struct_bytes = offsetof(sealane_comm_options, mode);
  EXPECT_EQ(create_and_destroy(&given), SEALANE_OK) << sealane_last_error();
  given.key_file = reinterpret_cast<const char*>(~uintptr_t{0});  // half of a pointer is none
  given.struct_bytes = offsetof(sealane_comm_options, key_file) + 4;
  EXPECT_EQ(create_and_destroy(&given), SEALANE_OK) << sealane_last_error();
  for (const size_t wrong : {size_t{0}, size_t{7}, SIZE_MAX}) {
    given.struct_bytes = wrong;
    EXPECT_EQ(create_and_destroy(&given), SEALANE_ERROR_USAGE);
  }
}

TEST_F(Api, ANewerCallerMayKnowMoreButNotAskForIt) {
  struct Newer {
    sealane_comm_options known;
    const char* wish;
  } newer;
  sealane_comm_options_init_sized(&newer.known, sizeof newer);
  EXPECT_EQ(newer.wish, nullptr);
  newer.known.rank = 0;
  newer.known.size = 1;
  EXPECT_EQ(create_and_destroy(&newer.known), SEALANE_OK) << sealane_last_error();
  newer.wish = "safety";
  EXPECT_EQ(create_and_destroy(&newer.known), SEALANE_ERROR_USAGE);
}

TEST_F(Api, NoCommunicatorIsNoRank) {
  EXPECT_EQ(sealane_comm_rank(nullptr), -1);
  EXPECT_EQ(sealane_comm_size(nullptr), -1);
  EXPECT_EQ(sealane_barrier(nullptr), SEALANE_ERROR_USAGE);
}

TEST_F(Api, AnErrorOfAnyLengthIsKept) {
  const std::string far = "file:/" + std::string(5000, 'x');
  sealane_comm_options given;
  sealane_comm_options_init(&given);
  given.rank = 0;
  given.size = 2;
  given.mode = SEALANE_PLAIN;
  given.rendezvous = far.c_str();
  EXPECT_EQ(create_and_destroy(&given), SEALANE_ERROR_IO);
  EXPECT_EQ(std::string(sealane_last_error()).size(), 1023u);
}

TEST(CApi, AbsurdSizesAreUsageErrors) {
  sealane_comm_options options;
  sealane_comm_options_init(&options);
  options.rank = 0;
  options.size = 1;
  sealane_comm* comm = nullptr;
  ASSERT_EQ(sealane_comm_create(&options, &comm), SEALANE_OK) << sealane_last_error();
  uint8_t in = 1;
  uint8_t out = 7;
  for (const size_t count : {SIZE_MAX, SIZE_MAX - 100, SIZE_MAX / 2, size_t{1} << 53}) {
    sealane_work* work = nullptr;
    EXPECT_EQ(sealane_all_reduce(comm, &in, &out, count, SEALANE_UINT8, SEALANE_SUM),
              SEALANE_ERROR_USAGE);
    EXPECT_EQ(sealane_broadcast(comm, &in, &out, count, SEALANE_UINT8, 0), SEALANE_ERROR_USAGE);
    ASSERT_EQ(sealane_start_all_reduce(comm, &in, &out, count, SEALANE_UINT8, SEALANE_SUM, &work),
              SEALANE_OK);
    EXPECT_EQ(sealane_work_wait(work), SEALANE_ERROR_USAGE);
  }
  EXPECT_EQ(out, 7);
  sealane_comm_destroy(comm);
}

// What was meant cannot be known: not even that it should be sealed.
TEST(CApi, AnUnknownModeAndANegativeTimeoutAreUsageErrors) {
  sealane_comm_options options;
  sealane_comm_options_init(&options);
  options.rank = 0;
  options.size = 1;
  for (const int mode : {-1, 2, 7}) {
    options.mode = mode;
    EXPECT_EQ(create_and_destroy(&options), SEALANE_ERROR_USAGE) << mode;
  }
  options.mode = SEALANE_SEALED;
  for (const int64_t timeout_ms : {int64_t{-1}, INT64_MIN}) {
    options.timeout_ms = timeout_ms;
    EXPECT_EQ(create_and_destroy(&options), SEALANE_ERROR_USAGE) << timeout_ms;
  }
  options.timeout_ms = 0;
  EXPECT_EQ(create_and_destroy(&options), SEALANE_OK) << sealane_last_error();
}

TEST(CApi, MissingBuffersAreUsageErrors) {
  sealane_comm_options options;
  sealane_comm_options_init(&options);
  options.rank = 0;
  options.size = 1;
  sealane_comm_options_init_sized(nullptr, 8);
  sealane_comm* comm = nullptr;
  ASSERT_EQ(sealane_comm_create(&options, &comm), SEALANE_OK) << sealane_last_error();
  float value = 1;
  sealane_work* work = nullptr;
  const int refused[] = {
      sealane_all_reduce(comm, nullptr, &value, 1, SEALANE_FLOAT32, SEALANE_SUM),
      sealane_all_reduce(comm, &value, nullptr, 1, SEALANE_FLOAT32, SEALANE_SUM),
      sealane_reduce(comm, nullptr, &value, 1, SEALANE_FLOAT32, SEALANE_SUM, 0),
      sealane_reduce(comm, &value, nullptr, 1, SEALANE_FLOAT32, SEALANE_SUM, 0),
      sealane_reduce_scatter(comm, nullptr, &value, 1, SEALANE_FLOAT32, SEALANE_SUM),
      sealane_reduce_scatter(comm, &value, nullptr, 1, SEALANE_FLOAT32, SEALANE_SUM),
      sealane_all_gather(comm, nullptr, &value, 1, SEALANE_FLOAT32),
      sealane_all_gather(comm, &value, nullptr, 1, SEALANE_FLOAT32),
      sealane_broadcast(comm, nullptr, &value, 1, SEALANE_FLOAT32, 0),
      sealane_broadcast(comm, &value, nullptr, 1, SEALANE_FLOAT32, 0),
      sealane_send(comm, nullptr, 1, SEALANE_FLOAT32, 0),
      sealane_receive(comm, nullptr, 1, SEALANE_FLOAT32, 0),
      sealane_start_all_reduce(comm, nullptr, &value, 1, SEALANE_FLOAT32, SEALANE_SUM, &work),
      sealane_start_all_reduce(comm, &value, &value, 1, SEALANE_FLOAT32, SEALANE_SUM, nullptr),
      sealane_all_reduce(nullptr, &value, &value, 1, SEALANE_FLOAT32, SEALANE_SUM),
      sealane_barrier(nullptr),
      sealane_work_wait(nullptr),
      sealane_comm_create(&options, nullptr),
  };
  for (const int code : refused) EXPECT_EQ(code, SEALANE_ERROR_USAGE);
  EXPECT_EQ(sealane_all_reduce(comm, nullptr, nullptr, 0, SEALANE_FLOAT32, SEALANE_SUM), SEALANE_OK)
      << "of nothing, nothing is needed";
  EXPECT_EQ(sealane_all_reduce(comm, nullptr, &value, 1, SEALANE_FLOAT32, SEALANE_SUM),
            SEALANE_ERROR_USAGE);
  EXPECT_NE(std::string(sealane_last_error()).find("NULL was given for 1 elements"),
            std::string::npos);
  sealane_comm_destroy(comm);
}

}  // namespace
