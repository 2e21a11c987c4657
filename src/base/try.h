// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The straight way through calls that can fail: what goes wrong leaves the function as it is, with
// its Error, and the lines that stay say what is done. Where an error wants a word of its own, it
// is an `if` as ever.
//
//   SEALANE_TRY(check(options));                     // a Status
//   SEALANE_LET(const auto plan, make_plan(flags));  // the value of a Result
//   SEALANE_LET(listeners_, open_listeners());       // the same, for something that is there
#pragma once

#include <utility>

#include "base/result.h"

#define SEALANE_TRY(...)                                                                        \
  do {                                                                                          \
    if (const auto sealane_tried = (__VA_ARGS__); !sealane_tried) return sealane_tried.error(); \
  } while (false)

#define SEALANE_LET(target, ...) SEALANE_LET_ON(__LINE__, target, __VA_ARGS__)
#define SEALANE_LET_ON(line, target, ...) SEALANE_LET_BY(line, target, __VA_ARGS__)
#define SEALANE_LET_BY(line, target, ...)                           \
  auto sealane_result_##line = (__VA_ARGS__);                       \
  if (!sealane_result_##line) return sealane_result_##line.error(); \
  target = *std::move(sealane_result_##line)
