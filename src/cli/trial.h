// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// sealane trial: a program tried under Sealane, part by part (docs/trial.md).
#pragma once

#include "cli/command.h"

namespace sealane::cli {

void add_trial(CLI::App& root, Invocation& invocation);

}  // namespace sealane::cli
