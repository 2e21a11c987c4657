/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A function whose address the dynamic linker asks for while it relocates those who call it, and
 * that looks for something then. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

static int answer(void) { return 1; }
static void* resolve(void) { return dlsym(RTLD_DEFAULT, "getpid") != NULL ? (void*)answer : NULL; }
__attribute__((visibility("default"), ifunc("resolve"))) int bound_resolved(void);
