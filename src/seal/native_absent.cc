// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Not x86-64: there is no loop of our own, so no object of this class.

#include "base/check.h"
#include "seal/native.h"
#include "seal/split_gcm.h"

namespace sealane {

SplitGcm::SplitGcm(const GcmWidth& width, std::span<const uint8_t, Key::kBytes>) : width_(width) {
  SEALANE_CHECK(false, "there is no width of our own loop on this CPU");
}
std::unique_ptr<SplitGcm> SplitGcm::make(std::span<const uint8_t, Key::kBytes>) { return nullptr; }

GcmHash SplitGcm::seal_part(const Iv&, uint64_t, const uint8_t*, uint8_t*, uint64_t) const {
  return {};
}
GcmHash SplitGcm::open_part(const Iv&, uint64_t, const uint8_t*, uint8_t*, uint64_t) const {
  return {};
}
void SplitGcm::keystream(const Iv&, uint64_t, GcmBlock&) const {}
GcmHash SplitGcm::join(GcmHash, GcmHash, uint64_t) const { return {}; }
GcmHash SplitGcm::join(GcmHash, const GcmBlock&) const { return {}; }
Tag SplitGcm::tag(const Iv&, GcmHash, uint64_t, uint64_t) const { return {}; }

std::span<const Engine* const> native_engines() { return {}; }
const GcmWidth* native_width() { return nullptr; }
std::vector<const GcmWidth*> native_widths() { return {}; }

}  // namespace sealane
