// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Are those noticed who can write past the page tables?

#include "os/unseen_writers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/aio_abi.h>
#include <sys/fanotify.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <map>

namespace sealane {
namespace {

// A pipe in packet mode has the flag that a file for direct I/O has.
class DirectFile {
 public:
  DirectFile() { EXPECT_EQ(pipe2(ends_, O_DIRECT), 0); }
  ~DirectFile() {
    close(ends_[0]);
    close(ends_[1]);
  }
  DirectFile(const DirectFile&) = delete;
  DirectFile& operator=(const DirectFile&) = delete;

 private:
  int ends_[2] = {};
};

TEST(UnseenWriters, AnOrdinaryProcessHasNone) { EXPECT_FALSE(UnseenWriters().possible()); }

TEST(UnseenWriters, DirectFilesCountAndAreRemembered) {
  UnseenWriters writers;
  {
    const DirectFile file;
    EXPECT_TRUE(writers.possible());
  }
  EXPECT_TRUE(writers.possible());
  EXPECT_FALSE(UnseenWriters().possible());
}

TEST(UnseenWriters, RingsCount) {
  aio_context_t ring = 0;
  if (syscall(SYS_io_setup, 1, &ring) != 0) GTEST_SKIP() << "this kernel has no io_setup";
  EXPECT_TRUE(UnseenWriters().possible());
  syscall(SYS_io_destroy, ring);
}

// The kernel fills memory that such a socket was given, past the page tables.
TEST(UnseenWriters, SocketsOfUnusualKindsCount) {
  const int plain = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_FALSE(UnseenWriters().possible());
  close(plain);
  int opened = 0;
  for (const int domain : {AF_XDP, AF_ALG, AF_PACKET}) {
    const int file = socket(domain, domain == AF_ALG ? SOCK_SEQPACKET : SOCK_RAW, 0);
    if (file < 0) continue;  // not for this process
    ++opened;
    EXPECT_TRUE(UnseenWriters().possible()) << domain;
    close(file);
  }
  if (opened == 0) GTEST_SKIP() << "this kernel gives this process no such socket";
}

// What nobody has said to be harmless may do anything. These do not, and most are anybody's to
// open; they stand for all that the list does not know, devices handed to the process among them.
TEST(UnseenWriters, KindsThatAreNotKnownCount) {
  const uint64_t rights = 1;
  const std::map<const char*, std::function<int()>> unknown = {
      {"an object",
       [&] { return static_cast<int>(syscall(SYS_landlock_create_ruleset, &rights, 8, 0)); }},
      {"another object", [] { return fanotify_init(FAN_REPORT_FID | FAN_CLOEXEC, O_RDONLY); }},
      {"a device", [] { return open("/dev/autofs", O_RDONLY | O_CLOEXEC); }},
      {"another device", [] { return open("/dev/fuse", O_RDWR | O_CLOEXEC); }},
  };
  int opened = 0;
  for (const auto& [what, open_it] : unknown) {
    EXPECT_FALSE(UnseenWriters().possible()) << what;
    const int file = open_it();
    if (file < 0) continue;  // not here, or not for this process
    ++opened;
    EXPECT_TRUE(UnseenWriters().possible()) << what;
    close(file);
  }
  if (opened == 0) GTEST_SKIP() << "nothing here is unknown and can be opened";
}

}  // namespace
}  // namespace sealane
