// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the driver seals: libcrypto's EVP calls. A context that the driver gave an AES-256-GCM key
// is shadowed by a Message; its bytes are answered by our engine. Every call is also made on the
// real context up to the first byte of a message, so that whatever we do not understand before that
// point simply goes on with libcrypto. Contexts of anybody else are not touched.
//
// Thread-safe, as libcrypto is.
#pragma once

#include "live/serve/crew.h"

namespace sealane::preload {

void start_answering(serve::Crew& crew);  // watches at least; answers if the options say so
void stop_answering();

// What dlsym answers for a function of libcrypto's that we stand in front of; nullptr: not ours.
void* hook_for_libcrypto(void* handle, const char* name);

}  // namespace sealane::preload
