// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks of more than one connection (conformance.h has the rest): communicators, listeners,
// threads. Each is the body of both ranks.
#pragma once

#include "base/result.h"
#include "nccl/conformance.h"
#include "nccl/job.h"
#include "nccl/plugin_table.h"

namespace sealane::nccl {

Status check_communicators(const Subject& subject, const PluginTable& plugin, Seat& seat);
Status check_split(const Subject& subject, const PluginTable& plugin, Seat& seat);
Status check_threads(const Subject& subject, const PluginTable& plugin, Seat& seat);
Status check_abort(const Subject& subject, const PluginTable& plugin, Seat& seat);
Status check_listener(const Subject& subject, const PluginTable& plugin, Seat& seat);

}  // namespace sealane::nccl
