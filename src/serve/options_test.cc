// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do the SEALANE_* variables switch what they say, and does nonsense count as absent?

#include "serve/options.h"

#include <gtest/gtest.h>

#include <cstring>

namespace sealane::serve {
namespace {

Options with(const char* name, const char* value) {
  static const char* wanted;
  static const char* given;
  wanted = name;
  given = value;
  return read_options(
      [](const char* asked) { return std::strcmp(asked, wanted) == 0 ? given : nullptr; });
}

TEST(Options, PartsAreSwitchedOneByOne) {
  const Options all = with("", "");
  EXPECT_TRUE(all.engine && all.async && all.parallel && all.registration && !all.disabled);
  const Options some = with("SEALANE_ENABLE", "engine,parallel");
  EXPECT_TRUE(some.engine && some.parallel && !some.async && !some.registration && !some.pinned);
  EXPECT_EQ(all.speculate, Speculate::by_cost);
  EXPECT_EQ(with("SEALANE_ENABLE", "engine,async,parallel").speculation(), nullptr);
  EXPECT_EQ(with("SEALANE_POLICY", "parallel").speculation(), nullptr);
  EXPECT_EQ(with("SEALANE_POLICY", "sealane").speculate, Speculate::by_cost) << "the default";
  EXPECT_EQ(with("SEALANE_POLICY", "speculate").speculate, Speculate::on);
  const Options usual = with("SEALANE_ENABLE", "default,pinned");
  EXPECT_TRUE(usual.engine && usual.async && usual.parallel && usual.coalesce && usual.pinned);
  EXPECT_TRUE(usual.registration && !all.pinned && usual.speculate == Speculate::by_cost);
  EXPECT_EQ(with("SEALANE_ENABLE", "default,speculate").speculate, Speculate::on);
  EXPECT_EQ(with("SEALANE_ENABLE", "speculate,default").speculate, Speculate::on);
  const Options none = with("SEALANE_ENABLE", "none");
  EXPECT_FALSE(none.engine || none.async || none.parallel || none.registration || none.coalesce);
  EXPECT_TRUE(all.coalesce && with("SEALANE_ENABLE", "async,coalesce").coalesce);
  EXPECT_TRUE(with("SEALANE_POLICY", "sealane").coalesce);
  EXPECT_TRUE(with("SEALANE_POLICY", "speculate").coalesce);
  const Options watching = with("SEALANE_OBSERVE", "1");
  EXPECT_FALSE(watching.engine || watching.async || watching.parallel || watching.registration);
  EXPECT_TRUE(with("SEALANE_DISABLE", "1").disabled);
  EXPECT_FALSE(with("SEALANE_DISABLE", "0").disabled);
  EXPECT_TRUE(all.early && with("SEALANE_EARLY", "1").early && with("SEALANE_EARLY", "no").early);
  EXPECT_FALSE(with("SEALANE_EARLY", "0").early);
}

// What is on by default is written down twice: here, and as the policy `sealane`.
TEST(Options, TheDefaultIsThePolicyOfThatName) {
  const Options usual;
  const Options named = with("SEALANE_POLICY", "sealane");
  EXPECT_EQ(named.engine, usual.engine);
  EXPECT_EQ(named.async, usual.async);
  EXPECT_EQ(named.parallel, usual.parallel);
  EXPECT_EQ(named.coalesce, usual.coalesce);
  EXPECT_EQ(named.registration, usual.registration);
  EXPECT_EQ(named.pinned, usual.pinned);
  EXPECT_EQ(named.speculate, usual.speculate);
}

TEST(Options, APolicyThatIsNoneOfTheRuntimesChangesNothing) {
  for (const char* name : {"off", "pipellm", "magic", ""}) {
    const Options options = with("SEALANE_POLICY", name);
    EXPECT_TRUE(options.engine && options.async && options.parallel) << name;
    EXPECT_EQ(options.speculate, Speculate::by_cost) << name;
  }
}

TEST(Options, NonsenseCountsAsAbsent) {
  EXPECT_EQ(with("SEALANE_WORKERS", "many").workers, Options().workers);
  EXPECT_EQ(with("SEALANE_VERIFY", "12x").verify, 0u);
  EXPECT_EQ(with("SEALANE_VERIFY", "12").verify, 12u);
  EXPECT_FALSE(with("SEALANE_ENABLE", "magic").engine);
  EXPECT_TRUE(with("SEALANE_ENABLE", "").engine) << "as if it were not set";
  EXPECT_EQ(with("SEALANE_SLOT_MB", "3").slot_bytes_max, 3_MiB);
  EXPECT_EQ(with("SEALANE_SLOT_MB", "17592186044416").slot_bytes_max, 1024 * 1024_MiB);
}

}  // namespace
}  // namespace sealane::serve
