// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Which start of a job this is. torchrun's store outlives the ranks: what those of an earlier start
// have left in it, the addresses of processes that are gone, of a group of another size perhaps,
// must not be taken for this one's. Nothing that the launcher tells a rank keeps starts apart:
// agents count restarts each for itself, and not at all when a machine joins or leaves. So the
// ranks of a group agree on a name, by which they then meet in the store.
//
//   1. A rank asks: it draws a number from the store.
//   2. Rank 0 makes up a name and gives it to every number that has no answer yet.
//   3. A rank with an answer says so under that name, and rank 0 that all have.
//
// An answer of an earlier start's rank 0, if that lived long enough to give one, is never followed
// by 3: who waits for that asks once more.
//
// Nothing here is secret or trusted: a store that lies keeps ranks apart, and can do no more.
// Concurrency: each rank of a group calls it once, on any thread.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <string>

namespace sealane::adapter {

// The name, other than that of every start before. Throws std::runtime_error, which names a rank
// that did not come in time; what the store throws goes through.
std::string agree_on_start(c10d::Store& store, int rank, int size,
                           std::chrono::milliseconds timeout);

}  // namespace sealane::adapter
