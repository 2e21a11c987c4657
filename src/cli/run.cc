// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/environment.h"
#include "cli/suggest.h"
#include "sealane_version.h"

namespace sealane::cli {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

int fail(int code, const std::string& message) {
  fmt::print(stderr, "sealane: {}\n", message);
  return code;
}

// CLI11's own message names the argument; what helps is the command or flag that was meant.
std::string explain(const CLI::App& root, const CLI::ParseError& error, int argc,
                    const char* const* argv) {
  const CLI::App* app = &root;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto commands = app->get_subcommands([](const CLI::App*) { return true; });
    const auto found = std::find_if(commands.begin(), commands.end(),
                                    [&](const CLI::App* c) { return c->get_name() == word; });
    if (found != commands.end()) {
      app = *found;
      continue;
    }
    if (!word.starts_with("-") && !commands.empty()) {
      std::vector<std::string> names;
      for (const CLI::App* command : commands) names.push_back(command->get_name());
      return fmt::format("unknown command '{}'{}", word, did_you_mean(word, names));
    }
    break;
  }
  std::string message = error.what();
  std::replace(message.begin(), message.end(), '\n', ' ');
  const std::string path = app == &root ? "sealane" : "sealane " + app->get_name();
  return fmt::format("{}; see '{} --help'", message, path);
}

}  // namespace

int run(int argc, const char* const* argv) {
  CLI::App root{"Speed for GPUs in confidential-computing mode"};
  root.name("sealane");
  root.set_version_flag("--version", "sealane " SEALANE_VERSION);
  root.require_subcommand(1);
  root.failure_message([](const CLI::App*, const CLI::Error& e) { return std::string(e.what()); });
  root.footer(
      "Examples:\n"
      "  sealane doctor                     what this machine can do\n"
      "  sealane bench seal                 how fast it seals, next to memcpy and OpenSSL\n"
      "  sealane bench seal --json -        the same for programs\n"
      "\n"
      "Exit status: 0 done, 1 failed, 2 wrong usage. Environment: SEALANE_AEAD=ipsec-mb|openssl,\n"
      "SEALANE_DEBUG=WARN|INFO|TRACE.");

  Invocation invocation;
  add_doctor(root, invocation);
  add_bench(root, invocation);
  add_run(root, invocation);

  try {
    root.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    return root.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    return fail(kExitUsage, explain(root, error, argc, argv));
  }

  for (const std::string& warning : unknown_environment()) fmt::print(stderr, "{}\n", warning);
  const Status status = invocation.job();
  if (status) return 0;
  return fail(status.error().kind == ErrorKind::usage ? kExitUsage : kExitFailed,
              status.error().message);
}

}  // namespace sealane::cli
