// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "report/summary.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

namespace sealane::report {
namespace {

using nlohmann::json;

constexpr size_t kRowsMax = 8;  // of one file

std::string number(double value) {
  std::array<char, 32> text{};
  const int digits = std::abs(value) >= 100 ? 0 : (std::abs(value) >= 10 ? 1 : 2);
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

double number_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
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
    const auto end = [&](size_t i) {
      return (*range)[i].is_number() ? number((*range)[i].get<double>()) : std::string("?");
    };
    published.push_back(text_of(check, "what") + ": " + (one ? "" : end(0) + " to ") + end(1) +
                        " " + unit + " (model: " + number(number_of(check, "predicted")) + " " +
                        unit + (check.value("calibrated", false) ? ", calibrated)" : ")"));
  }
}

void measured_rows(const json& rows, Lines& measured) {
  size_t shown = 0;
  for (const json& row : rows) {
    if (!row.is_object() || shown == kRowsMax) break;
    std::string line;
    for (const char* key : {"op", "example", "model", "system", "backend", "mode", "policy"}) {
      if (const std::string text = text_of(row, key); !text.empty()) line += text + " ";
    }
    if (const double bytes = number_of(row, "bytes"); bytes > 0 && row.contains("busbw_gb_s")) {
      line += number(bytes / (1 << 20)) + " MiB ";
    }
    for (const auto& [key, unit] : {std::pair("busbw_gb_s", "GB/s"),
                                    {"gb_s", "GB/s"},
                                    {"iteration_ms", "ms"},
                                    {"total_s", "s"}}) {
      if (!row.contains(key)) continue;
      measured.push_back(line + number(number_of(row, key)) + " " + unit);
      ++shown;
      break;
    }
  }
}

}  // namespace

std::string summarize(const std::vector<json>& runs) {
  Lines measured, simulated, published;
  for (const json& run : runs) {
    if (run.contains("policies")) {
      estimate(run, simulated);
    } else if (run.contains("checks")) {
      validation(run, published);
    } else {
      measured_rows(run.contains("rows") ? run["rows"] : run["results"], measured);
    }
  }
  std::string text;
  for (const auto& [label, lines] :
       {std::pair("MEASURED", &measured), {"SIMULATED", &simulated}, {"PUBLISHED", &published}}) {
    for (const std::string& line : *lines) {
      text +=
          std::string(label) + std::string(11 - std::string_view(label).size(), ' ') + line + "\n";
    }
  }
  return text;
}

}  // namespace sealane::report
