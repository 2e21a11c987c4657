// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// `sealane bench allreduce --tamper`: what happens when one bit of one record is changed on its
// way.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "live/comm/options.h"

namespace sealane::cli {

// Runs one all-reduce of `bytes` among local ranks, with a bit flipped in rank 0's first record,
// and prints what each rank reports. An error unless every rank noticed.
Status show_tampering(const JoinOptions& options, uint64_t bytes);

}  // namespace sealane::cli
