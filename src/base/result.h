// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Operating errors are values. A Result<T> holds a T or an Error; an Error has a kind, which says
// who can do something about it, and one line of text, which says what to do. Broken invariants
// are another world: see check.h.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace sealane {

enum class ErrorKind {
  usage,     // the caller asked for something that cannot be; changing the request helps
  io,        // the operating system or a device refused
  peer,      // another rank or the other side of a lane is gone or misbehaves
  crypto,    // a tag, key, position or limit; the lane is dead and stays dead
  internal,  // our own fault
};

std::string_view to_string(ErrorKind kind);

struct [[nodiscard]] Error {
  ErrorKind kind;
  std::string message;  // one line, no trailing newline
};

inline Error usage_error(std::string message) { return {ErrorKind::usage, std::move(message)}; }
inline Error peer_error(std::string message) { return {ErrorKind::peer, std::move(message)}; }
inline Error crypto_error(std::string message) { return {ErrorKind::crypto, std::move(message)}; }
inline Error internal_error(std::string message) {
  return {ErrorKind::internal, std::move(message)};
}
inline Error io_error(std::string message) { return {ErrorKind::io, std::move(message)}; }

// An io error with the text of `error_number` (an errno value) appended.
Error io_error(std::string what, int error_number);

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    SEALANE_CHECK(!ok(), "error() of a Result that holds a value");
    return *std::get_if<1>(&state_);
  }

 private:
  T& value() {
    SEALANE_CHECK(ok(), "value of a Result that holds an error");
    return *std::get_if<0>(&state_);
  }
  const T& value() const {
    SEALANE_CHECK(ok(), "value of a Result that holds an error");
    return *std::get_if<0>(&state_);
  }

  std::variant<T, Error> state_;
};

// A Result without a value: success is a default-constructed Status.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), ok_(false) {}

  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  const Error& error() const {
    SEALANE_CHECK(!ok_, "error() of a Status that is ok");
    return error_;
  }

 private:
  Error error_{ErrorKind::internal, {}};
  bool ok_ = true;
};

using Status = Result<void>;

}  // namespace sealane
