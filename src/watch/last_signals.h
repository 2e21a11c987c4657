// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A program that SIGINT, SIGTERM or SIGHUP ends still tells what was seen: statistics, the page of
// --observe, the ends of files. Only where the program leaves such a signal to the system; one with
// a handler of its own, before or after us, keeps it and ends as it wants to; ours does nothing
// when that one calls it.
//
// The handler does nothing but wake a thread of ours, for the thread it interrupts may hold any
// lock; that thread tells, puts the system's own handling back and sends the signal again, so the
// program dies of it as it would have. Whoever sends it to himself (raise) does not expect to go
// on: there the handler waits for the thread, ten seconds at most, which it takes only where the
// program holds a lock that telling needs. Children of a fork die at once, as does a program that
// closed our descriptors.
//
// Concurrency: the functions from any thread.
#pragma once

namespace sealane::serve {

// Once, when somebody watches. Without a thread, signals stay as they are.
void watch_for_last_signals();

// What every sink has to say, once: at the end of the process or before a signal ends it. Whoever
// comes second waits for the first.
void tell_everything();

}  // namespace sealane::serve
