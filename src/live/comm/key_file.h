// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Secrets in files. A key file is one line of 64 hexadecimal digits that only its owner can read.
#pragma once

#include <string>

#include "base/result.h"
#include "core/session/identity.h"
#include "live/comm/options.h"
#include "seal/key.h"

namespace sealane {

// A new random key, mode 0600. An io error if the file exists: a key is never overwritten.
Status write_key_file(const std::string& path);

// A usage error, with the command that helps, if the file is malformed, readable by others than its
// owner, or owned by another user than this one and root; an io error if it cannot be read.
Result<Key> read_key_file(const std::string& path);

// What the options name: the key itself, else certificates if there are any, else the key file.
Result<Credentials> read_credentials(const JoinOptions& options);

}  // namespace sealane
