// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/nccl_checkup.h"

#include <fmt/core.h>

#include <cstdarg>
#include <cstdio>
#include <sstream>

#include "base/try.h"
#include "nccl/plugin_table.h"

namespace sealane::cli {
namespace {

constexpr char kArea[] = "NCCL";
constexpr char kLogArea[] = "NCCL's log";

// What NCCL does with a variable that is not set.
std::string_view default_of(std::string_view name) {
  if (name == "NCCL_IGNORE_NET_MISMATCH" || name == "NCCL_GIN_ENABLE") return "1";
  if (name == "NCCL_MNNVL_ENABLE") return "2";
  if (name == "NCCL_COLLNET_ENABLE" || name == "NCCL_OOB_NET_ENABLE" ||
      name == "NCCL_RMA_DISABLE") {
    return "0";
  }
  return "";
}

bool names_the_plugin(const std::string& value) {
  return value == "sealane" || value.ends_with("libnccl-net-sealane.so") ||
         value.ends_with("librccl-net-sealane.so");
}

Finding judge(const NcclSetting& setting, const std::optional<std::string>& value) {
  const std::string name(setting.name);
  const std::string is = value.value_or(std::string(default_of(setting.name)));
  const bool right = setting.name == "NCCL_NET_PLUGIN" ? names_the_plugin(is) : is == setting.value;
  if (right) return {kArea, name, Verdict::ok, value ? is : is + " (not set)", ""};
  // Without these two NCCL goes on in the clear and says nothing.
  const bool fatal = setting.name == "NCCL_NET" || setting.name == "NCCL_NET_PLUGIN";
  return {kArea, name, fatal ? Verdict::fail : Verdict::warn,
          fmt::format("{}: {}", value ? "'" + *value + "'" : "not set", setting.why),
          fmt::format("export {}={}", setting.name, setting.value)};
}

Finding judge_key(const std::function<std::optional<std::string>(const std::string&)>& variable) {
  for (const char* name : {"SEALANE_KEY_FILE", "SEALANE_KEY_CMD", "SEALANE_CERT_FILE"}) {
    if (const auto value = variable(name)) return {kArea, name, Verdict::ok, *value, ""};
  }
  return {kArea, "key", Verdict::fail, "none: the plugin refuses to start",
          "make one with 'sealane keygen FILE', copy it to every host, export SEALANE_KEY_FILE"};
}

// Whether the library is found, the key is readable and there is an interface is tried, not
// guessed.
Finding judge_start(const std::string& plugin,
                    const std::function<Result<std::string>(const std::string&)>& start) {
  const auto started = start(plugin);
  if (started) return {kArea, "plugin", Verdict::ok, *started, ""};
  return {kArea, "plugin", Verdict::fail, started.error().message,
          "mend that: with NCCL_NET=Sealane NCCL stops, without it goes on in the clear"};
}

void read_log(const std::string& log, std::vector<Finding>& findings) {
  constexpr std::string_view kUsing = "Using network ";
  int sealed = 0;
  std::string other;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find(kUsing);
    if (at == std::string::npos) continue;
    std::string network = line.substr(at + kUsing.size());
    while (!network.empty() && static_cast<unsigned char>(network.back()) <= ' ')
      network.pop_back();
    if (network == "Sealane") {
      ++sealed;
    } else if (other.empty()) {
      other = network.substr(0, 40);
    }
  }
  if (!other.empty()) {
    findings.push_back({kLogArea, "network", Verdict::fail,
                        fmt::format("a rank uses '{}': what it sends leaves in the clear", other),
                        "export NCCL_NET=Sealane, so that NCCL stops instead"});
  } else if (sealed > 0) {
    findings.push_back(
        {kLogArea, "network", Verdict::ok,
         fmt::format("Sealane, said by {} communicator{}", sealed, sealed == 1 ? "" : "s"), ""});
  } else {
    findings.push_back({kLogArea, "network", Verdict::warn, "the log does not name a network",
                        "run the program with NCCL_DEBUG=INFO and give that log"});
  }
}

}  // namespace

namespace {

std::string last_warning;  // of the plugin: NCCL's callback has no place for more

void keep_warning(int level, unsigned long, const char*, int, const char* format, ...) {
  if (level != nccl::kLogWarn) return;
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  last_warning = text;
}

}  // namespace

std::string nccl_plugin_file(const std::string& name) {
  const bool is_path = name.find(".so") != std::string::npos;
  return is_path ? name : "libnccl-net-" + name + ".so";
}

Result<std::string> start_nccl_plugin(const std::string& name) {
  const std::string file = nccl_plugin_file(name);
  SEALANE_LET(auto plugin, nccl::PluginTable::load(file));
  last_warning.clear();
  void* context = nullptr;
  if (plugin->init(&context, 0, keep_warning) != nccl::kSuccess) {
    return usage_error(last_warning.empty() ? "does not start" : last_warning);
  }
  int devices = 0;
  plugin->devices(&devices);
  plugin->finalize(context);
  return fmt::format("{} starts, {} network device{}", file, devices, devices == 1 ? "" : "s");
}

const std::vector<NcclSetting>& nccl_settings() {
  static const std::vector<NcclSetting> settings = {
      {"NCCL_NET_PLUGIN", "sealane", "NCCL does not load the plugin"},
      {"NCCL_NET", "Sealane",
       "if the plugin cannot start, NCCL uses its own sockets, in the clear"},
      {"NCCL_IGNORE_NET_MISMATCH", "0", "ranks that use another network are not refused"},
      {"NCCL_OOB_NET_ENABLE", "1", "the ring that sets up connections goes in the clear"},
      {"NCCL_COLLNET_ENABLE", "0", "reductions in switches do not pass through a plugin"},
      {"NCCL_GIN_ENABLE", "0", "transfers started by the GPU do not pass through a plugin"},
      {"NCCL_RMA_DISABLE", "1", "one-sided transfers do not pass through a plugin"},
      {"NCCL_MNNVL_ENABLE", "0", "NVLink between machines does not pass through a plugin"},
  };
  return settings;
}

Checkup check_nccl(const std::function<std::optional<std::string>(const std::string&)>& variable,
                   const std::function<Result<std::string>(const std::string&)>& start,
                   const std::optional<std::string>& log) {
  Checkup checkup;
  for (const NcclSetting& setting : nccl_settings()) {
    checkup.findings.push_back(judge(setting, variable(std::string(setting.name))));
  }
  checkup.findings.push_back(judge_key(variable));
  // Without a key, or with another plugin's name, it is said already.
  const std::string plugin = variable("NCCL_NET_PLUGIN").value_or("");
  if (checkup.findings.back().verdict == Verdict::ok && names_the_plugin(plugin)) {
    checkup.findings.push_back(judge_start(plugin, start));
  }
  if (log) read_log(*log, checkup.findings);
  const bool sealed = checkup.count(Verdict::fail) == 0;
  checkup.outlook =
      sealed ? "What NCCL sends from one machine to another is sealed. Its bootstrap's root "
               "address and "
               "its RAS sockets are not; shared memory and NVLink inside a machine stay inside it."
             : "What NCCL sends from one machine to another may be in the clear: see above.";
  return checkup;
}

}  // namespace sealane::cli
