// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A copy into memory that a device reads meanwhile: NCCL's LL protocol has a flag beside every four
// bytes of data, LL128 one behind 120 of them, and a kernel takes what a flag vouches for. So bytes
// appear in ascending order, and the eight or sixteen of one aligned place at once.
//
// Pure, any thread.
#pragma once

#include "base/bytes.h"

namespace sealane::net {

void copy_ascending(Bytes from, uint8_t* to);

}  // namespace sealane::net
