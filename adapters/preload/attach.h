// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The side of `sealane attach` that is in the program's process. Nobody waits here for a question:
// the program's own calls look at one word (notice_attach), and the first that finds it changed has
// a thread write the answer, which then ends. Whoever did not count so far counts from then on.
//
// Thread-safe. What a page looks like says watch/attach_page.h.
#pragma once

#include <string>

#include "watch/watch.h"

namespace sealane::preload {

// Opens the page, unless SEALANE_ATTACH=0. `later` is how to count, should nobody do it yet. Once.
void open_to_attach(serve::Lookup lookup, const std::string& presence, serve::Watchers watchers,
                    serve::StatsOptions later);

// The runtime does nothing in this process: only that is told.
void open_to_attach(serve::Lookup lookup, const std::string& presence);

void notice_attach();    // in calls of the program: two loads, if nobody asks
void close_to_attach();  // in the child of a fork, whose page it is not

}  // namespace sealane::preload
