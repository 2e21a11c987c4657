// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Contexts of the program that have failed, and with what. The first error stands, as in CUDA:
// every later call on the context returns it. Pure.
#pragma once

#include <unordered_map>

#include "core/copy/copy_call.h"

namespace sealane {

class Failures {
 public:
  void fail(ContextKey context, ErrorCode code) { codes_.emplace(context, code); }
  void forget(ContextKey context) { codes_.erase(context); }
  bool any() const { return !codes_.empty(); }
  bool failed(ContextKey context) const { return codes_.contains(context); }
  ErrorCode of(ContextKey context) const {
    const auto found = codes_.find(context);
    return found == codes_.end() ? 0 : found->second;
  }

 private:
  std::unordered_map<ContextKey, ErrorCode> codes_;
};

}  // namespace sealane
