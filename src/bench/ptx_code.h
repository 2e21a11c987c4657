// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The device code `sealane bench ptx` runs.
#pragma once

namespace sealane::bench {

extern const char* const kBenchPtx;

}  // namespace sealane::bench
