// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does docs/watching.md name every field of --stats, every route, answer and reason, and none that
// nothing writes?

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <regex>
#include <set>
#include <string>

#include "base/text.h"
#include "watch/observer.h"
#include "watch/scratch.h"
#include "watch/stats.h"

namespace sealane::serve {
namespace {

using nlohmann::json;

std::vector<SpeculationStats> a_lane() {
  SpeculationStats lane{.device = 0};
  lane.leader = "fifo";
  lane.predictors = {{"fifo", 0.5, 0.9, 8, 2}};
  return {lane};
}

// Everything there can be: a copy, a call, a note, a part that was profiled.
json stats_of_everything() {
  static const Observer observer({});
  Stats stats({.path = {}, .summary = false, .costs = {}, .lanes = &a_lane, .observer = &observer});
  Event event;
  event.kind = EventKind::call;
  event.text = "cuProfilerStart";
  event.call = Call::start_profile;
  stats.handle(event);
  event.kind = EventKind::copy;
  event.call = Call::other;
  event.bytes = 4096;
  stats.handle(event);
  event.kind = EventKind::note;
  event.text = "a note";
  stats.handle(event);
  return json::parse(stats.json());
}

// The names of an object's fields are data there: one star stands for them all.
bool has_any_names(const std::string& path) {
  return path == "calls" || path.ends_with(".messages") || path.ends_with(".voided");
}

void collect(const json& value, const std::string& path, std::set<std::string>& out) {
  if (path == "profiled") {
    out.insert("profiled.*");  // the same again
  } else if (value.is_array()) {
    ASSERT_FALSE(value.empty()) << path << ": the test has to make one";
    for (const json& element : value) collect(element, path + "[]", out);
  } else if (value.is_object()) {
    ASSERT_FALSE(value.empty()) << path << ": the test has to make one";
    for (const auto& [name, inner] : value.items()) {
      const bool either = path.empty() && name.starts_with("to_");
      const std::string shown = either ? "to_*" : has_any_names(path) ? "*" : name;
      collect(inner, path.empty() ? shown : concat(path, ".", shown), out);
    }
  } else {
    out.insert(path);
  }
}

// What stands between the page's heading of --stats and the next one.
std::string section() {
  const std::string page = test::contents(SEALANE_DOCS_DIR "/watching.md");
  const size_t begin = page.find("\n## --stats\n");
  return page.substr(begin, page.find("\n## ", begin + 1) - begin);
}

// Of every row of its table the first cell: `a.b`, `.c` are a.b and a.c.
std::set<std::string> documented() {
  static const std::regex row("\n\\| (`[^|]*`) \\|");
  static const std::regex name("`([^`]+)`");
  const std::string text = section();
  std::set<std::string> out;
  for (std::sregex_iterator at(text.begin(), text.end(), row), end; at != end; ++at) {
    const std::string cell = (*at)[1];
    std::string parent;
    for (std::sregex_iterator one(cell.begin(), cell.end(), name); one != end; ++one) {
      const std::string field = (*one)[1];
      const std::string whole = field.starts_with(".") ? parent + field : field;
      parent = whole.substr(0, std::min(whole.rfind('.'), whole.size()));
      EXPECT_TRUE(out.insert(whole).second) << whole << " stands there twice";
    }
  }
  return out;
}

TEST(StatsPage, NamesEveryFieldThatIsWrittenAndNoOther) {
  std::set<std::string> written;
  collect(stats_of_everything(), "", written);
  EXPECT_EQ(documented(), written);
}

template <typename Kind>
void expect_named(const std::string& text, size_t kinds) {
  for (size_t i = 0; i < kinds; ++i) {
    const std::string name(to_string(static_cast<Kind>(i)));
    EXPECT_NE(text.find(concat("`", name, "`")), std::string::npos) << name;
  }
}

TEST(StatsPage, NamesEveryRouteAnswerReasonAndDecision) {
  const std::string text = section();
  expect_named<Route>(text, kRoutes);
  expect_named<Answer>(text, kAnswers);
  expect_named<VoidReason>(text, kVoidReasons);
  expect_named<SpeculationChoice::Why>(text,
                                       static_cast<size_t>(SpeculationChoice::Why::no_worker) + 1);
}

}  // namespace
}  // namespace sealane::serve
