// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/trial_bundle.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace sealane::cli {
namespace {

using nlohmann::json;

constexpr const char* kLeftOut = "(left out: it is the program's)";

// Text that a program printed, or was given, may be anybody's.
json without_the_programs_text(json trial) {
  for (const char* key :
       {"command", "production", "headline", "advice", "bundle", "bundle_file", "settings"}) {
    trial.erase(key);
  }
  if (!trial.contains("runs")) return trial;
  for (json& run : trial["runs"]) {
    if (!run.value("difference", "").empty()) run["difference"] = kLeftOut;
    run.erase("output");
  }
  return trial;
}

// From what the runtime wrote into its own file: stderr, where the page stands, is the program's.
std::string text_of(const ObservedPage& page) {
  if (!page.there) return "";
  std::string text = "What --observe found out about the driver:\n";
  for (const auto& [mark, what, found] : page.checks) {
    text += fmt::format("  {:<10} {}: {}\n", mark, what, found);
  }
  return text + "\n" + page.verdict + "\n";
}

constexpr size_t kBlock = 512;
constexpr size_t kNameMax = 100;

// Fields of a header, by their place in it.
constexpr size_t kMode = 100;
constexpr size_t kOwner = 108;
constexpr size_t kGroup = 116;
constexpr size_t kSize = 124;
constexpr size_t kTime = 136;
constexpr size_t kChecksum = 148;
constexpr size_t kType = 156;
constexpr size_t kMagic = 257;

std::string header_of(const TarMember& member) {
  std::string header(kBlock, '\0');
  const auto put = [&](size_t at, const std::string& text) {
    header.replace(at, text.size(), text);
  };
  put(0, member.name.substr(0, kNameMax));
  put(kMode, "0000644");
  put(kOwner, "0000000");
  put(kGroup, "0000000");
  put(kSize, fmt::format("{:011o}", member.content.size()));
  put(kTime, fmt::format("{:011o}", 0));
  put(kChecksum, "        ");
  put(kType, "0");
  put(kMagic, std::string("ustar\0"
                          "00",
                          8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(kChecksum, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return header;
}

}  // namespace

std::string tar_of(const std::vector<TarMember>& members) {
  std::string out;
  for (const TarMember& member : members) {
    out += header_of(member) + member.content;
    out.resize((out.size() + kBlock - 1) / kBlock * kBlock, '\0');
  }
  return out + std::string(2 * kBlock, '\0');
}

std::vector<TarMember> trial_bundle(const json& trial, const TrialRecords& records,
                                    const Private& names) {
  std::vector<TarMember> out;
  const auto add = [&](std::string name, std::string text, std::string what) {
    out.push_back({std::move(name), std::move(text), std::move(what)});
  };
  const auto add_json = [&](std::string name, const json& value, std::string what) {
    if (!value.is_structured()) return;  // what was not written, or only in part
    const json masked = texts_without_private(value, names);
    add(std::move(name), masked.dump(1, ' ', false, json::error_handler_t::replace) + "\n",
        std::move(what));
  };
  add_json("trial.json", without_the_programs_text(trial),
           "the verdict, and how and how fast each run ended");
  add_json("doctor.json", records.doctor, "what `sealane doctor` found on this machine");
  if (const std::string page = text_of(records.observed); !page.empty()) {
    add("observe.txt", without_private(page, names), "what --observe found out about the driver");
  }
  for (const auto& [run, counters] : records.statistics) {
    add_json(fmt::format("stats-{}.json", run), counters, "counters of that run (--stats)");
  }
  std::string list = "What is in this bundle of `sealane trial`:\n";
  for (const TarMember& one : out) list += fmt::format("  {}: {}\n", one.name, one.what);
  list +=
      "Not in it: keys, data, output and arguments of the program. Paths, network addresses and\n"
      "names of hosts and people are masked.\n";
  out.insert(out.begin(), {"LIST.txt", list, "this list"});
  return out;
}

}  // namespace sealane::cli
