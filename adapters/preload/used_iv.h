// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Making libcrypto take a context's IV for used, as it is after a message's end, though it has seen
// no byte: bytes and ends are refused from then on, the IV can still be read, another one begins a
// message. OpenSSL 3 does so when the length of an IV changes and changes back.
//
// Thread-safe.
#pragma once

#include "libcrypto.h"
#include "seal/aead.h"

namespace sealane::preload {

// Does this libcrypto, with this cipher's provider, do all of that? Tried once, on a context of our
// own. Where it does not, none of its messages is ours.
bool refuses_burnt_ivs(const Libcrypto& libcrypto, const Cipher* cipher);

// The IV has `iv_bytes`. False: it may not be burnt, or its length may be another now, which has
// libcrypto refuse too.
bool burn_iv(const Libcrypto& libcrypto, Context* context, size_t iv_bytes);

// Would libcrypto take additional data? After the first byte of a message it does not, nor with a
// used IV. It takes the IV if it had not.
bool takes_additional(const Libcrypto& libcrypto, Context* context);

// Would it take neither that nor bytes? A message that has begun takes bytes.
bool has_used_iv(const Libcrypto& libcrypto, Context* context);

// Has it this IV, and no other?
bool has_iv(const Libcrypto& libcrypto, Context* context, const Iv& iv);

}  // namespace sealane::preload
