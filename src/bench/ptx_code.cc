// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/ptx_code.h"

#include "report/asset.h"

namespace sealane::bench {

// NOLINTBEGIN(hicpp-no-assembler)
SEALANE_ASSET(ptx_code, SEALANE_PTX_FILE)
// NOLINTEND(hicpp-no-assembler)

}  // namespace sealane::bench
