// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/crossing.h"

#include <cstring>
#include <utility>

#include "os/pace.h"
#include "serve/costs.h"

namespace sealane::serve {
namespace {

// Copies between the parts' own memory and memory where they lie end to end.
template <typename Copy>
void each_part(std::span<const CrossingPart> parts, void* gathered, const Copy& copy) {
  const uint64_t began = pace().begin();
  uint64_t offset = 0;
  for (const CrossingPart& part : parts) {
    copy(part, static_cast<uint8_t*>(gathered) + offset);
    offset += part.bytes;
  }
  pace().end(Pace::host_copy, offset, began);
}

}  // namespace

bool Crossing::ready(const CopyContext& lane, const Gathering& group) {
  if (refused_) return false;
  if (group.host_pieces() > 1 && host_memory_ == nullptr) {
    refused_ = driver_.allocate_host(lane, kBytesMax, host_memory_) != kSuccess;
  }
  if (!refused_ && group.device_pieces() > 1 && device_memory_ == 0) {
    refused_ = driver_.allocate(lane, kBytesMax, device_memory_) != kSuccess;
  }
  return !refused_;
}

Code Crossing::carry(const CopyContext& lane, const Gathering& group,
                     std::span<const CrossingPart> parts) {
  if (group.device_pieces() > 1) plan_moves(parts);
  const Code code = direction_ == Direction::to_device ? to_device(lane, group, parts)
                                                       : to_host(lane, group, parts);
  if (group.host_pieces() > 1) {
    wipe({static_cast<uint8_t*>(host_memory_), static_cast<size_t>(group.bytes())});
  }
  return code;
}

Code Crossing::to_device(const CopyContext& lane, const Gathering& group,
                         std::span<const CrossingPart> parts) {
  void* source = parts.front().host;
  if (group.host_pieces() > 1) {
    source = host_memory_;
    each_part(parts, source, [](const CrossingPart& part, uint8_t* there) {
      std::memcpy(there, part.host, part.bytes);
    });
  }
  const bool scatter = group.device_pieces() > 1;
  const uint64_t target = scatter ? device_memory_ : parts.front().device_address;
  const Code code = driver_.copy(lane, direction_, target, source, group.bytes());
  return code == kSuccess && scatter ? driver_.move_within(lane, moves_) : code;
}

Code Crossing::to_host(const CopyContext& lane, const Gathering& group,
                       std::span<const CrossingPart> parts) {
  uint64_t source = parts.front().device_address;
  if (group.device_pieces() > 1) {
    source = device_memory_;
    for (DeviceMove& move : moves_) std::swap(move.to, move.from);
    const Code code = driver_.move_within(lane, moves_);
    if (code != kSuccess) return code;
  }
  const bool split = group.host_pieces() > 1;
  void* const target = split ? host_memory_ : parts.front().host;
  const Code code = driver_.copy(lane, direction_, source, target, group.bytes());
  if (code == kSuccess && split) {
    each_part(parts, target, [](const CrossingPart& part, const uint8_t* there) {
      std::memcpy(part.host, there, part.bytes);
    });
  }
  return code;
}

// Out of the memory in between, to where the parts belong; what continues a part goes with it.
void Crossing::plan_moves(std::span<const CrossingPart> parts) {
  moves_.clear();
  uint64_t offset = 0;
  for (const CrossingPart& part : parts) {
    const bool continues =
        !moves_.empty() && moves_.back().to + moves_.back().bytes == part.device_address;
    if (continues) {
      moves_.back().bytes += part.bytes;
    } else {
      moves_.push_back({part.device_address, device_memory_ + offset, part.bytes});
    }
    offset += part.bytes;
  }
}

void Crossing::forget() {
  host_memory_ = nullptr;
  device_memory_ = 0;
}

CrossingCosts crossing_costs() {
  CrossingCosts costs;
  const auto slow = [](Duration& duration) {
    duration = Duration(static_cast<int64_t>(static_cast<double>(duration.count()) * dilation()));
  };
  slow(costs.toll);
  slow(costs.scatter);
  costs.copy_ns_per_byte *= dilation();
  return costs;
}

}  // namespace sealane::serve
