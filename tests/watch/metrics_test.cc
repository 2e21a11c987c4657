// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does --metrics write what a scraper reads, all of what the documentation lists and nothing else?

#include "watch/metrics.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

#include "base/text.h"
#include "watch/exposition.h"
#include "watch/exposition_parser.h"
#include "watch/scratch.h"

namespace sealane::serve {
namespace {

using test::contents;
using test::ExpositionParser;
using test::Family;
using test::Scratch;

Instant at_us(int64_t us) { return Instant(std::chrono::microseconds(us)); }

Event copy_event(Route route, uint64_t bytes, int32_t code = 0) {
  Event event;
  event.kind = EventKind::copy;
  event.route = route;
  event.pinned = true;
  event.bytes = bytes;
  event.code = code;
  event.begin = at_us(1000);
  event.end = at_us(1500);
  return event;
}

std::vector<SpeculationStats> two_lanes() {
  SpeculationStats lane{.device = 3, .answered_ahead = 6, .slot_bytes = 4096};
  lane.pipeline = {.requests = 10, .hits = 7, .messages = 12};
  lane.pipeline.voided_for[static_cast<size_t>(VoidReason::rotated)] = 5;
  lane.leader = "fifo";
  lane.predictors = {{"fifo", 0.5, 0.9, 8, 2}, {"lifo", 0, 0, 0, 10}};
  SpeculationStats other = lane;  // a device may have had more than one
  other.lane = 1;
  return {lane, other};
}

const MetricsOf kProcess{.pid = "17", .command = "serve", .started_s = 1e9 + 0.5, .workers = 3};

std::map<std::string, Family> families_of(const Stats& stats) {
  return ExpositionParser::parse(metrics_text(stats, kProcess, true));
}

double value_of(const std::map<std::string, Family>& families, const std::string& name,
                std::map<std::string, std::string> labels) {
  labels.insert({{"pid", "17"}, {"command", "serve"}});
  const auto family = families.find(name);
  if (family == families.end() || !family->second.samples.contains(labels)) {
    ADD_FAILURE() << "no such sample of " << name;
    return -1;
  }
  return family->second.samples.at(labels);
}

TEST(Metrics, SayWhatWasCounted) {
  Stats stats({.path = {}, .summary = false, .costs = {}, .lanes = &two_lanes});
  stats.handle(copy_event(Route::carried, 1 << 20));
  stats.handle(copy_event(Route::carried, 1 << 20));
  stats.handle(copy_event(Route::passed_capture, 64, 719));
  const auto found = families_of(stats);
  const auto value = [&](const char* name, std::map<std::string, std::string> labels) {
    return value_of(found, name, std::move(labels));
  };
  EXPECT_EQ(value("sealane_up", {}), 1);
  EXPECT_EQ(value("sealane_start_time_seconds", {}), 1e9 + 0.5);
  EXPECT_EQ(value("sealane_workers", {}), 3);
  EXPECT_EQ(value("sealane_copy_bytes_total", {{"direction", "to_device"}, {"route", "carried"}}),
            2 << 20);
  EXPECT_EQ(
      value("sealane_copies_total", {{"direction", "to_device"}, {"route", "passed_capture"}}), 1);
  EXPECT_EQ(value("sealane_copies_total", {{"direction", "to_host"}, {"route", "carried"}}), 0);
  EXPECT_EQ(value("sealane_copy_errors_total", {{"direction", "to_device"}}), 1);
  EXPECT_DOUBLE_EQ(value("sealane_copy_blocked_seconds_total", {{"direction", "to_device"}}),
                   1500e-6);
  for (const std::string lane : {"0", "1"}) {
    const std::map<std::string, std::string> labels = {{"lane", lane}, {"device", "3"}};
    EXPECT_EQ(value("sealane_speculation_hits_total", labels), 7);
    EXPECT_EQ(value("sealane_speculation_misses_total", labels), 3);
    EXPECT_EQ(value("sealane_speculation_messages_ahead_total", labels), 6);
    EXPECT_EQ(value("sealane_speculation_slot_bytes", labels), 4096);
    auto with = [&](const char* name, const char* text) {
      auto more = labels;
      more[name] = text;
      return more;
    };
    EXPECT_EQ(value("sealane_speculation_voided_slots_total", with("reason", "rotated")), 5);
    EXPECT_EQ(value("sealane_speculation_voided_slots_total", with("reason", "stale")), 0);
    EXPECT_EQ(value("sealane_predictor_leads", with("predictor", "fifo")), 1);
    EXPECT_EQ(value("sealane_predictor_leads", with("predictor", "lifo")), 0);
    EXPECT_EQ(value("sealane_predictor_hits_total", with("predictor", "fifo")), 8);
  }
  EXPECT_EQ(
      value_of(ExpositionParser::parse(metrics_text(stats, kProcess, false)), "sealane_up", {}), 0);
}

// Every expression of a dashboard, as one text.
void collect_expressions(const nlohmann::json& value, std::string& out) {
  for (const auto& [key, inner] : value.items()) {
    if (inner.is_structured()) collect_expressions(inner, out);
    if (key == "expr" || (key == "query" && inner.is_string())) {
      out += inner.get<std::string>() + "\n";
    }
  }
}

// Does a sample have the label, and with this value?
bool has_label(const Family& family, const std::string& label, const std::string& value) {
  if (label == "instance" || label == "pid" || label == "command") return true;
  for (const auto& sample : family.samples) {
    const auto found = sample.first.find(label);
    if (found != sample.first.end() && found->second == value) return true;
  }
  return false;
}

void expect_known(const std::string& expressions, const std::map<std::string, Family>& known) {
  static const std::regex metric("(sealane_[a-z_]+)(\\{[^}]*\\})?");
  static const std::regex matcher("([a-z_]+)(=|!=|=~)\"([^\"]*)\"");
  size_t found = 0;
  for (std::sregex_iterator at(expressions.begin(), expressions.end(), metric), end; at != end;
       ++at, ++found) {
    const auto family = known.find((*at)[1]);
    ASSERT_NE(family, known.end()) << "nothing emits " << (*at)[1];
    const std::string labels = (*at)[2];
    for (std::sregex_iterator one(labels.begin(), labels.end(), matcher), none; one != none;
         ++one) {
      EXPECT_TRUE(has_label(family->second, (*one)[1], (*one)[3])) << at->str();
    }
  }
  EXPECT_GT(found, 5u);
}

TEST(Metrics, AreThoseTheDashboardAndTheAlertsAskFor) {
  Stats stats({.path = {}, .summary = false, .costs = {}, .lanes = &two_lanes});
  const auto known = families_of(stats);
  std::string dashboard;
  const std::string file = contents(SEALANE_DOCS_DIR "/recipes/grafana/sealane.json");
  const auto json = nlohmann::json::parse(file, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  collect_expressions(json, dashboard);
  expect_known(dashboard, known);
  expect_known(contents(SEALANE_DOCS_DIR "/recipes/grafana/alerts.yml"), known);
}

// Names of families in the order in which they are written.
std::vector<std::string> names_of(const std::string& text) {
  static const std::regex help("# HELP (\\w+) ");
  std::vector<std::string> out;
  for (std::sregex_iterator at(text.begin(), text.end(), help), end; at != end; ++at) {
    out.push_back((*at)[1]);
  }
  return out;
}

// "`device`, `lane`"; what every sample has is left out.
std::string labels_of(const Family& family) {
  std::string out;
  for (const std::string& label : family.label_names()) {
    if (label == "pid" || label == "command") continue;
    out += concat(out.empty() ? "`" : ", `", label, "`");
  }
  return out;
}

// One table for each set of labels, as a page shows it.
std::vector<std::string> tables_of(const Stats& stats) {
  const std::string text = metrics_text(stats, kProcess, true);
  const auto families = ExpositionParser::parse(text);
  std::vector<std::string> order;
  std::map<std::string, std::string> tables;
  for (const std::string& name : names_of(text)) {
    const Family& family = families.at(name);
    const std::string labels = labels_of(family);
    if (!tables.contains(labels)) {
      order.push_back(labels);
      const std::string title = labels.empty() ? "no label" : concat("by ", labels);
      tables[labels] = concat("| ", title, " | |\n|---|---|\n");
    }
    tables[labels] += concat("| `", name, "` | ", family.help, " |\n");
  }
  std::vector<std::string> out;
  for (const std::string& labels : order) out.push_back(tables[labels]);
  return out;
}

TEST(Metrics, AreThoseTheDocumentationLists) {
  const std::string page = contents(SEALANE_DOCS_DIR "/watching.md");
  Stats stats({.path = {}, .summary = false, .costs = {}, .lanes = &two_lanes});
  size_t listed = 0;
  for (const std::string& table : tables_of(stats)) {
    EXPECT_NE(page.find(concat("\n\n", table, "\n")), std::string::npos)
        << "docs/watching.md must have this table, to the letter:\n"
        << table;
    listed += static_cast<size_t>(std::count(table.begin(), table.end(), '\n')) - 2;
  }
  static const std::regex row("\n\\| `sealane_");
  EXPECT_EQ(std::distance(std::sregex_iterator(page.begin(), page.end(), row), {}), listed)
      << "the page lists something that nothing emits";
}

// The paper's rules are not a choice among predictors.
TEST(Metrics, NameALeaderThatNobodyElected) {
  Stats stats({.path = {}, .summary = false, .costs = {}, .lanes = [] {
                 auto lanes = two_lanes();
                 for (SpeculationStats& lane : lanes) lane.predictors.clear();
                 return lanes;
               }});
  const auto found = families_of(stats);
  EXPECT_EQ(value_of(found, "sealane_predictor_leads",
                     {{"lane", "1"}, {"device", "3"}, {"predictor", "fifo"}}),
            1);
  EXPECT_FALSE(found.contains("sealane_predictor_hits_total"));
}

TEST(Metrics, WithoutSpeculationHaveNoFamilyOfIt) {
  Stats stats({.path = {}, .summary = false, .costs = {}});
  for (const auto& [name, family] : families_of(stats)) {
    EXPECT_EQ(name.find("speculation"), std::string::npos) << name;
  }
}

TEST(Exposition, EscapesWhatMustBeEscaped) {
  Exposition out({{"command", "a\"b\\c\nd"}});
  out.family("x_total", Exposition::counter, "one\\two\nthree");
  out.sample({}, uint64_t{18446744073709551615u});
  out.sample({{"of", "y"}}, 0.1);
  EXPECT_EQ(out.text(),
            "# HELP x_total one\\\\two\\nthree\n# TYPE x_total counter\n"
            "x_total{command=\"a\\\"b\\\\c\\nd\"} 18446744073709551615\n"
            "x_total{command=\"a\\\"b\\\\c\\nd\",of=\"y\"} 0.1\n");
  const auto read = ExpositionParser::parse(out.text());
  EXPECT_EQ(read.at("x_total").samples.at({{"command", "a\"b\\c\nd"}, {"of", "y"}}), 0.1);
}

TEST(Metrics, ADirectoryGetsAFilePerProcess) {
  const Scratch scratch;
  const std::string pid = std::to_string(getpid());
  EXPECT_EQ(metrics_path(scratch.file("")), scratch.file("sealane-" + pid + ".prom"));
  EXPECT_EQ(metrics_path(scratch.file("x.%p.prom")), scratch.file("x." + pid + ".prom"));
  EXPECT_EQ(metrics_path(scratch.file("y.prom")), scratch.file("y.prom"));
}

TEST(Metrics, AFileThatCannotBeWrittenIsOneLine) {
  Stats stats({.path = {}, .summary = false, .costs = {}});
  Metrics metrics(stats, "/nowhere/at/all.prom", kProcess);
  testing::internal::CaptureStderr();
  metrics.finish();  // nothing happened yet
  stats.handle(copy_event(Route::carried, 1));
  metrics.finish();
  metrics.finish();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "sealane: cannot write /nowhere/at/all.prom: No such file or directory\n");
}

// Readers that come at any time find a whole file; after the end none is written any more.
TEST(Metrics, TheFileIsReplacedWholeWhileTheProgramRuns) {
  const Scratch scratch;
  const std::string path = scratch.file("m.prom");
  // The thread of a sink outlives the test: so must what it looks at.
  static Stats& stats = *new Stats({.path = {}, .summary = false, .costs = {}});
  static Metrics& metrics = *new Metrics(stats, path, kProcess);
  stats.handle(copy_event(Route::carried, 1));
  metrics.start(std::chrono::milliseconds(2));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  double seen = 0;
  while (seen < 5 && std::chrono::steady_clock::now() < deadline) {
    stats.handle(copy_event(Route::carried, 1));
    std::ifstream file(path);
    if (!file) continue;
    std::stringstream text;
    text << file.rdbuf();
    const auto found = ExpositionParser::parse(text.str());
    const double copies =
        value_of(found, "sealane_copies_total", {{"direction", "to_device"}, {"route", "carried"}});
    EXPECT_GE(copies, seen);
    seen = copies;
  }
  EXPECT_GE(seen, 5);
  metrics.finish();
  const std::string last = contents(path);
  EXPECT_EQ(value_of(ExpositionParser::parse(last), "sealane_up", {}), 0);
  stats.handle(copy_event(Route::carried, 1));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(contents(path), last);
}

}  // namespace
}  // namespace sealane::serve
