/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Opens its helper as a driver does: from its own code, and with no search path of its own. Its
 * name makes it the driver's. */
#include <dlfcn.h>

__attribute__((visibility("default"))) void* bound_open(const char* file, int flags) {
  void* volatile opened = dlopen(file, flags); /* a call, not a jump */
  return opened;
}
