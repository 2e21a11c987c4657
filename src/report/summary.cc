// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "report/summary.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/figures.h"
#include "base/text.h"
#include "report/shape.h"

namespace sealane::report {
namespace {

using nlohmann::json;

constexpr size_t kRowsMax = 8;  // of one file
constexpr size_t kTextAt = 11;  // behind "SIMULATED"

std::string number(double value) {
  std::array<char, 32> text{};
  const int digits = std::abs(value) >= 100 ? 0 : (std::abs(value) >= 10 ? 1 : 2);
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string whole(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

double number_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  // Written by whoever made the file, and printed.
  return found != object.end() && found->is_string() ? visible(found->get<std::string>())
                                                     : std::string();
}

using Lines = std::vector<std::string>;

void estimate(const json& run, Lines& simulated) {
  const bool training = text_of(run, "workload") == "ddp";
  std::string line = text_of(run, "workload") + " " + text_of(run, "model") + " on " +
                     text_of(run, "platform") + (training ? ", times \"off\":" : ", loss:");
  for (const char* policy : {"stock", "study", "buckets", "pipellm", "sealane"}) {
    const auto found = run["policies"].find(policy);
    if (found == run["policies"].end() || !found->is_object()) continue;
    line += std::string(" ") + policy + " " +
            (training ? number(number_of(*found, "slowdown")) + "x"
                      : number(number_of(*found, "loss_pct")) + " %");
  }
  simulated.push_back(line);
}

void validation(const json& run, Lines& published) {
  for (const json& check : run["checks"]) {
    const std::string group = text_of(check, "group");
    const std::string unit = text_of(check, "unit");
    const auto range = check.find("published");
    if ((group != "PipeLLM" && group != "DDP study") || unit == "holds") continue;
    if (range == check.end() || !range->is_array() || range->size() != 2) continue;
    const bool one = (*range)[0] == (*range)[1];
    const auto calibrated = check.find("calibrated");  // null is as good as missing
    const bool is_calibrated = calibrated != check.end() && *calibrated == true;
    const auto end = [&](size_t i) {
      return (*range)[i].is_number() ? number((*range)[i].get<double>()) : std::string("?");
    };
    published.push_back(text_of(check, "what") + ": " + (one ? "" : end(0) + " to ") + end(1) +
                        " " + unit + " (model: " + number(number_of(check, "predicted")) + " " +
                        unit + (is_calibrated ? ", calibrated)" : ")"));
  }
}

// A figure of a row, in the unit people read it in.
struct Figure {
  const char* key;
  double scale;
  const char* unit;
};

void measured_rows(const json& run, Lines& measured) {
  const std::string where = text_of(run, "label") == "MEASURED (emulated GPU)" ? " emulated" : "";
  size_t shown = 0;
  for (const json& row : rows_of(run)) {
    if (!row.is_object()) break;
    std::string line;
    for (const char* key :
         {"op", "where", "engine", "example", "model", "system", "backend", "mode", "policy"}) {
      if (const std::string text = text_of(row, key); !text.empty()) line += text + " ";
    }
    if (const double bytes = number_of(row, "bytes"); bytes > 0 && row.contains("busbw_gb_s")) {
      line += number(bytes / (1 << 20)) + " MiB ";
    }
    for (const Figure& figure : {Figure{"busbw_gb_s", 1, "GB/s"},
                                 {"gb_s", 1, "GB/s"},
                                 {"iteration_ms", 1, "ms"},
                                 {"total_s", 1e3, "ms"}}) {
      if (!row.contains(figure.key)) continue;
      if (++shown > kRowsMax) break;
      measured.push_back(line + number(number_of(row, figure.key) * figure.scale) + " " +
                         figure.unit + where);
      break;
    }
  }
  if (shown > kRowsMax) {
    measured.push_back("… and " + std::to_string(shown - kRowsMax) + " more rows in the page");
  }
}

// "1.02x to 1.10x", over the rows of sealed mode.
class Range {
 public:
  void add(double value) {
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
  }
  std::string text() const {
    return (low_ == high_ ? "" : number(low_) + "x to ") + number(high_) + "x";
  }

 private:
  double low_ = std::numeric_limits<double>::max();
  double high_ = 0;
};

void training_study(const json& run, Lines& measured, Lines& published) {
  struct Group {
    std::set<std::string> models;
    Range plain, gloo;
  };
  std::map<std::pair<double, double>, Group> groups;  // by ranks and bucket size
  for (const json& row : run["rows"]) {
    if (text_of(row, "mode") != "sealed") continue;
    Group& group = groups[{number_of(row, "ranks"), number_of(row, "bucket_mb")}];
    group.models.insert(text_of(row, "model"));
    group.plain.add(number_of(row, "slowdown_vs_plain"));
    group.gloo.add(number_of(row, "slowdown_vs_gloo"));
  }
  for (const auto& [key, group] : groups) {
    const bool one = group.models.size() == 1;
    measured.push_back(
        "training, " + whole(key.first) + " ranks, buckets of " + whole(key.second) + " MB, " +
        (one ? *group.models.begin() : whole(double(group.models.size())) + " models") +
        ": sealed " + group.plain.text() + " plain, " + group.gloo.text() + " Gloo");
  }
  const auto points = run.find("published");
  if (points == run.end()) return;
  for (const json& point : *points) {
    std::string buckets = text_of(point, "buckets");
    if (!buckets.empty() && buckets[0] >= '0' && buckets[0] <= '9') buckets += " MiB";
    published.push_back("training on " + whole(number_of(point, "ranks")) + " GPUs, " +
                        text_of(point, "model") + (buckets.empty() ? "" : ", buckets: " + buckets) +
                        ": " + number(number_of(point, "slowdown")) + "x");
  }
}

}  // namespace

std::vector<SummaryLine> summarize(const std::vector<json>& runs) {
  Lines measured, simulated, published;
  for (const json& run : runs) {
    switch (kind_of(run)) {
      case RunKind::estimate:
        estimate(run, simulated);
        break;
      case RunKind::validation:
        validation(run, published);
        break;
      case RunKind::study:
        training_study(run, measured, published);
        break;
      case RunKind::rows:
        measured_rows(run, measured);
        break;
      case RunKind::unknown:
        break;
    }
  }
  std::vector<SummaryLine> all;
  for (const auto& [label, lines] :
       {std::pair("MEASURED", &measured), {"SIMULATED", &simulated}, {"PUBLISHED", &published}}) {
    for (const std::string& line : *lines) all.push_back({label, line});
  }
  return all;
}

std::string to_text(const std::vector<SummaryLine>& lines) {
  std::string text;
  for (const SummaryLine& one : lines) {
    text += padded(one.evidence, kTextAt) + wrapped(one.text, kTextAt);
  }
  return text;
}

}  // namespace sealane::report
