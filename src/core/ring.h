// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A queue of fixed capacity: allocates when constructed and never again. Full is the caller's
// business: push() on a full ring is a broken invariant.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/check.h"

namespace sealane {

template <typename T>
class Ring {
 public:
  explicit Ring(size_t capacity) : items_(capacity) {}

  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == items_.size(); }
  size_t size() const { return size_; }
  size_t capacity() const { return items_.size(); }

  T& operator[](size_t i) { return items_[index(i)]; }
  const T& operator[](size_t i) const { return items_[index(i)]; }
  T& front() { return items_[first_]; }
  const T& front() const { return items_[first_]; }
  T& back() { return (*this)[size_ - 1]; }

  void push(const T& item) {
    SEALANE_CHECK(!full(), "ring overflow");
    items_[index(size_++)] = item;
  }
  void pop() {
    SEALANE_CHECK(!empty(), "pop from an empty ring");
    first_ = index(1);
    --size_;
  }
  void pop_back() {
    SEALANE_CHECK(!empty(), "pop from an empty ring");
    --size_;
  }
  // Both keep the order of the others.
  void insert(size_t i, const T& item) {
    push(item);
    for (size_t at = size_ - 1; at > i; --at) std::swap((*this)[at], (*this)[at - 1]);
  }
  void erase(size_t i) {
    if (i == 0) return pop();
    for (; i + 1 < size_; ++i) (*this)[i] = (*this)[i + 1];
    pop_back();
  }
  void clear() { first_ = size_ = 0; }

 private:
  size_t index(size_t i) const {
    const size_t at = first_ + i;
    return at < items_.size() ? at : at - items_.size();
  }

  std::vector<T> items_;
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace sealane
