// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Trace format v1 (docs/trace-format.md): a program as text, one operation per line, in and out.
//
//   sealane-trace 1
//   create context c1 t1
//   create stream s1 c1 blocking t1
//   copy h2d s1 0x200000 0x7f0000000000 4194304 pinned async t1 +250 @13000
//
// Strict: what the reader accepts is a program (program_checker.h), and everything else is a usage
// error of one line that names file and line. Safe on arbitrary input; memory grows with what is
// alive in the program, not with the file. Not synchronised.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "workload/operation.h"
#include "workload/program_checker.h"

namespace sealane::workload {

// One operation at a time. After an error the reader repeats it.
class TraceReader {
 public:
  // `in` outlives the reader; `file` is used in messages only.
  TraceReader(std::istream& in, std::string file) : in_(in), file_(std::move(file)) {}

  // Nothing at the end of the trace.
  Result<std::optional<Operation>> next();

  uint64_t line() const { return line_number_; }

 private:
  Result<bool> read_line();  // false at the end
  Status read_header();
  Error fail(std::string_view what);

  std::istream& in_;
  std::string file_;
  std::string line_;
  uint64_t line_number_ = 0;
  bool has_header_ = false;
  ProgramChecker checker_;
  std::optional<Error> failure_;
};

Result<Program> parse_trace(std::string_view text, std::string_view file);
Result<Program> load_trace(const std::string& path);

// A trace is trace_header() and then one line per operation.
std::string_view trace_header();
void append_trace_line(std::string& out, const Operation& operation);
std::string format_trace(const Program& program);

// The line without thread, times and newline, for messages about an operation.
std::string to_text(const Action& action);

// One line of a trace, without its newline. The error does not say where.
Result<Operation> parse_trace_line(std::string_view line);

}  // namespace sealane::workload
