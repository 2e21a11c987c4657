// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Builds without ipsec-mb: libcrypto serves, message by message.

#include "seal/split_gcm.h"

namespace sealane {

std::unique_ptr<SplitGcm> SplitGcm::make(std::span<const uint8_t, Key::kBytes>) { return nullptr; }

}  // namespace sealane
