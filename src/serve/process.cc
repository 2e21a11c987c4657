// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/process.h"

namespace sealane::serve {

constinit ImmortalProcess immortal_process;

ThreadState& this_thread() {
  thread_local ThreadState mine;
  return mine;
}

}  // namespace sealane::serve
