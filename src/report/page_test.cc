// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The page holds everything it needs and nothing it was not given.

#include "report/page.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace sealane::report {
namespace {

constexpr const char* kEstimate =
    R"({"kind":"estimate","workload":"vllm","model":"m","platform":"p",)"
    R"("policies":{"stock":{"loss_pct":50.0,"slowdown":2.0},"sealane":{"loss_pct":4.0}}})";
constexpr const char* kChecks =
    R"({"kind":"validation","checks":[{"group":"PipeLLM","what":"w","unit":"%",)"
    R"("published":[5,14],"predicted":6.0,"calibrated":false}]})";
constexpr const char* kRows =
    R"({"rows":[{"op":"allreduce","bytes":1048576,"system":"sealane","mode":"sealed",)"
    R"("busbw_gb_s":2.5}]})";

TEST(Page, SummaryIsSortedByEvidence) {
  const auto page = make_page({{"c", kChecks}, {"e", kEstimate}, {"r", kRows}}, "1");
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->summary,
            "MEASURED   allreduce sealane sealed 1.00 MiB 2.50 GB/s\n"
            "SIMULATED  vllm m on p, loss: stock 50.0 % sealane 4.00 %\n"
            "PUBLISHED  w: 5.00 to 14.0 % (model: 6.00 %)\n");
  EXPECT_NE(page->html.find("Chart.js"), std::string::npos);
  for (const char* mark : {"{{style}}", "{{chart}}", "{{data}}", "{{script}}"}) {
    EXPECT_EQ(page->html.find(mark), std::string::npos) << mark;
  }
}

TEST(Page, RefusesWhatItCannotDraw) {
  const auto error_of = [](const std::string& content) {
    const auto page = make_page({{"x.json", content}}, "1");
    return page ? std::string("drawn") : page.error().message;
  };
  EXPECT_EQ(error_of("{\n\n oops }"), "x.json:3: not JSON");
  EXPECT_EQ(error_of(""), "x.json:1: not JSON");
  EXPECT_EQ(error_of("[]"), "x.json:1: nothing to draw in it: give files that --json wrote");
  EXPECT_EQ(error_of(R"({"policies":{}})"),
            "x.json:1: nothing to draw in it: give files that --json wrote");
  EXPECT_EQ(error_of(R"({"rows":[1,{"bytes":"x","busbw_gb_s":"y"}]})"), "drawn");
}

// No text in the data can end the script it is in.
RC_GTEST_PROP(Page, DataStaysData, (const std::string& noise)) {
  std::string text = "</script><!--" + noise;
  std::erase_if(text, [](char c) { return c == '"' || c == '\\' || c < ' '; });
  const auto page = make_page({{"x", R"({"rows":[{"op":")" + text + R"("}]})"}}, "1");
  if (!page) return;  // not UTF-8
  const size_t data = page->html.find("id=\"data\">");
  const size_t end = page->html.find('<', data);
  RC_ASSERT(page->html.substr(end, 9) == "</script>");
  RC_ASSERT(page->html.find("\"runs\":", data) < end);
  RC_ASSERT(page->html[end - 1] == '}');
}

}  // namespace
}  // namespace sealane::report
