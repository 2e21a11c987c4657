// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Masks applied in a process of its own. std::regex tries every way to match, and of some
// expressions ("(a+)+$") a line has more ways than anybody can wait for; nothing but the end of a
// process ends it.
//
// Concurrency: one thread, which must hold a Scratch or otherwise block the signals that end us.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "cli/trial_text.h"

namespace sealane::cli {

// `text` as Masks::apply() has it, behind `lines` others of the same output. A usage error names
// the expression that cannot be applied to one of its lines; an io error: the user interrupted, or
// there is no process to be had.
Result<std::string> apply_within_limit(const Masks& masks, const std::string& text,
                                       size_t lines = 0);

}  // namespace sealane::cli
