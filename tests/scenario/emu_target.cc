// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "scenario/emu_target.h"

#include <utility>

namespace sealane::test {
namespace {

class EmuObservation final : public Observation {
 public:
  explicit EmuObservation(Played played) : played_(std::move(played)) {}

  std::string violation() const override { return played_.violation; }
  std::string error() const override { return played_.error; }
  std::optional<uint64_t> counter(std::string_view) const override { return std::nullopt; }
  std::optional<Duration> elapsed() const override { return std::nullopt; }

 private:
  Played played_;
};

}  // namespace

Result<std::unique_ptr<Observation>> EmuTarget::run(const Scenario& scenario) {
  auto played = play_on_emulator(scenario, options_);
  if (!played) return played.error();
  return std::unique_ptr<Observation>(std::make_unique<EmuObservation>(*std::move(played)));
}

}  // namespace sealane::test
