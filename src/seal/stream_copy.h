// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A memory copy whose stores go past the caches: for large destinations this core will not read
// again, such as the buffer a slot is published to. It saves reading the destination first, a third
// of the memory traffic. Slower than memcpy if the destination is read soon or is already cached.
//
// Concurrency: none of its own. All stores are ordered before any later store of this thread, so a
//              flag raised afterwards may say that the bytes are there.
// Failure:     none.
#pragma once

#include <span>
#include <string_view>

#include "base/bytes.h"

namespace sealane {

// Any size, any alignment; both have the same size and do not overlap.
void stream_copy(MutableBytes to, Bytes from);

// The same in pieces: ordered with nothing until stream_fence().
void stream_copy_unordered(MutableBytes to, Bytes from);
void stream_fence();

// Takes these bytes out of all caches, for whoever measures what comes from memory. Nothing happens
// where the CPU offers no such instruction.
void evict(Bytes bytes);

// Every way this CPU can do it, unordered, fastest first; the others take the first. For tests.
struct StreamCopyPath {
  std::string_view name;
  void (*copy)(MutableBytes to, Bytes from);
};
std::span<const StreamCopyPath> stream_copy_paths();

}  // namespace sealane
