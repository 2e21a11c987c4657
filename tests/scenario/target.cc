// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "scenario/target.h"

#include <map>

#include "base/text.h"

namespace sealane::test {
namespace {

using Relation = Expectation::Relation;

// "Never worse than stock", in simulation.
constexpr double kSlowdownMax = 1.02;

// Runs of the scenario's beginnings, each made once: runs are deterministic, so what was seen at a
// line is what a run sees that ends there.
class Runs {
 public:
  Runs(const Scenario& scenario, ScenarioTarget& target) : scenario_(scenario), target_(target) {}

  Result<const Observation*> up_to(size_t operations) {
    auto& seen = seen_[operations];
    if (!seen) {
      auto run = target_.run(scenario_.prefix(operations));
      if (!run) return run.error();
      seen = std::move(*run);
    }
    return seen.get();
  }

  Result<std::unique_ptr<Observation>> under_stock(size_t operations) {
    Scenario stock = scenario_.prefix(operations);
    stock.setup.policy = "stock";
    return target_.run(stock);
  }

 private:
  const Scenario& scenario_;
  ScenarioTarget& target_;
  std::map<size_t, std::unique_ptr<Observation>> seen_;
};

bool holds(Relation relation, uint64_t seen, uint64_t expected) {
  switch (relation) {
    case Relation::exactly:
      return seen == expected;
    case Relation::at_least:
      return seen >= expected;
    case Relation::at_most:
      return seen <= expected;
  }
  return false;
}

std::string_view words(Relation relation) {
  switch (relation) {
    case Relation::exactly:
      return "";
    case Relation::at_least:
      return "at least ";
    case Relation::at_most:
      return "at most ";
  }
  return "";
}

// What was seen instead; empty if the expectation holds or cannot be judged here.
Result<std::string> compare_counter(const Expectation& expected, Runs& runs) {
  const auto now = runs.up_to(expected.after);
  if (!now) return now.error();
  auto seen = (*now)->counter(expected.what);
  if (!seen) return std::string();
  // The largest use of slots is not a sum; a mark does not change it.
  if (expected.since > 0 && expected.what != "slots") {
    const auto then = runs.up_to(expected.since);
    if (!then) return then.error();
    *seen -= (*then)->counter(expected.what).value_or(0);
  }
  if (holds(expected.relation, *seen, expected.value)) return std::string();
  return concat("expected ", expected.what, " ", words(expected.relation), expected.value, ", saw ",
                *seen);
}

Result<std::string> compare_with_stock(const Expectation& expected, Runs& runs) {
  const auto now = runs.up_to(expected.after);
  if (!now) return now.error();
  const auto stock = runs.under_stock(expected.after);
  if (!stock) return stock.error();
  if (!(*now)->elapsed() || !(*stock)->elapsed()) return std::string();
  const double ratio = static_cast<double>((*now)->elapsed()->count()) /
                       static_cast<double>((*stock)->elapsed()->count());
  if (ratio <= kSlowdownMax) return std::string();
  return concat("took ", static_cast<int>(ratio * 100), " % of stock's time");
}

Result<std::string> compare(const Expectation& expected, Runs& runs) {
  if (expected.what == "as-fast-as-stock") return compare_with_stock(expected, runs);
  if (expected.what != "ok" && expected.what != "error") return compare_counter(expected, runs);
  const auto now = runs.up_to(expected.after);
  if (!now) return now.error();
  const std::string error = (*now)->error();
  if (expected.what == "ok" && !error.empty()) return "expected ok, the program got: " + error;
  if (expected.what == "error" && error.empty()) return std::string("expected an error, saw none");
  return std::string();
}

}  // namespace

std::vector<std::string> run_scenario(const Scenario& scenario, ScenarioTarget& target) {
  std::vector<std::string> failures;
  Runs runs(scenario, target);
  for (const Expectation& expected : scenario.expectations) {
    if (!target.judges(expected)) continue;
    const auto mistake = compare(expected, runs);
    const std::string where = concat(scenario.name, ".txt:", expected.line, ": ");
    if (!mistake) {
      failures.push_back(where + mistake.error().message);
    } else if (!mistake->empty()) {
      failures.push_back(where + *mistake);
    }
  }
  const auto whole = runs.up_to(scenario.program.size());
  if (!whole) {
    failures.push_back(scenario.name + ".txt: " + whole.error().message);
  } else if (!(*whole)->violation().empty()) {
    failures.push_back(scenario.name + ".txt: " + (*whole)->violation());
  }
  return failures;
}

}  // namespace sealane::test
