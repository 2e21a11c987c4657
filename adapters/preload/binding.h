// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The driver's objects (libcuda.so*, libnvidia-*), and that their calls of libcrypto come to us:
// the addresses in their own slots are replaced by our functions'. We export no name of
// libcrypto's, so nobody else's calls come by, whatever they are linked to and whenever they were
// loaded.
//
// Knows: which code is the driver's. Behind what we put into an object's slots is the libcrypto
// that it reaches without us: the one where they led, or would have. The driver's objects stay
// loaded, and so does that libcrypto; nothing else does because of us, and no libcrypto is loaded.
//
// Events: the program calls cuInit; a dlopen has returned; somebody calls dlsym. Before the first
// cuInit, and after one that failed, nothing is known, and nothing is asked. What a driver calls
// before it is bound is libcrypto's own business.
//
// Fails quietly: an object whose libcrypto is not complete, or that the system does not let us
// write, keeps its own addresses; what it seals is not seen.
//
// Thread-safe. Questions (is_binding, in_driver) take no lock; no lock is held while the dynamic
// linker is asked, which runs constructors under its own and asks an allocator that may ask us:
// nobody comes in twice on one thread. Who forks waits for those who walk its list. In the child of
// a fork nothing is bound, and no lock taken, unless it calls cuInit itself.
#pragma once

#include <atomic>
#include <cstdint>

namespace sealane::preload {

bool names_driver(const char* path);

// From the first cuInit on that does not fail, unless there is nothing to do in this process.
extern std::atomic<bool> binding_on;
inline bool is_binding() { return binding_on.load(std::memory_order_acquire); }

// Does this code address lie in the driver or one of its helper libraries, as far as they were
// bound?
bool in_driver(const void* code);

// Whose names the objects that are loaded now look at first: everybody's, or their own
// (RTLD_DEEPBIND). Matters only where slots are open until their first call; where it is unknown
// and makes a difference they are left alone.
enum class Scope : uint8_t { everybodys_first, own_first, unknown };

void start_binding();           // and binds what is there
void bind_driver(Scope how);    // what was loaded since
void bind_driver_by_the_way();  // the same, unless it would have to wait for anybody
void stop_binding();            // gives the slots their own addresses back; may start again

// What dlsym answers code of the driver; nullptr: not ours.
void* hook_for_libcrypto(void* handle, const char* name, const void* caller);

}  // namespace sealane::preload
