// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/validate_report.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "base/figures.h"
#include "bench/interleave.h"
#include "report/table.h"

namespace sealane::cli {
namespace {

using estimate::Check;
using nlohmann::json;
using report::Align;
using report::Table;

constexpr size_t kWhatColumns = 33;  // so that a row fits into 80

std::string number(double value) {
  if (value == 0) return "0";
  const int digits = value >= 1000 ? 0 : (value >= 100 ? 1 : (value >= 1 ? 2 : 3));
  return fmt::format("{:.{}f}", value, digits);
}

// As it was published: no digit that was not there.
std::string published(const Check& check) {
  if (!check.is_number()) return "holds";
  const auto end = [](double value) {
    return value >= 1000 ? number(value) : fmt::format("{:.4g}", value);
  };
  const std::string low = end(check.published_low);
  if (check.published_low == check.published_high) return fmt::format("{} {}", low, check.unit);
  return fmt::format("{}-{} {}", low, end(check.published_high), check.unit);
}

std::string predicted(const Check& check) {
  if (!check.is_number()) return check.predicted == 1 ? "holds" : "not";
  return number(check.predicted);
}

std::string error(const Check& check) {
  if (!check.is_number()) return check.predicted == 1 ? "-" : "wrong";
  if (check.error() == 0 && check.published_low != check.published_high) return "inside";
  return fmt::format("{:+.1f} {}", check.error(), check.in_points() ? "pts" : "%");
}

bool has_range(const Check& check) { return check.is_number() && check.range.known(); }

std::string range(const Check& check) {
  if (!has_range(check)) return "-";
  return fmt::format("{}-{}", number(check.range.low), number(check.range.high));
}

std::string mark(const Check& check) {
  if (check.calibrated) return "c";
  return has_range(check) && !check.inside() ? "*" : "";
}

// The lines of a cell that is too long for its column.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  const std::string folded = wrapped(text, 0, kWhatColumns - 2);
  for (size_t from = 0; from < folded.size();) {
    const size_t end = folded.find('\n', from);
    lines.push_back((lines.empty() ? "" : "  ") + folded.substr(from, end - from));
    from = end + 1;
  }
  return lines;
}

void add_row(Table& table, const Check& check) {
  std::vector<std::string> lines{check.what};
  if (check.what.size() > kWhatColumns) lines = lines_of(check.what);
  for (size_t i = 0; i + 1 < lines.size(); ++i) table.add_row({lines[i], "", "", "", "", ""});
  table.add_row(
      {lines.back(), published(check), predicted(check), range(check), error(check), mark(check)});
}

// Of the points that set no parameter: how far off, and how often inside.
struct Score {
  std::string group;
  size_t points = 0;
  size_t calibrated = 0;
  size_t inside = 0;
  size_t ranged = 0;
  std::vector<double> off{};  // per cent, sizes of errors
};

// Errors of percentages are in points: of the published number they are per cent like the others.
double relative_error(const Check& check) {
  if (!check.in_points()) return std::abs(check.error());
  const bool below = check.predicted < check.published_low;
  const double nearer = below ? check.published_low : check.published_high;
  return nearer == 0 ? 0 : 100 * std::abs(check.error()) / nearer;
}

void count(Score& score, const Check& check) {
  if (!check.is_number()) return;
  if (check.calibrated) {
    ++score.calibrated;
    return;
  }
  ++score.points;
  score.off.push_back(relative_error(check));
  if (!has_range(check)) return;
  ++score.ranged;
  score.inside += check.inside() ? 1 : 0;
}

std::vector<Score> scores_of(const estimate::Validation& validation) {
  std::vector<Score> scores;
  Score all{.group = "all"};
  for (const Check& check : validation.checks) {
    auto found = std::find_if(scores.begin(), scores.end(),
                              [&](const Score& each) { return each.group == check.group; });
    if (found == scores.end()) found = scores.insert(found, Score{.group = check.group});
    count(*found, check);
    count(all, check);
  }
  scores.push_back(std::move(all));
  for (Score& score : scores) std::sort(score.off.begin(), score.off.end());
  return scores;
}

double median(const std::vector<double>& values) {
  return values.empty() ? 0 : bench::summarize(values).median;
}

size_t sources_of(const estimate::Validation& validation) {
  std::set<std::string> sources;
  for (const Check& check : validation.checks) {
    if (check.is_number()) sources.insert(check.source);
  }
  return sources.size();
}

std::string score_text(const std::vector<Score>& scores, size_t sources, const std::string& truth) {
  Table table({{"of those that set no parameter", Align::left},
               {"points"},
               {"median"},
               {"worst"},
               {"inside 80 %"}});
  for (const Score& score : scores) {
    if (score.group == "all") table.add_rule();
    const bool any = score.points > 0;
    table.add_row({score.group, fmt::format("{}", score.points),
                   any ? fmt::format("{:.1f} %", median(score.off)) : "-",
                   any ? fmt::format("{:.1f} %", score.off.back()) : "-",
                   score.ranged > 0 ? fmt::format("{} of {}, {:.0f} %", score.inside, score.ranged,
                                                  100.0 * static_cast<double>(score.inside) /
                                                      static_cast<double>(score.ranged))
                                    : "-"});
  }
  const Score& all = scores.back();
  return table.text() +
         wrapped(fmt::format(
                     "{} numbers from {} source{}; {} of them, {:.0f} %, set no parameter and are "
                     "counted. Median and worst error are of the {} number. An interval "
                     "says what the platforms' numbers leave open, so "
                     "where fewer than four out of five lie inside, the model leaves "
                     "something out: trust it there no further than the worst error.",
                     all.points + all.calibrated, sources, sources == 1 ? "" : "s", all.points,
                     100.0 * static_cast<double>(all.points) /
                         static_cast<double>(std::max<size_t>(1, all.points + all.calibrated)),
                     truth),
                 0);
}

// Each note once, with the rows it is about.
std::string notes_text(const estimate::Validation& validation) {
  std::vector<std::pair<std::string, std::vector<std::string>>> notes;
  for (const Check& check : validation.checks) {
    if (check.note.empty()) continue;
    auto found = std::find_if(notes.begin(), notes.end(),
                              [&](const auto& each) { return each.first == check.note; });
    if (found == notes.end()) found = notes.insert(found, {check.note, {}});
    found->second.push_back(check.what);
  }
  if (notes.empty() && validation.notes.empty()) return {};
  std::string text = notes.empty() ? "\n" : "\nWhat a comparison assumes:\n";
  for (const auto& [note, rows] : notes) {
    const std::string more =
        rows.size() > 1 ? fmt::format(" (and {} more)", rows.size() - 1) : std::string();
    text += "  " + wrapped(fmt::format("{}{}: {}", rows.front(), more, note), 4);
  }
  for (const std::string& note : validation.notes) text += wrapped("Note: " + note, 0);
  return text;
}

}  // namespace

std::string validation_text(const estimate::Validation& validation, const std::string& title,
                            const std::string& truth) {
  Table table({{"what", Align::left}, {truth}, {"model"}, {"80 %"}, {"error"}, {"", Align::left}});
  std::string group;
  for (const Check& check : validation.checks) {
    if (check.group != group && !group.empty()) table.add_rule();
    group = check.group;
    add_row(table, check);
  }
  return title + "\n\n" + table.text() +
         "'c': it set a parameter, so it is no evidence. '*': outside the interval.\n\n" +
         score_text(scores_of(validation), sources_of(validation), truth) + notes_text(validation);
}

json validation_json(const estimate::Validation& validation) {
  json checks = json::array();
  for (const Check& check : validation.checks) {
    checks.push_back({{"group", check.group},
                      {"what", check.what},
                      {"unit", check.unit},
                      {"published", {check.published_low, check.published_high}},
                      {"predicted", check.predicted},
                      {"error", check.error()},
                      {"error_unit", check.in_points() ? "points" : "%"},
                      {"calibrated", check.calibrated},
                      {"source", check.source},
                      {"note", check.note}});
    if (!has_range(check)) continue;
    checks.back()["predicted_80"] = {check.range.low, check.range.high};
    checks.back()["inside_80"] = check.inside();
  }
  json scores = json::array();
  for (const Score& score : scores_of(validation)) {
    scores.push_back({{"group", score.group},
                      {"points", score.points},
                      {"calibrated", score.calibrated},
                      {"median_error_pct", median(score.off)},
                      {"worst_error_pct", score.off.empty() ? 0 : score.off.back()},
                      {"with_interval", score.ranged},
                      {"inside_80", score.inside}});
  }
  return {{"kind", "validation"},
          {"checks", std::move(checks)},
          {"scores", std::move(scores)},
          {"sources", sources_of(validation)},
          {"notes", validation.notes}};
}

}  // namespace sealane::cli
