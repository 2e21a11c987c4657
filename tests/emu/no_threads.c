/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A system that has NO_THREADS_AFTER threads left, or none, to be preloaded. */

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef int (*create_fn)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
  static int made = 0;
  const char* const left = getenv("NO_THREADS_AFTER");
  if (made >= (left != NULL ? atoi(left) : 0)) return EAGAIN;
  ++made;
  void* const found = dlsym(RTLD_NEXT, "pthread_create");
  create_fn real;
  memcpy(&real, &found, sizeof real);
  return real(thread, attributes, start, argument);
}
