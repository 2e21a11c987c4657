// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What is switched on, read once from SEALANE_* (docs/runtime.md lists them; `sealane run` sets
// them from flags). A value that makes no sense is one line on stderr and counts as absent: a
// preload never keeps a program from running. Immutable after the first options().
#pragma once

#include <cstdint>
#include <string_view>

#include "core/policy.h"

namespace sealane::serve {

enum class Speculate : uint8_t { off, by_cost, on };

struct Options {
  bool disabled = false;     // SEALANE_DISABLE=1: the preload does nothing at all
  bool observe = false;      // SEALANE_OBSERVE=1: watches, changes nothing
  bool engine = true;        // SEALANE_ENABLE: our AEAD behind the driver's calls
  bool async = true;         //   copies return as they do without CC
  bool parallel = true;      //   a message's parts on all workers
  bool coalesce = true;      //   small copies that wait together travel together, where it pays
  bool registration = true;  //   "register": host registration succeeds
  bool pinned = false;       //   pinned memory is ours, and cannot be mapped into the device
  Speculate speculate = Speculate::by_cost;  // bulk copies are sealed before they are asked for
  bool early = true;        // SEALANE_EARLY=0: no copy reads its source before its turn
  bool page_guards = true;  // SEALANE_PAGE_GUARDS=0: digests guard what is sealed ahead
  uint64_t slot_bytes_max = uint64_t{256} << 20;  // SEALANE_SLOT_MB: what is sealed ahead
  uint64_t verify = 0;           // SEALANE_VERIFY: compare so many answers with libcrypto's
  uint64_t metrics_seconds = 5;  // SEALANE_METRICS_SECONDS: between two files of --metrics
  unsigned workers = 0;          // SEALANE_WORKERS; 0: from the cores
  uint64_t staging_bytes_max = uint64_t{256}
                               << 20;  // SEALANE_STAGING_MB: snapshots of pageable sources

  const Policy* speculation() const;  // by whose rules; nullptr: nothing is sealed ahead
};

using Lookup = const char* (*)(const char* name);  // getenv's signature
Options read_options(Lookup lookup);
const Options& options();
// CC mode is off, but somebody watches: nothing is changed. Before the first use of a part.
void only_watch();

}  // namespace sealane::serve
