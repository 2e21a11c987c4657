// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The whole program but for main(): parses, runs, reports.
#pragma once

namespace sealane::cli {

int run(int argc, const char* const* argv);

}  // namespace sealane::cli
