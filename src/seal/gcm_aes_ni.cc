// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The loop on vectors of one block: AES-NI and PCLMULQDQ, in AVX's form with three operands.

#define SEALANE_GCM_TARGET "prfchw,avx,aes,pclmul"
#include "seal/gcm_loop.h"
#include "seal/gcm_xmm.h"

namespace sealane {

const GcmWidth kAesNiWidth = kWidthOf<Xmm>;

}  // namespace sealane
