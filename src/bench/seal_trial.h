// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The measurement behind `sealane bench seal`: for one record size and one place, every engine's
// seal and open beside memcpy and the non-temporal copy, interleaved (see interleave.h).
//
// All variants read the same source and write the same destination, record by record along one
// shared walk, so none finds what another has just brought into a cache. The source is made of
// genuine sealed records: open verifies them; to seal and to the copies they are bytes like any.
//
//   l2    source and destination together fill at most half of the L2 cache
//   dram  source and destination are each several times the last-level cache, so that every record
//         comes from memory and goes to memory
//
// Before each timed slice the same variant runs untimed, so that caches and write buffers are as
// it leaves them itself.
//
// Concurrency: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "bench/interleave.h"
#include "bench/memory.h"
#include "seal/engine.h"

namespace sealane::bench {

enum class Where { l2, dram };
const char* to_string(Where where);

// Size of source and of destination each; 0 if not even one record fits.
uint64_t walk_bytes(Where where, uint64_t record_bytes, const CacheSizes& caches);

struct OpResult {
  Summary rate_gb_s;
  Summary vs_memcpy;                  // paired ratios, as is vs_openssl
  std::optional<Summary> vs_openssl;  // if OpenSSL was measured too
};

struct EngineResult {
  std::string engine;
  OpResult seal;
  OpResult open;
};

struct TrialResult {
  Where where;
  uint64_t record_bytes;
  size_t rounds;
  Summary memcpy_gb_s;
  OpResult stream_copy;
  std::vector<EngineResult> engines;
};

class SealTrial {
 public:
  // `engines` can run here. The one named "openssl" is measured as plain EVP, the way any driver
  // calls it, without the private copy our own engine adds. A usage error if memory is short.
  static Result<SealTrial> make(const std::vector<const Engine*>& engines, uint64_t walk_bytes_max,
                                const Clock& clock);

  // `walk` is what walk_bytes() said for the first two.
  TrialResult measure(Where where, uint64_t record_bytes, uint64_t walk, Duration budget);

 private:
  struct Contestant {
    std::string name;
    std::unique_ptr<const Aead> aead;
  };

  SealTrial(Buffer source, Buffer destination, const Clock& clock);

  Buffer source_;
  Buffer destination_;
  const Clock& clock_;
  uint64_t sealed_ = 0;  // the next IV: one key, never the same twice
  std::vector<Contestant> contestants_;
};

}  // namespace sealane::bench
