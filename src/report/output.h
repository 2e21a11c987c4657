// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Files people asked for, whole or not at all (how: base/output_file.h).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "base/result.h"

namespace sealane::report {

// "-" is standard output. An io error leaves nothing behind.
Status write_file(const std::string& path, const std::string& content);

// Fails early, before a long measurement, if `path` could not be written later. "": nothing will
// be. Of one file; commands call check_outputs() below.
Status check_writable(const std::string& path);

Status write_json(const std::string& path, const nlohmann::json& value);

// What a command has found: the file for programs, if `path` names one, and the text for people on
// standard output, unless that is where the file goes. The file first, which must not depend on who
// reads standard output for how long; and the text even if there is no file.
Status write_results(const std::string& text, const std::string& path, const nlohmann::json& value);
Status write_both(const std::string& text, const std::string& path, const std::string& content);

struct NamedFile {
  std::string flag;  // "--json": how its user calls it
  std::string path;
};

// The same for all outputs of a command at once: none of them is an input, or the file stdout or
// stderr goes to, and no two are one. Those without a name will not be written, inputs without one
// are not read. Every command calls this one and says what it reads, so that none can forget to: {}
// is an answer, too. This program and the keys its environment names are inputs of every command.
Status check_outputs(std::vector<NamedFile> outputs, std::vector<std::string> inputs);

}  // namespace sealane::report
