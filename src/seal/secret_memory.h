// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The one place where keys and their schedules live: pages that are locked (never swapped), left
// out of core dumps, and empty in every child, however it was made (fork(), a bare clone): a child
// that kept a key and a position would seal other bytes under the same IV.
//
// A Secret<T> is a reference to one object there. Copies refer to the same object; when the last
// one goes, the memory is wiped and given back. What is not in a child says so: alive() is false
// there, and using it aborts.
//
// Where pages cannot be locked (ulimit -l) one line of the log says so and everything else holds.
// OpenSSL keeps what it schedules itself in its own memory, and cleanses that when it is freed.
//
// Concurrency: any thread. References to one object may be copied and dropped by several threads;
//              what is in it is the owner's to synchronise, as with a std::shared_ptr.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"

namespace sealane {

class SecretMemory {
 public:
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kBytesMax = 16 << 10;  // of one object

  // Zeroed memory for `bytes`, wiped and given back with the last reference.
  static std::shared_ptr<uint8_t> take(size_t bytes);

  // False in a child of the process that took it. Pass what take() was given.
  static bool alive(const uint8_t* memory, size_t bytes) {
    return *reinterpret_cast<const volatile uint64_t*>(memory + mark_at(bytes)) != 0;
  }

  struct State {
    uint64_t mapped_bytes = 0;
    uint64_t taken_bytes = 0;
    bool locked = true;  // all of it
  };
  static State state();

 private:
  // Behind the object, in the same wiped pages: not zero for as long as the object is there.
  static constexpr size_t mark_at(size_t bytes) { return (bytes + 7) / 8 * 8; }
};

template <typename T>
class Secret {
  static_assert(std::is_trivially_destructible_v<T>, "a secret ends by being wiped");
  static_assert(alignof(T) <= SecretMemory::kAlignment);
  static_assert(sizeof(T) <= SecretMemory::kBytesMax);  // NOLINT(misc-redundant-expression)

 public:
  // All zero, whatever T's own initialisers say.
  Secret() : memory_(SecretMemory::take(sizeof(T))) {}

  // False after it was moved from, and in a child of the process that made it.
  bool alive() const { return memory_ != nullptr && SecretMemory::alive(memory_.get(), sizeof(T)); }

  T& operator*() { return *checked(); }
  T* operator->() { return checked(); }
  const T& operator*() const { return *checked(); }
  const T* operator->() const { return checked(); }

 private:
  T* checked() const {
    SEALANE_CHECK(alive(), "a secret used where it is not: moved from, or made before a fork");
    return reinterpret_cast<T*>(memory_.get());
  }

  std::shared_ptr<uint8_t> memory_;
};

}  // namespace sealane
