// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What differs between the versions of PyTorch that this source is for: 1.13 (Debian 12) and 2.x
// (tools/torch2.sh has those that are tested). The class a backend derives from, and what it may be
// asked for beyond the collectives: 2.1 has the coalesced forms of functional collectives, headers
// with hooks (C10D_BACKEND_HAS_HOOKS) split groups and end them in order, and some time after 2.0
// an operation got a number (cmake/torch.cmake looks: SEALANE_TORCH_NUMBERS_WORK).
#pragma once

#include <torch/version.h>

#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 1)
#define SEALANE_TORCH_COALESCES 1
#endif
#if defined(C10D_BACKEND_HAS_HOOKS)
#define SEALANE_TORCH_SPLITS 1
#endif

namespace sealane::adapter {

#if TORCH_VERSION_MAJOR >= 2
using BackendBase = c10d::Backend;
#else
using BackendBase = c10d::ProcessGroup;
#endif

}  // namespace sealane::adapter
