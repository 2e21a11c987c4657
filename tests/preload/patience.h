// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How many times its usual pause a program leaves workers to seal the next copy ahead: longer where
// it must be seen that they did (sealed_ahead.sh).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>

inline std::chrono::microseconds patiently(std::chrono::microseconds usual) {
  const char* const times = std::getenv("PATIENCE");
  return usual * std::max(1, times != nullptr ? std::atoi(times) : 1);
}
