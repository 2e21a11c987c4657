// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/pinned_proxy.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/log.h"
#include "serve/process.h"

namespace sealane::serve {

bool PinnedProxies::enter(PinnedProxy* one) {
  for (auto& entry : busy_) {
    PinnedProxy* none = nullptr;
    if (!entry.compare_exchange_strong(none, one)) continue;
    count_.fetch_add(1);
    return true;
  }
  return false;
}

void PinnedProxies::leave(PinnedProxy* one) {
  for (auto& entry : busy_) {
    PinnedProxy* mine = one;
    if (!entry.compare_exchange_strong(mine, nullptr)) continue;
    count_.fetch_sub(1);
    return;
  }
}

uint8_t* PinnedProxies::find(Direction direction, const uint8_t* named, uint64_t bytes) const {
  if (count_.load(std::memory_order_relaxed) == 0) return nullptr;
  for (const auto& entry : busy_) {
    PinnedProxy* one = entry.load(std::memory_order_acquire);
    if (one == nullptr) continue;
    if (uint8_t* real = one->find(direction, named, bytes)) return real;
  }
  return nullptr;
}

const uint8_t* real_source(const uint8_t* in, uint64_t bytes) {
  const uint8_t* real = process().proxies.find(Direction::to_device, in, bytes);
  return real != nullptr ? real : in;
}

uint8_t* real_destination(uint8_t* out, uint64_t bytes) {
  uint8_t* real = process().proxies.find(Direction::to_host, out, bytes);
  return real != nullptr ? real : out;
}

Code PinnedProxy::copy(const CopyContext& lane, uint64_t device, uint8_t* host, uint64_t bytes) {
  const bool small = bytes <= kMovedBytes;
  if ((!small && !trusted_) || !make_room(lane, std::min(bytes, kBytesMax))) {
    return driver_.copy(lane, direction_, device, host, bytes);
  }
  if (small) return move(lane, device, host, bytes);
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t piece = trusted_ ? std::min(kBytesMax, bytes - done) : bytes - done;
    const Code code = trusted_ ? stand_in(lane, device + done, host + done, piece)
                               : driver_.copy(lane, direction_, device + done, host + done, piece);
    if (code != kSuccess) return code;
    done += piece;
  }
  return kSuccess;
}

bool PinnedProxy::make_room(const CopyContext& lane, uint64_t bytes) {
  if (bytes <= room_) return true;
  const uint64_t wanted = std::max(std::bit_ceil(bytes), kMovedBytes);
  void* made = nullptr;
  if (driver_.allocate_host(lane, wanted, made) != kSuccess) return false;
  drop();
  memory_.store(static_cast<uint8_t*>(made));
  room_ = wanted;
  return true;
}

void PinnedProxy::drop() {
  if (void* memory = memory_.exchange(nullptr)) driver_.free_host(memory);
  room_ = 0;
}

Code PinnedProxy::move(const CopyContext& lane, uint64_t device, uint8_t* host, uint64_t bytes) {
  uint8_t* const memory = memory_.load();
  if (direction_ == Direction::to_device) std::memcpy(memory, host, bytes);
  const Code code = driver_.copy(lane, direction_, device, memory, bytes);
  if (direction_ == Direction::to_host && code == kSuccess) std::memcpy(host, memory, bytes);
  wipe({memory, bytes});
  return code;
}

Code PinnedProxy::stand_in(const CopyContext& lane, uint64_t device, uint8_t* host,
                           uint64_t bytes) {
  uint8_t* const memory = memory_.load();
  real_ = host;
  named_.store(0);
  strange_.store(false);
  bytes_.store(bytes);
  if (!process().proxies.enter(this)) return driver_.copy(lane, direction_, device, host, bytes);
  const Code code = driver_.copy(lane, direction_, device, memory, bytes);
  process().proxies.leave(this);
  bytes_.store(0);
  const uint64_t named = named_.load();
  if (code != kSuccess && direction_ == Direction::to_host) wipe({memory, bytes});
  if (code != kSuccess || (named == bytes && !strange_.load())) return code;

  SEALANE_LOG(info, "the driver does not seal from where it is told to copy: no more stand-ins");
  trusted_ = false;
  if (direction_ == Direction::to_device) {
    return driver_.copy(lane, direction_, device, host, bytes);
  }
  std::memcpy(host + named, memory + named, bytes - named);
  wipe({memory + named, bytes - named});
  return code;
}

uint8_t* PinnedProxy::find(Direction direction, const uint8_t* place, uint64_t bytes) {
  const uint64_t all = bytes_.load(std::memory_order_acquire);
  const uint8_t* const memory = memory_.load(std::memory_order_relaxed);
  const Range named{reinterpret_cast<uint64_t>(place), bytes};
  const Range whole{reinterpret_cast<uint64_t>(memory), all};
  if (direction != direction_ || !whole.overlaps(named)) return nullptr;
  // Only in order: then what was named is all that lies before, once.
  uint64_t offset = named.address - whole.address;
  if (whole.contains(named) && !strange_.load() &&
      named_.compare_exchange_strong(offset, offset + bytes)) {
    return real_ + offset;
  }
  strange_.store(true);
  return nullptr;
}

}  // namespace sealane::serve
