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

// One point of the study, as examples/ddp/characterize.py writes it.
std::string study_row(const std::string& model, const std::string& mode, double slowdown) {
  return R"({"model":")" + model + R"(","backend":"sealane","mode":")" + mode +
         R"(","ranks":4,"bucket_mb":25,"iteration_ms":9.5,"compute_ms":8,"comm_ms":2,)"
         R"("overlap":null,"sealed_messages":7,"sealed_bytes":4096,"slowdown_vs_plain":)" +
         std::to_string(slowdown) + R"(,"slowdown_vs_gloo":0.5})";
}

std::string study(const std::string& rows) {
  return R"({"study":"ddp","machine":{"cores":2},"differs":"much","rows":[)" + rows +
         R"(],"published":[{"model":"GPT-2-XL","ranks":4,"buckets":"large","slowdown":3.03}]})";
}

std::string error_of(const std::string& content) {
  const auto page = make_page({{"x.json", content}}, "1");
  return page ? std::string("drawn") : page.error().message;
}

TEST(Page, SummaryOfAStudyIsWhatSealingCosts) {
  const std::string rows = study_row("gpt", "sealed", 1.05) + "," +
                           study_row("mlp", "sealed", 1.125) + "," + study_row("mlp", "plain", 1);
  const auto page = make_page({{"s", study(rows)}}, "1");
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(to_text(page->summary),
            "MEASURED   training, 4 ranks, buckets of 25 MB, 2 models: sealed 1.05x to 1.12x\n"
            "           plain, 0.50x Gloo\n"
            "PUBLISHED  training on 4 GPUs, GPT-2-XL, buckets: large: 3.03x\n");
  EXPECT_NE(page->html.find("drawStudy"), std::string::npos);
}

TEST(Page, SaysWhichRowOfAStudyIsWrong) {
  const std::string good = study_row("gpt", "sealed", 1.05);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string row = good;
    return error_of(study(good + "," + row.replace(row.find(from), from.size(), to)));
  };
  EXPECT_EQ(error_of(study(good)), "drawn");
  EXPECT_EQ(with("\"ranks\":4", "\"ranks\":\"4\""),
            "x.json: rows[1]: ranks must be a number above 0");
  EXPECT_EQ(with("\"bucket_mb\":25", "\"bucket_mb\":0"),
            "x.json: rows[1]: bucket_mb must be a number above 0");
  EXPECT_EQ(with("\"iteration_ms\":9.5,", ""), "x.json: rows[1]: iteration_ms is missing");
  EXPECT_EQ(with("\"overlap\":null", "\"overlap\":[]"),
            "x.json: rows[1]: overlap must be a number");
  EXPECT_EQ(error_of(study("7")), "x.json: rows[0]: must be an object");
  EXPECT_EQ(error_of(R"({"study":1,"rows":{"a":1}})"), "x.json: rows must be a list");
  EXPECT_EQ(error_of(R"({"study":1,"published":5,"rows":[)" + good + "]}"),
            "x.json: published must be a list");
}

TEST(Page, SummaryIsSortedByEvidence) {
  const auto page = make_page({{"c", kChecks}, {"e", kEstimate}, {"r", kRows}}, "1");
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(to_text(page->summary),
            "MEASURED   allreduce sealane sealed 1.00 MiB 2.50 GB/s\n"
            "SIMULATED  vllm m on p, loss: stock 50.0 % sealane 4.00 %\n"
            "PUBLISHED  w: 5.00 to 14.0 % (model: 6.00 %)\n");
  EXPECT_NE(page->html.find("Chart.js"), std::string::npos);
  for (const char* mark : {"{{style}}", "{{chart}}", "{{data}}", "{{script}}"}) {
    EXPECT_EQ(page->html.find(mark), std::string::npos) << mark;
  }
}

TEST(Page, SummarySaysWhatARowIsOf) {
  const std::string seal =
      R"({"label":"MEASURED","results":[{"op":"seal","where":"l2","engine":"e","gb_s":5}]})";
  const std::string copy = R"-({"label":"MEASURED (emulated GPU)",)-"
                           R"("rows":[{"example":"x","policy":"off","total_s":0.0065}]})";
  const auto page = make_page({{"s", seal}, {"c", copy}}, "1");
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(to_text(page->summary),
            "MEASURED   seal l2 e 5.00 GB/s\nMEASURED   x off 6.50 ms emulated\n");
}

TEST(Page, RefusesWhatItCannotDraw) {
  const std::string nothing = "x.json: nothing to draw in it: give files that --json wrote";
  EXPECT_EQ(error_of("{\n\n oops }"), "x.json:3: not JSON");
  EXPECT_EQ(error_of(""), "x.json:1: not JSON");
  EXPECT_EQ(error_of("[]"), nothing);
  EXPECT_EQ(error_of(R"({"policies":{}})"), nothing);
  EXPECT_EQ(error_of(R"({"rows":[{"bytes":"x","busbw_gb_s":"y"}]})"), "drawn");
  EXPECT_EQ(error_of(R"({"rows":[{},null]})"), "x.json: rows[1]: must be an object");
  EXPECT_EQ(error_of(R"({"rows":[{"x":1e999}]})"), "x.json: a number in it is too large");
  EXPECT_EQ(error_of(R"({"kind":"validation","rows":[{}]})"), "drawn");
  EXPECT_EQ(error_of(R"({"checks":[{"group":"a","what":"b","unit":"%","published":[1],)"
                     R"("predicted":1}]})"),
            "x.json: checks[0]: published must be two numbers");
  EXPECT_EQ(error_of(R"({"workload":"vllm","platform":"p","policies":{"stock":{}}})"),
            "x.json: policies: stock: loss_pct is missing");
}

// The page's script calculates with them.
TEST(Page, RefusesFiguresOfAPolicyThatAreNone) {
  const auto with = [](const std::string& field) {
    return error_of(R"({"workload":"vllm","platform":"p","policies":{"stock":{"loss_pct":1,)" +
                    field + "}}}");
  };
  for (const std::string name : {"time_s", "throughput", "hit_rate", "sealed_bytes", "worker_cores",
                                 "latency_p50_ms", "latency_p99_ms"}) {
    EXPECT_EQ(with('"' + name + R"(":"abc")"),
              "x.json: policies: stock: " + name + " must be a number");
    EXPECT_EQ(with('"' + name + R"(":null)"), "drawn");
    EXPECT_EQ(with('"' + name + R"(":1)"), "drawn");
  }
}

TEST(Page, TakesAFlagThatIsNullForOneThatIsMissing) {
  const auto page =
      make_page({{"c", R"({"checks":[{"group":"PipeLLM","what":"w","unit":"%","published":[5,14],)"
                       R"("predicted":6,"calibrated":null}]})"}},
                "1");
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(to_text(page->summary), "PUBLISHED  w: 5.00 to 14.0 % (model: 6.00 %)\n");
}

TEST(Page, RefusesWhatIsTooDeepToRead) {
  const size_t deep = 200'000;
  const std::string lists = std::string(deep, '[') + std::string(deep, ']');
  EXPECT_EQ(error_of(R"({"rows":[{"x":)" + lists + "}]}"), "x.json: too many lists in lists");
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
