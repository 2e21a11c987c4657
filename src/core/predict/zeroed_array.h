// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// An array of fixed length whose bytes are all zero at first. Allocates when constructed and never
// again; but memory that nobody has written to yet costs nothing: the system gives pages of zeroes
// when they are touched. A vector would write every element, which for tables that are made for the
// largest program takes each program's start milliseconds and megabytes.
//
// For plain elements to whom zero bytes are a beginning, whatever their members' initialisers say.
// Fails by std::bad_alloc. Not synchronised.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace sealane {

template <typename T>
class ZeroedArray {
 public:
  explicit ZeroedArray(size_t size)
      : items_(static_cast<T*>(std::calloc(size, sizeof(T)))), size_(size) {
    if (items_ == nullptr && size > 0) throw std::bad_alloc();
  }

  size_t size() const { return size_; }
  T& operator[](size_t i) { return items_.get()[i]; }
  const T& operator[](size_t i) const { return items_.get()[i]; }
  T* begin() { return items_.get(); }
  T* end() { return items_.get() + size_; }

 private:
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  static_assert(alignof(T) <= alignof(std::max_align_t));

  struct Free {
    void operator()(T* items) const { std::free(items); }
  };

  std::unique_ptr<T, Free> items_;
  size_t size_;
};

}  // namespace sealane
