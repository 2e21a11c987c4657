// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "workload/trace.h"

#include <fstream>
#include <sstream>

#include "base/text.h"
#include "base/try.h"
#include "workload/numbers.h"

namespace sealane::workload {
namespace {

constexpr std::string_view kMagic = "sealane-trace";
constexpr std::string_view kVersion = "1";
constexpr size_t kTraceLineBytesMax = 512;

Result<Program> read_all(std::istream& in, std::string_view file) {
  TraceReader reader(in, std::string(file));
  Program program;
  for (;;) {
    SEALANE_LET(auto operation, reader.next());
    if (!operation) return program;
    program.push_back(std::move(*operation));
  }
}

}  // namespace

Result<std::optional<Operation>> TraceReader::next() {
  if (failure_) return *failure_;
  if (!has_header_) {
    SEALANE_TRY(read_header());
  }
  for (;;) {
    SEALANE_LET(const auto more, read_line());
    if (!more) return std::optional<Operation>();
    if (line_.empty() || line_[0] == '#') continue;
    auto operation = parse_trace_line(line_);
    if (!operation) return fail(operation.error().message);
    if (Status status = checker_.check(*operation); !status) return fail(status.error().message);
    return std::optional(std::move(*operation));
  }
}

Result<bool> TraceReader::read_line() {
  line_.clear();
  ++line_number_;
  for (;;) {
    const int c = in_.rdbuf()->sbumpc();
    if (c == '\n') return true;
    if (c == std::istream::traits_type::eof()) {
      if (line_.empty()) return false;
      return fail("the trace is cut off in this line");
    }
    if (line_.size() == kTraceLineBytesMax) return fail("the line is too long for a trace");
    line_ += static_cast<char>(c);
  }
}

Status TraceReader::read_header() {
  SEALANE_LET(const auto more, read_line());
  std::string_view line = line_;
  if (!more || !line.starts_with(kMagic) || line.substr(kMagic.size(), 1) != " ") {
    return fail(concat("not a trace: the first line must be '", kMagic, " ", kVersion, "'"));
  }
  line.remove_prefix(kMagic.size() + 1);
  if (line == concat(kVersion, "\r")) {
    return fail("lines that end with CR LF: a trace's end with LF alone");
  }
  if (line != kVersion) {
    return fail(concat("a trace of another version: this program reads version ", kVersion));
  }
  has_header_ = true;
  return {};
}

Error TraceReader::fail(std::string_view what) {
  failure_ = usage_error(concat(file_, ":", line_number_, ": ", what));
  return *failure_;
}

Result<Program> parse_trace(std::string_view text, std::string_view file) {
  std::istringstream in{std::string(text)};
  return read_all(in, file);
}

Result<Program> load_trace(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in || in.peek() == std::ifstream::traits_type::eof()) {
    return usage_error(concat(path, ": cannot be read or is empty"));
  }
  SEALANE_LET(auto program, read_all(in, path));
  make_numbers_small(program);
  return program;
}

std::string_view trace_header() { return "sealane-trace 1\n"; }

std::string format_trace(const Program& program) {
  std::string out(trace_header());
  for (const Operation& operation : program) append_trace_line(out, operation);
  return out;
}

}  // namespace sealane::workload
