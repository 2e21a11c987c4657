// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The OpenSSL 3 engine. OpenSSL's GCM reads the ciphertext twice (once for the tag, once for the
// data), so an attacker who writes in between can get wrong plaintext past a valid tag, or a valid
// tag for bytes we never sealed. The engine therefore moves ciphertext through a private buffer,
// piece by piece while it is in cache.
#pragma once

#include <memory>

#include "seal/aead.h"
#include "seal/engine.h"

namespace sealane {

enum class PrivateCopy {
  yes,
  no,  // for the test that shows why, and as the baseline a plain EVP caller sets
};

std::unique_ptr<Aead> make_openssl_aead(const Key& key, PrivateCopy private_copy);

const Engine& openssl_engine();

}  // namespace sealane
