// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// `sealane bench COLLECTIVE --tamper`: what happens when one bit of one record is changed on its
// way.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "comm/options.h"

namespace sealane::bench {

// Runs the collective `op` over `bytes` among local ranks, with a bit flipped in rank 0's first
// record, and shows what each rank reports (`json` as --json). A rank that does not depend on that
// record may have its result, a right one, before the others refuse: then its next operation fails.
// An error unless somebody refused, nobody has a wrong result and nobody goes on.
Status show_tampering(const JoinOptions& options, const std::string& op, uint64_t bytes,
                      const std::string& json);

}  // namespace sealane::bench
