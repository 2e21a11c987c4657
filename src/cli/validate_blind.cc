// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <sstream>

#include "base/text.h"
#include "base/try.h"
#include "cli/progress.h"
#include "cli/read_file.h"
#include "cli/utc_now.h"
#include "cli/validate_report.h"
#include "core/session/sha256.h"
#include "estimate/blind.h"
#include "report/output.h"
#include "sealane_commit.h"
#include "sealane_version.h"

namespace sealane::cli {
namespace {

namespace fs = std::filesystem;

std::string sha256(const std::string& content) {
  Sha256 hash;
  hash.add(as_bytes(content));
  return hash.text();
}

// The folder is its sender's: a link in it would have us write wherever he likes.
Status check_ordinary(const std::string& path) {
  std::error_code failed;
  const fs::file_status status = fs::symlink_status(path, failed);
  if (!fs::exists(status) || fs::is_regular_file(status)) return {};
  return usage_error(path + " is no ordinary file: it is to be written, so take it away");
}

// What was foretold before stands.
Status commit(const std::string& path, const std::string& predictions) {
  std::error_code failed;
  if (!fs::exists(path, failed)) return report::write_file(path, predictions);
  SEALANE_LET(const auto before, read_file(path));
  if (before == predictions) return {};
  return usage_error(path +
                     ": other predictions are there, from another program or another manifest; "
                     "move them away to foretell anew");
}

struct Digests {
  std::string manifest;
  std::string predictions;
  std::string measured;
};

std::string signed_off(const estimate::Blind& blind, const Digests& digests) {
  return fmt::format(
      "\nsender       {}\nplatform     {}\nprogram      sealane {} (commit {})\ncompared     {}\n"
      "manifest     sha256 {}\npredictions  sha256 {}\nmeasured     sha256 {}\n",
      visible(blind.sender), visible(blind.platform.name), SEALANE_VERSION, SEALANE_COMMIT,
      utc_now("%F %H:%M UTC"), digests.manifest, digests.predictions, digests.measured);
}

Result<std::vector<estimate::Foretold>> predict(const estimate::Blind& blind, uint32_t draws) {
  const Progress progress;
  return foretell(blind, draws,
                  [&](const std::string& name) { progress.show("foretelling " + name); });
}

}  // namespace

Status validate_blind(const BlindFlags& flags) {
  const fs::path directory(flags.directory);
  const std::string committed = (directory / "predictions.csv").string();
  const std::string verdict = (directory / "verdict.txt").string();
  SEALANE_LET(const auto blind, estimate::read_blind(flags.directory));
  SEALANE_TRY(report::check_outputs(
      {{"predictions", committed}, {"verdict", verdict}, {"--json", flags.json}}, blind.inputs));
  SEALANE_TRY(check_ordinary(committed));
  SEALANE_TRY(check_ordinary(verdict));
  SEALANE_LET(const auto foretold, predict(blind, flags.draws));
  const std::string predictions = estimate::foretold_csv(foretold);
  SEALANE_TRY(commit(committed, predictions));

  // Not before here.
  std::error_code failed;
  if (!fs::exists(blind.measured, failed)) {
    return report::write_file(
        "-", fmt::format("SIMULATED: {} predictions are in {}\n{} is not there: put it there and "
                         "run this again\n",
                         foretold.size(), visible(committed), visible(blind.measured)));
  }
  const auto measured = read_file(blind.measured);
  const auto manifest = read_file(blind.manifest);
  if (!measured) return measured.error();
  if (!manifest) return manifest.error();
  std::istringstream values(*measured);
  SEALANE_LET(const auto validation, compare(blind, foretold, values));
  const Digests digests{sha256(*manifest), sha256(predictions), sha256(*measured)};
  const std::string text =
      validation_text(validation, "MEASURED by others, next to what was SIMULATED before",
                      "measured") +
      signed_off(blind, digests);
  SEALANE_TRY(report::write_file(verdict, text));
  nlohmann::json json = validation_json(validation);
  json["sender"] = blind.sender;
  json["sha256"] = {{"manifest", digests.manifest},
                    {"predictions", digests.predictions},
                    {"measured", digests.measured}};
  return report::write_results(text, flags.json, json);
}

}  // namespace sealane::cli
