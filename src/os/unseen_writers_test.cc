// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Are those noticed who can write past the page tables?

#include "os/unseen_writers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/aio_abi.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

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
  for (const int domain : {AF_XDP, AF_ALG}) {
    const int file = socket(domain, domain == AF_XDP ? SOCK_RAW : SOCK_SEQPACKET, 0);
    if (file < 0) continue;  // not for this process
    EXPECT_TRUE(UnseenWriters().possible()) << domain;
    close(file);
  }
  close(plain);
}

}  // namespace
}  // namespace sealane
