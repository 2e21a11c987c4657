// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Is output compared without what always changes, the observer's findings read, and nothing private
// told?

#include "cli/trial_text.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "watch/findings.h"

namespace sealane::cli {
namespace {

bool alike(const std::string& one, const std::string& other,
           const std::vector<std::string>& masks = {}, bool usual = true) {
  const auto made = Masks::make(usual, masks);
  return made.ok() && made->apply(one) == made->apply(other);
}

TEST(TrialText, TimesRatesDatesAndAddressesMayDiffer) {
  EXPECT_TRUE(alike("step took 12.3 ms", "step took 9 ms"));
  EXPECT_TRUE(alike("total   1.25 s\n", "total  11.25 s\n"));
  EXPECT_TRUE(alike("3.5 tok/s, 11.2 GB/s", "30 tok/s, 9.75 GB/s"));
  EXPECT_TRUE(alike("2026-01-02 03:04:05 ready", "2026-11-12 13:14:15.678 ready"));
  EXPECT_TRUE(alike("at 0x7f0011223344, pid 12", "at 0x7f00112233ff, pid 4567"));
  EXPECT_TRUE(alike("total_s    0.0339726", "total_s    3.9e-05"));
  EXPECT_TRUE(alike("tokens_per_s: 17, elapsed = 4.25", "tokens_per_s: 170, elapsed = 12"));
  EXPECT_FALSE(alike("tokens 17", "tokens 18"));
  EXPECT_FALSE(alike("loss 0.25", "loss 0.26"));
  EXPECT_FALSE(alike("hash 12ab", "hash 12ac"));
  EXPECT_FALSE(alike("step took 12.3 ms", "step took 9 ms", {}, false));
  EXPECT_TRUE(alike("loss 0.25", "loss 0.26", {"loss [0-9.]+"}));
  EXPECT_FALSE(Masks::make(true, {"("}).ok());
}

// A line that is nothing but digits and commas is not read to its end from each of them: so long
// are the numbers that are masked, and no longer.
TEST(TrialText, NumbersOfMoreThan32DigitsAreNotMasked) {
  const std::string digits(32, '1');
  EXPECT_TRUE(alike(digits + " ms", "9 ms"));
  EXPECT_TRUE(alike(digits + " GB/s", "9 GB/s"));
  EXPECT_FALSE(alike("2" + digits + " ms", "9 ms"));
  EXPECT_FALSE(alike("2" + digits + " GB/s", "9 GB/s"));
  EXPECT_TRUE(alike("2" + digits + " ms", "2" + std::string(32, '3') + " ms")) << "its last 32 are";
}

TEST(TrialText, SaysWhereTwoOutputsDiffer) {
  EXPECT_EQ(first_difference("a\nb\n", "a\nb\n"), "");
  EXPECT_EQ(first_difference("a\nb\n", "a\nc\n"), "line 2: 'c' instead of 'b'");
  EXPECT_EQ(first_difference("a\n", "a\nb\n"), "line 2: 'b' is new");
  EXPECT_EQ(first_difference("a\nb\n", "a\n"), "line 2: 'b' is missing");
}

serve::Findings found_there() {
  serve::Findings found;
  found.to_device.copies = 4;
  found.to_device.bytes = 1 << 20;
  found.to_device.seen_bytes = 1 << 20;
  found.to_device.messages = 4;
  found.ivs = 4;
  return found;
}

// As its writer writes it.
ObservedPage read_back(const serve::Findings& found) {
  JsonWriter json;
  json.begin_object();
  write_findings(json, found, {});
  json.end_object();
  return read_observed(nlohmann::json::parse(json.text()));
}

TEST(TrialText, ReadsWhatWasObserved) {
  serve::Findings found = found_there();
  const ObservedPage page = read_back(found);
  EXPECT_TRUE(page.there);
  EXPECT_EQ(page.sight, Sight::all);
  ASSERT_FALSE(page.checks.empty());
  EXPECT_EQ(page.checks[0].mark, "yes");
  EXPECT_EQ(page.checks[0].what, "copies' bytes pass libcrypto");
  EXPECT_EQ(page.checks[0].found, "100.0 % of 1.00 MiB");
  ASSERT_EQ(page.checks.size(), check(found).size());
  for (size_t i = 0; i < page.checks.size(); ++i) {
    EXPECT_EQ(page.checks[i].found, check(found)[i].found);
  }
  EXPECT_TRUE(page.verdict.starts_with("Sealane can work here")) << page.verdict;

  found.to_device.seen_bytes = 1 << 19;
  EXPECT_EQ(read_back(found).sight, Sight::some);
  found.to_device.seen_bytes = 1;  // "0.0 %" of the bytes is not nothing
  EXPECT_EQ(read_back(found).sight, Sight::some);
  found.to_device.seen_bytes = found.to_device.messages = found.ivs = 0;
  EXPECT_EQ(read_back(found).sight, Sight::nothing);
}

TEST(TrialText, KnowsWhenNothingWasObserved) {
  EXPECT_FALSE(read_observed(nlohmann::json::parse("", nullptr, false)).there);
  EXPECT_FALSE(read_observed(nlohmann::json::parse(R"([{"observed": {}}])")).there);
  EXPECT_FALSE(read_observed(nlohmann::json::parse(R"({"observed": "no"})")).there);
  const auto odd = read_observed(nlohmann::json::parse(
      R"({"observed": {"verdict": 3, "checks": [1, {"what": []}, {"state": "new"}]}})"));
  EXPECT_TRUE(odd.there);
  EXPECT_EQ(odd.sight, Sight::unknown);
  EXPECT_EQ(odd.checks.size(), 2u);
  EXPECT_TRUE(says_not_confidential("sealane: confidential mode is off: nothing to speed up\n"));
  EXPECT_FALSE(says_not_confidential("Segmentation fault\n"));
}

TEST(TrialText, FindsWhatSealaneSaid) {
  EXPECT_EQ(
      lines_of_sealane("hello\nsealane: stepping aside, copies are the driver's again: why\n"
                       "sealane: 1.2 s from the first GPU call to the last\n"),
      std::vector<std::string>{"sealane: stepping aside, copies are the driver's again: why"});
  EXPECT_TRUE(tells_of_wrong_answer(
      "sealane: an answer differed from libcrypto's: libcrypto seals from now on"));
}

TEST(TrialText, TellsSealanesSentencesFromThoseOfAProgramThatBeginsItsOwnAlike) {
  EXPECT_EQ(lines_of_sealane("sealane: the-output\nsealane: \377\nsealane: \nsealane: loss: 3\n"
                             "sealane: cute program failed: the-output\n"
                             "sealane: observing: nothing is changed, a page follows at the end\n"),
            std::vector<std::string>{});
  const std::vector<std::string> said = {
      "sealane: an answer differed from libcrypto's: libcrypto seals from now on",
      "sealane: does nothing, it could not start: no memory ?",
      "sealane: cuMemAlloc_v2 failed: no memory",
      "sealane: cannot write ...",
      "sealane: SEALANE_... is not a number: not used",
      "sealane: confidential mode is off: nothing to speed up; watching only"};
  EXPECT_EQ(
      lines_of_sealane("sealane: an answer differed from libcrypto's: libcrypto seals from now on\n"
                       "sealane: does nothing, it could not start: no memory \377\n"
                       "sealane: cuMemAlloc_v2 failed: no memory\n"
                       "sealane: cannot write my secret: No space left on device\n"
                       "sealane: SEALANE_WORKERS=secret is not a number: not used\n"
                       "sealane: confidential mode is off: nothing to speed up; watching only\n"),
      said);
  EXPECT_FALSE(tells_of_wrong_answer("sealane: my answer differed from libcrypto's"));
}

// Whatever is said where the runtime is: a sentence that is missing here would never reach us.
TEST(TrialText, KnowsEverySentenceInTheRuntimesSources) {
  size_t found = 0;
  const auto is_known = [](const std::string& literal) {
    for (const char* word : {"cuCall", "SEALANE_X"}) {
      for (const char* tail : {"", "x", "x workers"}) {
        const auto line = std::regex_replace(literal, std::regex("%(\\.\\*)?[sd]"), word) + tail;
        if (!lines_of_sealane(line).empty()) return true;
      }
    }
    return false;
  };
  for (const char* room : {"src/base", "src/serve", "src/watch", "adapters/preload"}) {
    for (const auto& file :
         std::filesystem::directory_iterator(std::filesystem::path(SEALANE_SOURCE_DIR) / room)) {
      const std::string name = file.path().filename();
      if (!name.ends_with(".cc") || name.ends_with("_test.cc")) continue;
      std::ifstream in(file.path());
      std::string text{std::istreambuf_iterator<char>(in), {}};
      text = std::regex_replace(text, std::regex("\"\\s*\n\\s*\""), "");  // one literal
      static const std::regex said("\"(sealane: [^\"]*?)(\\\\n)?\"");
      for (std::sregex_iterator one(text.begin(), text.end(), said), end; one != end; ++one) {
        const std::string literal = (*one)[1];
        // The page's line, and the statistics'.
        if (literal.starts_with("sealane: observing:") || literal == "sealane: ") continue;
        EXPECT_TRUE(is_known(literal)) << file.path() << ": " << literal;
        ++found;
      }
    }
  }
  EXPECT_GE(found, 12u);
}

TEST(TrialText, CutsBetweenCharacters) {
  const std::string e = "\u00e9";  // two bytes
  std::string line = "x";
  for (int i = 0; i < 40; ++i) line += e;
  const std::string cut = first_difference(line, "x");
  EXPECT_NO_THROW((void)nlohmann::json(cut).dump()) << cut;
  EXPECT_NE(cut.find(e + "...'"), std::string::npos) << cut;
}

TEST(TrialText, MasksTextsOfAJsonAndNoNumbers) {
  const Private names{"node17", "alice", {"128", "--name", "hunter2"}};
  const nlohmann::json told = texts_without_private(
      nlohmann::json::parse(R"({"seconds": 0.0128128, "128": 128, "list": ["of hunter2", "128"],
        "found": "0.128 of 1281 KiB at /home/alice/x, 128 times", "empty": "", "none": null})"),
      names);
  EXPECT_EQ(told, nlohmann::json::parse(R"({"seconds": 0.0128128, "128": 128,
        "list": ["of <argument>", "<argument>"], "empty": "", "none": null,
        "found": "0.128 of 1281 KiB at <path>, <argument> times"})"));
}

TEST(TrialText, TakesOutWhatNamesPlacesPeopleAndSecrets) {
  const Private names{"node17", "alice", {"--token=hunter2", "/models/secret.bin"}};
  const std::string told = without_private(
      "cannot read /home/alice/key: node17 (10.1.2.3, fe80:0:0:1:2:3:4:5) ran --token=hunter2\n"
      "at 3.4 GB/s ./here/there key=0123456789abcdef0123456789abcdef0123456789abcdef\n"
      "\"file\": \"/models/secret.bin\"\n",
      names);
  EXPECT_EQ(told,
            "cannot read <path>: <host> (<address>, <address>) ran <argument>\n"
            "at 3.4 GB/s <path> key=<word>\n"
            "\"file\": \"<argument>\"\n");
}

}  // namespace
}  // namespace sealane::cli
