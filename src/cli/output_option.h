// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Flags that name a file to write, in every command the same: an empty name, which would silently
// write nothing, is refused. Whether a file can be written, and is not one that is read, says
// report::check_outputs(); how it is written, base/output_file.h.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace sealane::cli {

CLI::Option* add_output(CLI::App& command, const std::string& flag, std::string& path,
                        const std::string& help);

// For CLI11's check(): says what is wrong, or nothing.
std::string check_output_name(const std::string& path);

// The same for files of a program that is started, whose standard output is its own: "-" would be
// taken for a file's name.
std::string check_program_output_name(const std::string& path);

}  // namespace sealane::cli
