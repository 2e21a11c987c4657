// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Threads of the device. They take no signals (those are the program's) and are never joined: a
// process ends while they sleep.
#pragma once

#include <functional>

namespace sealane::emu {

void start_thread(const char* name, std::function<void()> body);

}  // namespace sealane::emu
