// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the driver seals: libcrypto's EVP calls. A context in which code of the driver set a cipher
// is followed (evp_context.h), and its messages are answered by our engine if it is AES-256-GCM and
// everything about them is understood. All other calls go where they would go without us. Nobody
// but the driver gets these functions (binding.h).
//
// Thread-safe, as libcrypto is. Nothing is thrown into the caller.
#pragma once

#include <span>

#include "libcrypto.h"
#include "os/worker_pool.h"

namespace sealane::preload {

void start_answering(WorkerPool& pool);  // watches at least; answers if the options say so
void stop_answering();

// Our functions, in the order of the table's members (libcrypto.h). Each libcrypto has ones of its
// own: who is called knows which it stands in front of, whoever calls and from where.
struct EvpHook {
  const char* name;
  const char* version;
  void* functions[kMaxLibcryptos];
};
std::span<const EvpHook> evp_hooks();

}  // namespace sealane::preload
