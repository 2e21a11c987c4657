// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The machine's door to an Ahead (core/copy/speculation.h): its copies by the numbers they have
// there. Called by the machine, with its lock held; nothing here waits for a worker.
#pragma once

#include <optional>
#include <unordered_map>
#include <utility>

#include "core/copy/speculation.h"
#include "serve/ahead.h"

namespace sealane::serve {

class AheadDoor final : public Speculation {
 public:
  explicit AheadDoor(Ahead& ahead) : ahead_(ahead) {}

  bool handle_asked(CopyId copy, const CopyCall& call, HostSide side, Instant now) override;
  void handle_turn(CopyId copy, Instant now) override;
  bool stopped() const override { return ahead_.stopped(); }
  std::optional<WireTurn> next_turn(Instant now) override;
  void handle_over(CopyId copy, bool succeeded, Instant now) override;
  void handle_freed(const Range& host, Instant) override { ahead_.forget(host); }
  bool reads(const Range& host) const override { return ahead_.reads(host); }

  Ahead& ahead() { return ahead_; }
  // What next_turn() said and nobody has taken to the driver yet.
  std::optional<Ahead::Turn> take_turn() { return std::exchange(turn_, std::nullopt); }

 private:
  struct Flight {
    FlightId number = kNone;
    bool inward = true;
  };

  Ahead& ahead_;
  std::unordered_map<CopyId, Flight> flights_;
  std::unordered_map<FlightId, CopyId> inward_;
  std::optional<Ahead::Turn> turn_;
};

}  // namespace sealane::serve
