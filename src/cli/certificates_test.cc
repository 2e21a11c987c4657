// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Do ranks meet with the certificates of `sealane keygen --certificates`, each as its own rank
// only?

#include "cli/certificates.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "comm/group_fixture.h"

namespace sealane::cli {
namespace {

void put(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  chmod(path.c_str(), 0600);
}

// `swapped`: each rank comes with the other's certificate.
std::vector<Status> meet(const std::string& group_name, bool swapped) {
  GroupSetup setup;
  setup.timeout = swapped || group_name != "test" ? std::chrono::milliseconds(1500)
                                                  : std::chrono::milliseconds(60'000);
  ThreadGroup group(setup);
  const TemporaryDirectory files;
  const auto made = make_certificates(group_name, 2, 1);
  EXPECT_TRUE(made.ok());
  put(files.path() + "/ca.pem", made->authority.certificate);
  for (const uint32_t rank : {0u, 1u}) {
    put(concat(files.path(), "/", rank, ".pem"), made->ranks[rank].certificate);
    put(concat(files.path(), "/", rank, ".key"), made->ranks[rank].key);
  }
  return group.run([](Communicator&) { return Status(); },
                   [&](JoinOptions& options) {
                     const uint32_t own = swapped ? 1 - options.self.rank : options.self.rank;
                     options.key_file.clear();
                     options.certificate_file = concat(files.path(), "/", own, ".pem");
                     options.private_key_file = concat(files.path(), "/", own, ".key");
                     options.authorities_file = files.path() + "/ca.pem";
                   });
}

TEST(Certificates, RanksMeetWithThem) {
  for (const Status& status : meet("test", false)) {
    EXPECT_TRUE(status.ok()) << status.error().message;
  }
}

TEST(Certificates, BindARankAndAGroup) {
  for (const Status& status : meet("test", true)) EXPECT_FALSE(status.ok());
  for (const Status& status : meet("other", false)) EXPECT_FALSE(status.ok());
}

}  // namespace
}  // namespace sealane::cli
