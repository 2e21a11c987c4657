// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "report/output.h"

#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "base/output_file.h"
#include "base/try.h"

namespace sealane::report {
namespace {

Status status_of(const std::string& path, int error_number) {
  if (error_number == 0) return {};
  if (error_number == ENOTSUP) {
    return io_error("cannot write " + path + ": it is neither a file nor a pipe nor a device");
  }
  if (error_number == ETXTBSY) {
    return usage_error(path + " is a program or a library, which no output replaces: name another");
  }
  if (error_number == ENXIO) return io_error("cannot write " + path + ": nobody reads that pipe");
  return io_error("cannot write " + path, error_number);
}

// A reader that has seen enough (head) ends this process quietly, as every other program.
Status write_standard_output(std::string_view content) {
  std::fflush(stdout);
  while (!content.empty()) {
    const ssize_t written = write(STDOUT_FILENO, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return io_error("cannot write standard output", errno);
    content.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

// Names and texts in it may be anybody's: bytes that are no characters are replaced.
std::string text_of(const nlohmann::json& value) {
  return value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string whole_name(const std::string& path) { return path == "-" ? "/dev/stdout" : path; }

// A pipe that two descriptors lead to is theirs to share; one descriptor gets one document.
bool are_one(const std::string& a, const std::string& b) {
  const int descriptor = output_descriptor(a);
  return (descriptor >= 0 && descriptor == output_descriptor(b)) || is_same_file(a, b);
}

// What whoever runs a command has, whatever the command reads: us, and the secrets of his group.
std::vector<std::string> always_read() {
  std::vector<std::string> files = {"/proc/self/exe"};
  for (const char* name :
       {"SEALANE_KEY_FILE", "SEALANE_CERT_FILE", "SEALANE_CERT_KEY_FILE", "SEALANE_CA_FILE"}) {
    if (const char* file = std::getenv(name)) files.emplace_back(file);
  }
  return files;
}

// A file that has been given to this process as stdout or stderr would be replaced, and what is
// said there lost with the one that is gone. By the descriptor's own name it is written through.
Status check_not_where_text_goes(const NamedFile& output) {
  if (output.path == "-" || output_descriptor(output.path) >= 0) return {};
  for (const auto& [name, what] :
       {std::pair("/dev/stdout", "standard output"), {"/dev/stderr", "standard error"}}) {
    if (!is_same_file(output.path, name)) continue;
    return usage_error(output.flag + ": " + output.path + " is where " + what + " goes: write " +
                       name + ", or name another file");
  }
  return {};
}

}  // namespace

Status write_file(const std::string& path, const std::string& content) {
  if (path == "-") return write_standard_output(content);
  std::fflush(stdout);  // which it may lead to
  return status_of(path, write_output(path, content));
}

Status check_writable(const std::string& path) {
  return path.empty() || path == "-" ? Status{} : status_of(path, check_output(path));
}

Status write_json(const std::string& path, const nlohmann::json& value) {
  return write_file(path, text_of(value));
}

Status write_results(const std::string& text, const std::string& path,
                     const nlohmann::json& value) {
  return write_both(text, path, path.empty() ? "" : text_of(value));
}

Status write_both(const std::string& text, const std::string& path, const std::string& content) {
  const Status written = path.empty() ? Status{} : write_file(path, content);
  const Status said = path == "-" ? Status{} : write_file("-", text);
  return written ? said : written;
}

Status check_outputs(std::vector<NamedFile> outputs, std::vector<std::string> inputs) {
  std::ranges::move(always_read(), std::back_inserter(inputs));
  std::erase_if(outputs, [](const NamedFile& one) { return one.path.empty(); });
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& [flag, path] = outputs[i];
    for (const std::string& input : inputs) {
      if (input.empty() || !is_same_file(whole_name(path), input)) continue;
      return usage_error(flag + " would overwrite " + input + ", which is read: name another file");
    }
    for (size_t j = 0; j < i; ++j) {
      if (!are_one(whole_name(path), whole_name(outputs[j].path))) continue;
      return usage_error(outputs[j].flag + " and " + flag + " cannot both be written to " +
                         (path == "-" ? "stdout" : path));
    }
    SEALANE_TRY(check_not_where_text_goes(outputs[i]));
    SEALANE_TRY(check_writable(path));
  }
  return {};
}

}  // namespace sealane::report
