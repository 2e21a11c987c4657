// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/engine_report.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "base/byte_count.h"
#include "report/table.h"

namespace sealane::bench {
namespace {

// Operators are computed by this machine's cores, Python is not paced at all: what they take longer
// than on the modelled machine counts a dilation-th.
constexpr const char* kDilation = "120";

// Rows of one engine after another; `visit` gets each engine's first.
template <typename Visit>
void for_each_engine(const CopyReport& report, Visit&& visit) {
  const CopyRow* last = nullptr;
  size_t index = 0;
  for (const CopyRow& row : report.rows) {
    if (last != nullptr && last->what == row.what) continue;
    last = &row;
    visit(row, index++);
  }
}

std::string policies_table(const CopyReport& report, const CopyCase& engine) {
  report::Table table({{"policy", report::Align::left},
                       {"total ms"},
                       {"spread"},
                       {"loss left"},
                       {"copies ms"},
                       {"waits ms"},
                       {"foreseen"}});
  for (const CopyRow& row : report.rows) {
    if (row.what != engine) continue;
    const double foreseen = row.median(&CopyRun::hit_rate);
    table.add_row({row.policy->name, milliseconds(row, &CopyRun::total_s),
                   spread(row, &CopyRun::total_s), loss_left(report, row),
                   milliseconds(row, &CopyRun::blocked_s), milliseconds(row, &CopyRun::waits_s),
                   foreseen > 0 ? fmt::format("{:.0f} %", foreseen * 100) : ""});
  }
  return table.text();
}

std::string sizes_table(const CopySizes& sizes) {
  report::Table table({{"copies of", report::Align::left},
                       {"to device"},
                       {"bytes"},
                       {"pageable"},
                       {"to host"},
                       {"bytes"},
                       {"pageable"}});
  for (const CopySizes::Row& row : sizes.rows()) {
    std::vector<std::string> cells{row.to_device.name};
    for (const CopySizes::Class* one : {&row.to_device, &row.to_host}) {
      cells.push_back(fmt::format("{}", one->copies));
      cells.push_back(one->copies == 0 ? "" : format_byte_count(one->bytes));
      cells.push_back(one->copies == 0 ? "" : fmt::format("{}", one->pageable));
    }
    table.add_row(std::move(cells));
  }
  return table.text();
}

// Why a policy can be faster than CC mode off, where one is.
std::string faster_lines(const CopyReport& report) {
  const auto is_faster = [&](const CopyRow& row) {
    return loss_left(report, row).starts_with('-');
  };
  if (std::none_of(report.rows.begin(), report.rows.end(), is_faster)) return {};
  return "\nFaster than off, where copies are pageable: several workers stage them, with CC\n"
         "off one core of the driver does. It is no gain of CC mode: a program that stages\n"
         "with several threads has it without. From pinned memory there is no such gain.\n";
}

nlohmann::json engine_row_json(const CopyReport& report, const CopyRow& row) {
  nlohmann::json out = row_json(row);
  out["engine"] = row.what.example->name;
  out["versions"] = row.runs.front().about;
  out["waits_s"] = row.median(&CopyRun::waits_s);
  out["foreseen_rate"] = row.median(&CopyRun::hit_rate);
  out["answer"] = row.runs.front().hash;
  const std::string left = loss_left(report, row);
  if (!left.empty() && left != "?") out["loss_left"] = std::stod(left);
  return out;
}

}  // namespace

std::vector<CopyExample> engines(const std::string& python, const std::string& programs) {
  std::vector<CopyExample> all;
  for (const char* name : {"transformers", "transformers-kv", "peft", "flexgen"}) {
    all.push_back({.name = name,
                   .program = python,
                   .arguments = {"-W", "ignore", programs + "/run.py", name},
                   .dilation = kDilation,
                   .timed_only = true});
  }
  return all;
}

std::vector<CopyPolicy> engine_policies() {
  std::vector<CopyPolicy> out;
  for (const char* name : {"off", "stock", "parallel", "sealane", "speculate"}) {
    for (const CopyPolicy& one : copy_policies()) {
      if (one.name == name) out.push_back(one);
    }
  }
  return out;
}

const CopyPolicy& recording() {
  static const CopyPolicy made = {"recorded", false, {}, {}, true};
  return made;
}

CopySizes::CopySizes() {
  constexpr Class kClasses[] = {{"below 4 KiB", 4096},
                                {"below 64 KiB", 64 << 10},
                                {"below 1 MiB", 1 << 20},
                                {"below 16 MiB", 16 << 20},
                                {"16 MiB and more", UINT64_MAX}};
  for (const Class& one : kClasses) rows_.push_back({one, one});
}

void CopySizes::add(bool to_device, bool pageable, uint64_t bytes) {
  for (Row& row : rows_) {
    Class& one = to_device ? row.to_device : row.to_host;
    if (bytes >= one.below) continue;
    one.copies += 1;
    one.bytes += bytes;
    one.pageable += pageable ? 1 : 0;
    return;
  }
}

std::string engine_tables(const EngineReport& report) {
  const CopyReport& measured = report.measured;
  std::string text =
      fmt::format("MEASURED on the emulated GPU, platform {}, device time, median of {} round{}\n",
                  measured.platform, measured.rounds, measured.rounds == 1 ? "" : "s");
  for_each_engine(measured, [&](const CopyRow& first, size_t index) {
    text += fmt::format("\n{}: {}\n{}", first.what.name(), first.runs.front().about,
                        policies_table(measured, first.what));
    if (index < report.sizes.size()) text += "\n" + sizes_table(report.sizes[index]);
  });
  text +=
      "\nEvery policy gave the same tokens or losses. total: the timed part, end to end.\n"
      "loss left: of what stock CC mode costs over off; below 0: faster than off.\n"
      "copies and waits: callers in copies and in synchronising calls, while timed.\n"
      "foreseen: bulk copies that were predicted. Sizes: of a whole run with CC off.\n";
  return text + faster_lines(measured) + overrun_lines(measured);
}

nlohmann::json engine_json(const EngineReport& report) {
  const CopyReport& measured = report.measured;
  nlohmann::json out = {{"label", "MEASURED (emulated GPU)"}, {"time", "device time"},
                        {"platform", measured.platform},      {"rounds", measured.rounds},
                        {"rows", nlohmann::json::array()},    {"sizes", nlohmann::json::array()}};
  for (const CopyRow& row : measured.rows) out["rows"].push_back(engine_row_json(measured, row));
  for_each_engine(measured, [&](const CopyRow& first, size_t index) {
    if (index >= report.sizes.size()) return;
    for (const CopySizes::Row& row : report.sizes[index].rows()) {
      for (const bool to_device : {true, false}) {
        const CopySizes::Class& one = to_device ? row.to_device : row.to_host;
        out["sizes"].push_back({{"engine", first.what.example->name},
                                {"direction", to_device ? "to_device" : "to_host"},
                                {"size", one.name},
                                {"copies", one.copies},
                                {"bytes", one.bytes},
                                {"pageable", one.pageable}});
      }
    }
  });
  return out;
}

}  // namespace sealane::bench
