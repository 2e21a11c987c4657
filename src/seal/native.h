// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Our own loop (gcm_width.h) as engines, one per width: "vaes-512", "vaes-256", "aes-ni". On other
// machines than x86-64 there are none.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "seal/engine.h"
#include "seal/gcm_width.h"

namespace sealane {

// Widest first, whether this CPU can run them or not.
std::span<const Engine* const> native_engines();

// The width that is fastest here, of those that answer known questions rightly, or the one that
// SEALANE_AEAD names; nullptr if there is none. Decided once. Asks no other library.
const GcmWidth* native_width();

std::vector<const GcmWidth*> native_widths();  // all this CPU has, widest first
std::unique_ptr<Aead> make_native_aead(const GcmWidth& width, const Key& key);

GcmBlock gcm_counter(const Iv& iv, uint64_t counter);

}  // namespace sealane
