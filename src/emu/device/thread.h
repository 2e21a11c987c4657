// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Threads of the device. They take no signals (those are the program's) and are never joined: a
// process ends while they sleep. Where no thread can be made, callers hear of it and nothing waits
// for one.
#pragma once

#include <functional>

namespace sealane::emu {

// False: the system has no thread left.
[[nodiscard]] bool start_thread(const char* name, std::function<void()> body);

}  // namespace sealane::emu
