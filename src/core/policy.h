// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A policy is a set of switches, one for each part of the cost that can be taken away: engine,
// asynchrony, parallelism, speculation. Those that have a name are the ones people compare; the
// steps between them are made by turning single switches. `sealane` is what the runtime does
// unless it is told otherwise; `speculate` is the same with sealing ahead forced on, for studies.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/bytes.h"

namespace sealane {

enum class Foresight : uint8_t {
  none,
  paper,       // repetition, FIFO and LIFO as PipeLLM describes them
  tournament,  // ours: follows whoever was lately right, silent when nobody is
};

struct Policy {
  std::string_view name;
  bool confidential = true;  // CC is on; false only for `off`
  bool fast_engine = false;  // our AEAD instead of the driver's
  bool async = false;        // copies are carried: the caller does not wait for its stream
  bool parallel = false;     // all workers seal the messages of one copy
  Foresight foresight = Foresight::none;
  bool where_it_pays = false;  // only if the machine's costs say so (core/pipeline/outlook.h)
  bool coalesce = false;       // small copies that wait together travel together
  bool by_cost = false;        // hold, pad or relinquish by cost; false: by the paper's fixed rules
  uint32_t fixed_leeway = 0;  // positions left free before each planned transfer; by_cost learns it
  uint64_t bulk_bytes_min = 128_KiB;  // what counts as a swap

  bool runs_live() const {  // a program may ask for it; the paper's rules are the simulator's alone
    return confidential && foresight != Foresight::paper;
  }
  bool carries() const { return async || parallel; }  // false: the driver's own path
  bool speculates() const { return foresight != Foresight::none; }
  // Sealing ahead is not asked what it costs, only how it costs least.
  bool forced() const { return speculates() && by_cost && !where_it_pays; }
};

// off, stock, parallel, pipellm, sealane, speculate, in this order.
std::span<const Policy> policies();
const Policy* find_policy(std::string_view name);  // nullptr if there is none of that name

}  // namespace sealane
