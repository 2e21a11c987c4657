// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Host functions in graphs. As those in streams they must not run behind a forged copy, though the
// driver may not know of it when it comes to them: the runtime does.
//
// A node may run as often as its graph and the graph's copies do, so that nobody could tell when it
// is over: what stands in for a function is kept for good, once for each function, data and context
// (that of the stream captured, or of the thread that adds the node).
//
// Thread-safe.
#pragma once

#include "port.h"

namespace sealane::preload {

// What the driver gets instead of a function of the program's, which is not null.
CUDA_HOST_NODE_PARAMS guard_node(const CUDA_HOST_NODE_PARAMS& node, serve::ContextHandle context);

}  // namespace sealane::preload
