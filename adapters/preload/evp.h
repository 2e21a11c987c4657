// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the driver seals: libcrypto's EVP calls. A context in which code of the driver set a cipher
// is followed (evp_context.h), and its messages are answered by our engine if it is AES-256-GCM and
// everything about them is understood. All other calls go where they would go without us.
//
// Thread-safe, as libcrypto is. Nothing is thrown into the caller.
#pragma once

#include "os/worker_pool.h"

namespace sealane::preload {

void start_answering(WorkerPool& pool);  // watches at least; answers if the options say so
void stop_answering();

// What dlsym answers this caller, who would get `real`; nullptr: not ours.
void* hook_for_libcrypto(const void* caller, const char* name, void* real);

}  // namespace sealane::preload
