// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// --draws of `estimate` and `validate`: none, or as many as an interval needs.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>

namespace sealane::cli {

void add_draws(CLI::App& command, uint32_t& to);

}  // namespace sealane::cli
