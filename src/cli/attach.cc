// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// sealane attach: what the runtime in a running process has counted so far (docs/watching.md).

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <sstream>
#include <string>
#include <thread>

#include "base/figures.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/attached.h"
#include "cli/command.h"
#include "report/output.h"

namespace sealane::cli {
namespace {

using nlohmann::json;

struct AttachFlags {
  uint64_t pid = 0;
  double seconds = 2;
  double patience_s = 5;
  std::string json_path;
};

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

std::string word(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// Another process's text, line by line fit for a terminal.
std::string lines_for_terminal(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out += visible(line) + "\n";
  return out;
}

std::string text_of(const AttachFlags& flags, const std::string& presence, const json& answer) {
  std::string out = wrapped(fmt::format("process {} ({}): {}", flags.pid,
                                        visible(word(answer, "command")), visible(presence)),
                            2);
  out += word(answer, "counted_since") == "start"
             ? "counted since it began to use the GPU\n"
             : "counted since it was first asked; --stats and --metrics count from the start\n";
  return out + lines_for_terminal(word(answer, "summary")) +
         lines_for_terminal(word(answer, "page"));
}

Status attach(const AttachFlags& flags) {
  SEALANE_TRY(report::check_outputs({{"--json", flags.json_path}},
                                    {fmt::format("/proc/{}/exe", flags.pid)}));
  SEALANE_LET(auto process, Attached::find(static_cast<pid_t>(flags.pid)));
  std::string presence = process.presence();
  if (presence.starts_with("sealane: ")) presence.erase(0, 9);
  if (!process.answers()) {
    return io_error(fmt::format("process {}: {}", flags.pid, visible(presence)));
  }
  auto answer = process.ask(milliseconds(flags.patience_s));
  const auto began = answer ? answer->find("began") : json::iterator();
  if (answer && began != answer->end() && *began == true) {  // there is nothing to see yet
    std::this_thread::sleep_for(milliseconds(flags.seconds));
    answer = process.ask(milliseconds(flags.patience_s));
  }
  if (!answer) return answer.error();
  json all = {{"pid", flags.pid}, {"presence", presence}};
  for (const char* key : {"command", "counted_since", "page", "stats"}) {
    if (answer->contains(key)) all[key] = (*answer)[key];
  }
  return report::write_results(text_of(flags, presence, *answer), flags.json_path, all);
}

}  // namespace

void add_attach(const Command& root) {
  const auto [command, flags] =
      add_command<AttachFlags>(root, "attach", "Ask a running process for its statistics", &attach);
  command
      .value("pid", flags.pid, "PID", "The process, started by `sealane run`",
             whole_number(1, 1 << 22))
      .required();
  command.value("--seconds", flags.seconds, "S",
                "How long to let it count, if nobody counted yet [2]", real_number(0, 86400));
  command.value("--wait", flags.patience_s, "S",
                "How long to wait for its next call to the GPU's driver [5]",
                real_number(0.001, 86400));
  command.output("--json", flags.json_path, "Also write it as JSON; - is stdout");
  command.footer(
      "Examples:\n"
      "  sealane attach 4711                what callers waited for, by direction\n"
      "  sealane attach 4711 --json -       all counters, as of `sealane run --stats`\n"
      "\n"
      "Only the process's own user and root can ask. It is not stopped, and answers at\n"
      "its next call to the GPU's driver. With `run --observe` the page so far is\n"
      "printed, too. Exit status: 0 answered, 1 not, 2 wrong usage.");
}

}  // namespace sealane::cli
