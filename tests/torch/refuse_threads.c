/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A system that refuses as many threads as it is told to, and makes those after them; to be
 * preloaded. */

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

typedef int (*create_fn)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

static atomic_int refused_next = 0;

void refuse_threads(int count) { refused_next = count; }
int threads_to_refuse(void) { return refused_next; }

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
  int left = refused_next;
  while (left > 0) {
    if (atomic_compare_exchange_strong(&refused_next, &left, left - 1)) return EAGAIN;
  }
  void* const found = dlsym(RTLD_NEXT, "pthread_create");
  create_fn real;
  memcpy(&real, &found, sizeof real);
  return real(thread, attributes, start, argument);
}
