// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The dynamic linker, behind our own dlsym and dlopen. Usable from the first instruction of the
// process, before our constructor.
#pragma once

namespace sealane::preload {

void* real_dlsym(void* handle, const char* name);
void* real_dlopen(const char* file, int flags);  // nobody else's who stands in for it

// libcuda.so.1 if the process has it, else nullptr. Kept for good: a driver must not go away under
// its hooks.
void* driver_library();

}  // namespace sealane::preload
