// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/early_crossing.h"

#include "base/bytes.h"
#include "core/copy/copy_table.h"

namespace sealane::serve {

bool EarlyCrossing::ready(const CopyContext& lane) {
  if (refused_) return false;
  if (direction_ == Direction::to_device && device_memory_ == 0) {
    refused_ = driver_.allocate(lane, kEarlyBytesMax, device_memory_) != kSuccess;
  } else if (direction_ == Direction::to_host && host_memory_ == nullptr) {
    refused_ = driver_.allocate_host(lane, kEarlyBytesMax, host_memory_) != kSuccess;
  }
  return !refused_;
}

Code EarlyCrossing::land(const CopyContext& lane, uint64_t device, uint8_t* host, uint64_t bytes) {
  if (direction_ == Direction::to_host) {
    memory_.move_out(this->host(), host, bytes);
    return kSuccess;
  }
  const DeviceMove move{device, device_memory_, bytes};
  return driver_.move_within(lane, {&move, 1});
}

void EarlyCrossing::discard(uint64_t bytes) {
  if (host_memory_ != nullptr) wipe({host(), static_cast<size_t>(bytes)});
}

void EarlyCrossing::forget() {
  host_memory_ = nullptr;
  device_memory_ = 0;
  refused_ = false;
}

}  // namespace sealane::serve
