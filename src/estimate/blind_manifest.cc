// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads a manifest. It is somebody else's file: whatever is unknown or out of place is refused with
// file and line, and of the folder only what the manifest names as input is opened.

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <variant>

#include "base/try.h"
#include "estimate/blind.h"
#include "estimate/serving.h"
#include "platform/reader.h"
#include "platform/toml_text.h"
#include "workload/nsys.h"
#include "workload/trace.h"

namespace sealane::estimate {
namespace {

namespace fs = std::filesystem;
using workload::ServingOptions;

constexpr size_t kRunsMost = 10'000;
constexpr uint64_t kCopyBytesMost = uint64_t{1} << 40;

// "decode" is one of "concurrency prompt steps", "con" is not.
bool is_among(std::string_view word, std::string_view words) {
  return fmt::format(" {} ", words).find(fmt::format(" {} ", word)) != std::string::npos;
}

class ManifestReader {
 public:
  explicit ManifestReader(const fs::path& directory)
      : directory_(directory), file_((directory / "manifest.toml").string()) {}

  Result<Blind> read(const toml::table& root) {
    blind_.manifest = file_;
    std::string platform;
    std::string measured = "measured.csv";
    const toml::array* runs = nullptr;
    for (const auto& [key, node] : root) {
      Status status;
      if (key == "sender") {
        status = text(node, "sender", blind_.sender);
      } else if (key == "platform") {
        status = text(node, "platform", platform);
      } else if (key == "measured") {
        status = text(node, "measured", measured);
      } else if (key == "run" && node.is_array_of_tables()) {
        runs = node.as_array();
      } else {
        status = error(node, fmt::format("unknown key '{}'", key.str()));
      }
      if (!status) return status.error();
    }
    if (blind_.sender.empty()) return missing("sender");
    if (platform.empty()) return missing("platform");
    if (runs == nullptr || runs->empty()) return missing("[[run]]");
    if (runs->size() > kRunsMost) return error(*runs, "more runs than anybody checks");
    blind_.measured = (directory_ / measured).string();
    if (platform.ends_with(".toml")) platform = (directory_ / platform).string();
    blind_.inputs.insert(blind_.inputs.end(), {file_, blind_.measured, platform_file(platform)});
    SEALANE_LET(auto found, find_platform(platform));
    blind_.platform = std::move(found);
    for (const toml::node& run : *runs) {
      SEALANE_TRY(read_run(*run.as_table()));
    }
    return std::move(blind_);
  }

 private:
  Status read_run(const toml::table& table) {
    BlindRun run;
    options_ = nullptr;
    model_.clear();
    for (const auto& [key, node] : table) {
      SEALANE_TRY(field(run, std::string(key.str()), node));
    }
    if (run.name.empty()) return error(table, "a run without a name");
    if (!names_.insert(run.name).second) {
      return error(table, fmt::format("two runs are called '{}'", run.name));
    }
    const int kinds = (run.serving != nullptr || run.training != nullptr ? 1 : 0) +
                      (run.program ? 1 : 0) + (run.copy_bytes > 0 ? 1 : 0);
    if (kinds != 1) {
      return error(table, fmt::format("{}: give one of workload, trace and copy-bytes", run.name));
    }
    SEALANE_TRY(fit_model(run, table));
    SEALANE_TRY(read_options(run));
    SEALANE_TRY(fit_policy(run, table));
    SEALANE_TRY(fit_metric(run, table));
    blind_.runs.push_back(std::move(run));
    return {};
  }

  Status field(BlindRun& run, const std::string& key, const toml::node& node) {
    if (key == "name") return name(node, run.name);
    if (key == "workload") return workload_name(node, run);
    if (key == "model") return text(node, key, model_);
    if (key == "trace") return trace(node, run);
    if (key == "policy") return text(node, key, run.policy);
    if (key == "measures") {
      return one_of(node, key, {"loss", "slowdown", "time", "throughput", "copy-time", "copy-rate"},
                    run.metric);
    }
    if (key == "direction") return one_of(node, key, {"to-device", "to-host"}, run.direction);
    if (key == "memory") return one_of(node, key, {"pinned", "pageable"}, run.memory);
    if (key == "copy-bytes") return whole(node, key, kCopyBytesMost, run.copy_bytes);
    if (key == "workers") {
      uint64_t workers = 0;
      SEALANE_TRY(whole(node, key, 1'024, workers));
      run.workers = static_cast<uint32_t>(workers);
      return {};
    }
    if (key == "options" && node.is_table()) {
      options_ = node.as_table();
      return {};
    }
    return error(node, fmt::format("unknown key '{}'", key));
  }

  // A name is a field of a CSV file.
  Status name(const toml::node& node, std::string& to) {
    SEALANE_TRY(text(node, "name", to));
    if (to.find_first_of(",\"") == std::string::npos) return {};
    return error(node, "name: without commas and quotes");
  }

  Status workload_name(const toml::node& node, BlindRun& run) {
    std::string name;
    SEALANE_TRY(text(node, "workload", name));
    run.serving = workload::find_serving(name);
    if (name == kTrainingWorkload) run.training = workload::find_training_model("gpt2-xl");
    if (run.serving != nullptr || run.training != nullptr) return {};
    return error(node, fmt::format("unknown workload '{}'", name));
  }

  // The one that was named, or the workload's usual.
  Status fit_model(BlindRun& run, const toml::table& table) const {
    if (run.serving == nullptr && run.training == nullptr) {
      if (options_ == nullptr && model_.empty()) return {};
      return error(table, fmt::format("{}: model and options are for workloads", run.name));
    }
    if (run.training != nullptr) {
      if (!model_.empty()) run.training = workload::find_training_model(model_);
      if (run.training != nullptr) return {};
    } else {
      run.model = workload::find_model(model_.empty() ? run.serving->model : model_);
      if (run.model != nullptr) return {};
    }
    return error(table, fmt::format("unknown model '{}'", model_));
  }

  Status trace(const toml::node& node, BlindRun& run) {
    std::string name;
    SEALANE_TRY(text(node, "trace", name));
    const std::string path = (directory_ / name).string();
    const bool nsys = workload::is_nsys(path);
    const auto files = nsys ? workload::nsys_files(path) : std::vector<std::string>{path};
    blind_.inputs.insert(blind_.inputs.end(), files.begin(), files.end());
    SEALANE_LET(run.program, nsys ? workload::load_nsys(path) : workload::load_trace(path));
    return {};
  }

  Status fit_policy(const BlindRun& run, const toml::table& table) const {
    bool known = find_serving_policy(run.policy) != nullptr;
    if (run.training != nullptr) {
      const auto all = ddp_policies(run.ddp.fabric);
      known = std::find(all.begin(), all.end(), run.policy) != all.end();
    }
    if (known) return {};
    return error(table, fmt::format("unknown policy '{}'", run.policy));
  }

  // One of `words`, by its place among them.
  template <typename Kind>
  Status one_of(const toml::node& node, const std::string& key,
                const std::vector<std::string_view>& words, Kind& to) const {
    std::string name;
    SEALANE_TRY(text(node, key, name));
    const auto found = std::find(words.begin(), words.end(), name);
    if (found == words.end()) {
      return error(node, fmt::format("{}: unknown '{}': {}", key, name, fmt::join(words, " or ")));
    }
    to = static_cast<Kind>(found - words.begin());
    return {};
  }

  // What a run of that kind has.
  Status fit_metric(BlindRun& run, const toml::table& table) const {
    const bool of_copy = run.metric == Metric::copy_time || run.metric == Metric::copy_rate;
    const bool right =
        run.copy_bytes > 0
            ? of_copy && (run.policy == "off" || run.policy == "stock")
            : !of_copy && (run.metric != Metric::throughput || run.serving != nullptr);
    if (right) return {};
    return error(table, fmt::format("{}: copies have copy-time or copy-rate, under off or stock; "
                                    "workloads loss, slowdown, time or throughput; traces and "
                                    "training loss, slowdown or time",
                                    run.name));
  }

  Status read_options(BlindRun& run) {
    if (options_ == nullptr) return {};
    for (const auto& [key, node] : *options_) {
      const std::string name(key.str());
      if (run.training != nullptr) {
        SEALANE_TRY(training_option(run.ddp, name, node));
        continue;
      }
      if (!is_among(name, run.serving->flags)) {
        return error(node, fmt::format("{} means nothing to '{}', which reads: {}", name,
                                       run.serving->name, run.serving->flags));
      }
      SEALANE_TRY(option(run.options, name, node));
    }
    return {};
  }

  Status training_option(DdpOptions& options, const std::string& key,
                         const toml::node& node) const {
    std::variant<double, std::string> value;
    if (node.is_number()) {
      value = *node.value<double>();
    } else {
      std::string word;
      SEALANE_TRY(text(node, key, word));
      value = std::move(word);
    }
    const auto wrong = set_training_option(options, key, value);
    if (!wrong) return {};
    return error(node, fmt::format("{}: {}", key, *wrong));
  }

  Status option(ServingOptions& options, const std::string& key, const toml::node& node) const {
    const auto all = serving_options();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const ServingOption& each) { return each.name == key; });
    if (found == all.end() || std::holds_alternative<SetWord>(found->to)) {
      std::string word;
      SEALANE_TRY(text(node, key, word));
      if (found != all.end() && set_serving_word(*found, word, options)) return {};
      return error(node, fmt::format("{}: unknown '{}'", key, word));
    }
    const auto value = node.value<double>();
    constexpr double kMost = 1e9;
    if (!node.is_number() || !value || !std::isfinite(*value) || *value < 0 || *value > kMost) {
      return error(node, fmt::format("{}: must be a number from 0 to {}", key, kMost));
    }
    if (const auto* real = std::get_if<std::optional<double> ServingOptions::*>(&found->to)) {
      options.** real = *value;
      return {};
    }
    if (*value != std::floor(*value) || *value < std::min(found->least, 1.0)) {
      return error(node, fmt::format("{}: must be a whole number, at least 1", key));
    }
    options.*std::get<0>(found->to) = static_cast<uint64_t>(*value);
    return {};
  }

  Status text(const toml::node& node, std::string_view key, std::string& to) const {
    const auto* found = node.as_string();
    if (found == nullptr || found->get().empty() ||
        std::any_of(found->get().begin(), found->get().end(),
                    [](char c) { return static_cast<unsigned char>(c) < ' '; })) {
      return error(node, fmt::format("{}: must be a line of text in quotes", key));
    }
    to = found->get();
    return {};
  }

  Status whole(const toml::node& node, const std::string& key, uint64_t most, uint64_t& to) const {
    const auto* found = node.as_integer();
    if (found == nullptr || found->get() < 1 || static_cast<uint64_t>(found->get()) > most) {
      return error(node, fmt::format("{}: must be a whole number from 1 to {}", key, most));
    }
    to = static_cast<uint64_t>(found->get());
    return {};
  }

  Error error(const toml::node& node, const std::string& what) const {
    return usage_error(fmt::format("{}:{}: {}", file_, node.source().begin.line, what));
  }
  Error missing(std::string_view key) const {
    return usage_error(fmt::format("{}:1: missing {}", file_, key));
  }

  fs::path directory_;
  std::string file_;
  Blind blind_;
  const toml::table* options_ = nullptr;  // of the run that is being read
  std::string model_;
  std::set<std::string> names_;
};

}  // namespace

Result<Blind> read_blind(const std::string& directory) {
  const std::string file = (fs::path(directory) / "manifest.toml").string();
  SEALANE_LET(const auto text, read_toml(file, "a manifest"));
  SEALANE_LET(const auto table, parse_toml(text, file));
  return ManifestReader(directory).read(table);
}

}  // namespace sealane::estimate
