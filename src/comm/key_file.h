// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Secrets in files. A key file is one line of 64 hexadecimal digits that only its owner can read.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "comm/options.h"
#include "core/session/identity.h"
#include "seal/key.h"

namespace sealane {

// A new random key, mode 0600. An io error if the file exists: a key is never overwritten.
Status write_key_file(const std::string& path);

// A usage error, with the command that helps, if the file is malformed, readable by others than its
// owner, or owned by another user than this one and root; an io error if it cannot be read.
// `group`, if not empty, names a group (by name or number) whose members may read it, too: that is
// how Kubernetes hands out secrets (fsGroup, mode 0440).
Result<Key> read_key_file(const std::string& path, const std::string& group = {});

// What a key file holds. `name` is what an error calls it; it says nothing of the text.
Result<Key> parse_key(std::string_view text, const std::string& name);

// What the options name: the key itself, else those of the pairs, else certificates if there are
// any, else the command that tells the key, else the key file or the broker's resource
// (comm/key_source.h).
Result<Credentials> read_credentials(const JoinOptions& options);

}  // namespace sealane
