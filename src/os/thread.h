// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A thread of ours in somebody else's process: nobody joins it, and it takes no signals, which are
// for the program's handlers on the program's threads.
#pragma once

namespace sealane {

// `name` has at most 15 letters. False: there is no thread to be had.
bool start_thread(const char* name, void (*body)(void* self), void* self);

// The same for a method that runs to the thread's end.
template <auto kMethod, typename Self>
bool start_thread(const char* name, Self* self) {
  return start_thread(
      name, [](void* me) { (static_cast<Self*>(me)->*kMethod)(); }, self);
}

}  // namespace sealane
