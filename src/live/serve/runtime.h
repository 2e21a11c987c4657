// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The one entry of the transparent runtime. The preload says what the program asks for; the runtime
// says whether it took it over. Whatever it does not take over goes to the driver unchanged: passing
// is always right, only slower.
//
// Failure: if something of ours fails (no context, no memory, no thread), copies under way are
// finished, one line says why, and from then on everything passes. If a copy that was carried fails
// in the driver, that is the program's error: its context gets it, for every later call, as it would
// have without us.
//
// Threads: everything from any thread.
#pragma once

#include <cstdint>

#include "core/copy.h"
#include "live/serve/events.h"
#include "live/serve/gpu_driver.h"

namespace sealane::serve {

struct CopyAsked {
  Direction direction = Direction::to_device;
  uint64_t device_address = 0;
  void* host = nullptr;
  uint64_t bytes = 0;
  StreamHandle stream = nullptr;
};

class Runtime {
 public:
  // Starts what the options ask for. Called once the driver is up and CC mode is known to be on.
  static void start(GpuDriver& driver);
  // nullptr: not started, or stepped aside. Cheap.
  static Runtime* get();

  // An asynchronous copy. carried: it is ours, the call has succeeded.
  Route copy(const CopyAsked& asked);
  // Something other than a carried copy goes into the stream, or may.
  void touch(StreamHandle stream);

  // The code that every call on this context must return: success, or the error of a carried copy.
  Code failure_of(ContextHandle context) const;
  // Waits until nothing of ours is under way (of this context; null: of all).
  void drain(ContextHandle context);
};

}  // namespace sealane::serve
