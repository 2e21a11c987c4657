// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/channel/keys.h"

#include <cstring>

namespace sealane::emu {
namespace {

// Far below GCM's limits, whatever the size of the messages.
constexpr uint32_t kMessagesMax = 1u << 31;

}  // namespace

KeySchedule::KeySchedule(const ChannelSeed& seed, uint64_t rotation_bytes)
    : seed_(seed), rotation_bytes_(rotation_bytes) {
  derive();
}

void KeySchedule::derive() {
  // The keystream of the epoch's number under the shared secret.
  uint8_t zeros[44] = {};
  uint8_t stream[44];
  GcmIv number{};
  store_le(number.data(), epoch_);
  GcmTag unused;
  make_gcm(seed_.secret)->seal(number, {}, zeros, stream, unused);
  std::memcpy(key_.data(), stream, key_.size());
  std::memcpy(mask_.data(), stream + key_.size(), mask_.size());
}

bool KeySchedule::advance(uint64_t bytes, bool wanted) {
  const bool due = wanted || bytes_ >= rotation_bytes_ || counter_ >= kMessagesMax;
  if (due) {
    ++epoch_;
    bytes_ = 0;
    counter_ = 0;
    derive();
  }
  ++counter_;
  bytes_ += bytes;
  return due;
}

GcmIv KeySchedule::iv() const {
  GcmIv iv;
  store_le(iv.data(), counter_);
  store_le(iv.data() + 4, seed_.channel);
  for (size_t i = 0; i < iv.size(); ++i) iv[i] ^= mask_[i];
  return iv;
}

std::array<uint8_t, 16> additional_data(uint32_t counter, uint64_t bytes) {
  std::array<uint8_t, 16> data;
  store_le<uint64_t>(data.data(), counter);
  store_le<uint64_t>(data.data() + 8, bytes);
  return data;
}

}  // namespace sealane::emu
