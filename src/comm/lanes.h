// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// All lanes of one rank: to and from every other rank, its own broadcast lane and those of the
// others. Sealed, or plain for measuring what sealing costs. One thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "core/collective/schedule.h"
#include "core/session/key_chain.h"
#include "core/session/session.h"
#include "seal/delivery.h"
#include "seal/record.h"

namespace sealane {

class Lanes {
 public:
  virtual ~Lanes() = default;

  // Writes the record with what `source` delivers for `to` (a rank, or kEveryone on the broadcast
  // lane) into `slot`, which may be memory others see. Returns the record's size.
  virtual Result<size_t> write(uint32_t to, const RecordHeader& header, const Delivery& source,
                               MutableBytes slot) = 0;

  // The payload of `record`, verified, and that the record is the one `expected` describes. The
  // bytes are in `scratch`, which has room for the longest record of the group, or still in the
  // record if nothing protects them anyway. `beside` is carried out by the way.
  virtual Result<Bytes> view(const Step& step, const RecordHeader& expected, Bytes record,
                             MutableBytes scratch, const Delivery& beside) = 0;
};

std::unique_ptr<Lanes> make_sealed_lanes(uint32_t rank,
                                         std::vector<std::optional<SessionKeys>> keys,
                                         Key broadcast, const Engine& engine, KeyLimits limits);
std::unique_ptr<Lanes> make_plain_lanes();

}  // namespace sealane
