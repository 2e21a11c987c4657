// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does `sealane run --observe` change nothing, and does its page say what the driver really does,
// for everything that is a switch of the emulated one?

#include <gtest/gtest.h>

#include "watch/e2e.h"

namespace sealane::test {
namespace {

struct Observed {
  std::string what;      // a line of the page
  std::string expected;  // how it goes on, marks included
};

struct Case {
  std::string name;
  std::vector<std::string> flags;
  std::vector<Observed> lines;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Observed kBytesSeen{"copies' bytes pass libcrypto", "yes 100.0 % of 12.0 MiB"};
const Observed kIvLaw{"IVs count up behind a mask", "yes "};
const Observed kDirect{"sealed from where the program has it", "yes every byte"};
const Observed kThread{"sealed on the thread that copies", "yes every byte"};
const Observed kPlain{"one update per message, no additional data",
                      "yes up to 1 update, 0 bytes of additional data"};
const Observed kNoOwn{"no messages but those of copies", "yes none"};
const Observed kKeys{"keys stay", "yes 2 keys, none replaced"};
const Observed kSize{"messages of at most 1 MiB", "yes "};

const std::vector<Case> kCases = {
    {"plain", {}, {kBytesSeen, kIvLaw, kDirect, kThread, kPlain, kNoOwn, kKeys, kSize}},
    {"deepbind", {"--reach", "deepbind"}, {kBytesSeen, kIvLaw, kDirect, kThread, kNoOwn}},
    {"dlsym", {"--reach", "dlsym"}, {kBytesSeen, kIvLaw, kDirect, kThread, kNoOwn}},
    {"linked", {"--reach", "linked"}, {kBytesSeen, kIvLaw, kDirect, kThread, kNoOwn}},
    {"fresh_contexts", {"--fresh-contexts", "on"}, {kBytesSeen, kIvLaw, kPlain, kNoOwn, kKeys}},
    {"staged",
     {"--staged", "on"},
     {kBytesSeen, kIvLaw, kThread, {kDirect.what, "no, copes 0.0 % of the bytes; the rest is"}}},
    {"additional_data",
     {"--aad", "on"},
     {kBytesSeen, kIvLaw, {kPlain.what, "no, copes up to 1 update, 16 bytes of additional data"}}},
    {"updates",
     {"--updates", "3"},
     {kBytesSeen, kIvLaw, kDirect, {kPlain.what, "no, copes up to 3 updates, 0 bytes"}}},
    {"seal_thread",
     {"--seal-thread", "on"},
     {kBytesSeen, kIvLaw, kDirect, {kThread.what, "no, copes 0.0 % of the bytes; the rest on"}}},
    {"chatter", {"--chatter", "3"}, {kBytesSeen, kIvLaw, kDirect, {kNoOwn.what, "no, copes "}}},
    {"message",
     {"--message", "65536"},
     {kBytesSeen, kIvLaw, {kSize.what, "yes 196, the largest 64.0 KiB"}}},
    {"rotation",
     {"--rotate", "2000000"},
     {kBytesSeen, kIvLaw, {kKeys.what, "no, copes 7 keys, 5 of them replaced"}}},
};

// What the page says of one thing, without its columns: "mark found".
std::string line_about(const std::string& page, const std::string& what) {
  const size_t at = page.find(what);
  if (at == std::string::npos) return "nothing about it";
  const size_t begin = page.rfind('\n', at) + 1;
  std::string mark = page.substr(begin, at - begin);
  mark.erase(0, mark.find_first_not_of(' '));
  mark.erase(mark.find_last_not_of(' ') + 1);
  const size_t found = page.find_first_not_of(' ', at + what.size());
  std::string text = mark + " " + page.substr(found, page.find('\n', found) - found);
  // It may go on below.
  for (size_t end = page.find('\n', found); end != std::string::npos;) {
    const size_t next = page.find_first_not_of(' ', end + 1);
    if (next == std::string::npos || next - end < what.size()) break;
    end = page.find('\n', next);
    text += " " + page.substr(next, end - next);
  }
  return text;
}

const std::vector<std::string> kProgram = {"--", example("layer_swap"), "--width", "256", "--steps",
                                           "3"};

class Observe : public testing::TestWithParam<Case> {};

TEST_P(Observe, ChangesNothingAndSaysWhatTheDriverDoes) {
  const Scratch scratch;
  std::vector<std::string> flags = {"run", "--emulate", "--truth", scratch.file("without")};
  flags.insert(flags.end(), GetParam().flags.begin(), GetParam().flags.end());
  const ProgramResult without = sealane(flags, kProgram);
  flags[3] = scratch.file("with");
  flags.push_back("--observe");
  const ProgramResult with = sealane(flags, kProgram);

  ASSERT_EQ(without.exit_code, 0) << without.err;
  ASSERT_EQ(with.exit_code, 0) << with.err;
  EXPECT_NE(printed(with.out, "hash"), "");
  EXPECT_EQ(printed(with.out, "hash"), printed(without.out, "hash"));

  const auto before = read_json(scratch.file("without"));
  const auto after = read_json(scratch.file("with"));
  EXPECT_EQ(after["answered_bytes"], 0);
  EXPECT_EQ(after["contexts"], before["contexts"]);
  for (const char* way : {"to_device", "to_host"}) {
    for (const char* count : {"copies", "bytes", "messages", "positions", "rejected"}) {
      EXPECT_EQ(after[way][count], before[way][count]) << way << " " << count;
    }
  }
  for (const Observed& line : GetParam().lines) {
    EXPECT_TRUE(line_about(with.err, line.what).starts_with(line.expected))
        << line.what << ": " << line_about(with.err, line.what);
  }
  EXPECT_NE(with.err.find("\nVerdict\nSealane can work here"), std::string::npos) << with.err;
}

INSTANTIATE_TEST_SUITE_P(Switches, Observe, testing::ValuesIn(kCases),
                         [](const auto& one) { return one.param.name; });

TEST(ObservePage, SaysThatNothingIsSealedWithoutConfidentialMode) {
  const ProgramResult run = sealane({"run", "--emulate", "--cc", "off", "--observe"}, kProgram);
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_NE(run.err.find("confidential mode is off"), std::string::npos) << run.err;
}

TEST(ObservePage, SaysThatADriverSealsOutOfSight) {
  const ProgramResult run = sealane({"run", "--emulate", "--reach", "own", "--observe"}, kProgram);
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_TRUE(line_about(run.err, kBytesSeen.what).starts_with("NO 0.0 %")) << run.err;
  EXPECT_NE(unwrapped(run.err).find("cannot help here, async can"), std::string::npos) << run.err;
}

// Memory that the driver pins cannot be guarded in CC mode, other memory can.
TEST(ObservePage, TellsWhichSourcesCanBeGuarded) {
  const ProgramResult pinned = sealane({"run", "--emulate", "--observe"}, kProgram);
  EXPECT_TRUE(line_about(pinned.err, "sources can be guarded against writes")
                  .starts_with("no, copes 0.0 %"))
      << pinned.err;
}

TEST(ObservePage, PredictsInTheShadow) {
  const ProgramResult run =
      sealane({"run", "--emulate", "--observe"},
              {"--", example("layer_swap"), "--width", "256", "--steps", "12"});
  const std::string line = line_about(run.err, "copies to the device can be foretold");
  ASSERT_TRUE(line.starts_with("yes ")) << line;
  EXPECT_GT(std::stod(line.substr(4)), 80) << line;
}

TEST(Observe, ExcludesEnable) {
  const ProgramResult run =
      sealane({"run", "--emulate", "--observe", "--enable", "engine"}, kProgram);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("--observe"), std::string::npos);
}

}  // namespace
}  // namespace sealane::test
