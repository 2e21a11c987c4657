// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What `sealane bench engines` found, for people and for programs: engines that other people wrote,
// under one policy after the other, and what they copied.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "bench/copy_report.h"

namespace sealane::bench {

// Every engine there is a program for (examples/engines), to be run by this interpreter.
std::vector<CopyExample> engines(const std::string& python, const std::string& programs);
// off, stock, parallel, sealane, speculate.
std::vector<CopyPolicy> engine_policies();
// CC off, and what the engine copies and launches is written down.
const CopyPolicy& recording();

// Copies of one run, by size and direction.
class CopySizes {
 public:
  struct Class {
    const char* name;
    uint64_t below;  // bytes
    uint64_t copies = 0;
    uint64_t bytes = 0;
    uint64_t pageable = 0;  // of the copies
  };
  struct Row {
    Class to_device;
    Class to_host;
  };

  CopySizes();
  void add(bool to_device, bool pageable, uint64_t bytes);
  const std::vector<Row>& rows() const { return rows_; }  // from small to large

 private:
  std::vector<Row> rows_;
};

struct EngineReport {
  CopyReport measured;           // no numbers of workers
  std::vector<CopySizes> sizes;  // of each engine, in the order of `measured`
};

std::string engine_tables(const EngineReport& report);

// rows: per engine and policy the medians of total_s, blocked_s (callers in copies), waits_s
//       (callers in synchronising calls), foreseen_rate, tokens_per_s; spread_pct; loss_left where
//       it is known; overrun and in_time; copies and bytes of the timed part; workers if given.
// sizes: per engine, direction and size class copies, bytes and how many were pageable.
nlohmann::json engine_json(const EngineReport& report);

}  // namespace sealane::bench
