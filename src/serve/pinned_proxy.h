// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory pinned by the driver that stands in for memory that is not. In CC mode a copy from or to
// any other memory pays a higher toll and passes through one more buffer of the driver's; but only
// memory that is *not* the driver's can be guarded. A copy thread therefore names its proxy to the
// driver, and the real place is put in where the driver seals or opens: in its EVP calls, by
// address (real_source, real_destination).
//
// Nobody promises that a driver seals from where it was told to copy. So nothing is believed: a
// copy counts only if EVP calls have named every byte of the proxy once, in order. If not, a
// copy to the device is made again from the real source, before its gate opens, so that nobody can
// have looked; of a copy to the host the rest is taken from the proxy. After that the proxy
// is used no more. Small copies are simply moved through it, which needs no such trust.
//
// Threads: copy() on the copy thread; the EVP calls of that copy on any thread of the driver's.
// Must not be destroyed while anybody may be in an EVP call.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/bytes.h"
#include "core/copy.h"
#include "serve/gpu_driver.h"

namespace sealane::serve {

class PinnedProxy {
 public:
  static constexpr uint64_t kBytesMax = 16_MiB;    // larger copies go in pieces
  static constexpr uint64_t kMovedBytes = 64_KiB;  // up to here bytes are moved through it

  PinnedProxy(GpuDriver& driver, Direction direction) : driver_(driver), direction_(direction) {}
  PinnedProxy(const PinnedProxy&) = delete;
  PinnedProxy& operator=(const PinnedProxy&) = delete;

  // GpuDriver::copy() by way of the proxy, or without it where it is of no use.
  Code copy(const CopyContext& lane, uint64_t device, uint8_t* host, uint64_t bytes);
  void drop();  // gives the memory back

 private:
  friend class PinnedProxies;
  bool make_room(const CopyContext& lane, uint64_t bytes);
  Code move(const CopyContext& lane, uint64_t device, uint8_t* host, uint64_t bytes);
  Code stand_in(const CopyContext& lane, uint64_t device, uint8_t* host, uint64_t bytes);
  uint8_t* find(Direction direction, const uint8_t* place, uint64_t bytes);

  GpuDriver& driver_;
  const Direction direction_;
  std::atomic<uint8_t*> memory_{nullptr};
  uint64_t room_ = 0;
  bool trusted_ = true;

  // The copy in flight. Other copy threads' calls look at memory_ and bytes_, only its own at the
  // rest.
  std::atomic<uint64_t> bytes_{0};  // 0: none
  uint8_t* real_ = nullptr;
  std::atomic<uint64_t> named_{0};    // so many bytes, from the beginning
  std::atomic<bool> strange_{false};  // something else was named
};

// Those with a copy in flight. Read in every EVP call, also of forked children: no locks.
class PinnedProxies {
 public:
  bool enter(PinnedProxy* one);
  void leave(PinnedProxy* one);
  uint8_t* find(Direction direction, const uint8_t* named, uint64_t bytes) const;

 private:
  static constexpr size_t kMax = 128;
  std::atomic<PinnedProxy*> busy_[kMax] = {};
  std::atomic<unsigned> count_{0};
};

// Where the bytes are that a driver's EVP call names: the same place, unless it is in a proxy.
const uint8_t* real_source(const uint8_t* in, uint64_t bytes);
uint8_t* real_destination(uint8_t* out, uint64_t bytes);

}  // namespace sealane::serve
