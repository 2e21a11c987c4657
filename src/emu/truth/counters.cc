// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/truth/counters.h"

#include <cstdio>
#include <cstring>
#include <mutex>
#include <string_view>

#include "base/output_file.h"
#include "base/output_name.h"
#include "base/text.h"
#include "emu/config/config.h"
#include "emu/device/pace.h"

namespace sealane::emu {
namespace {

void field(std::string& out, std::string_view name, uint64_t value) {
  if (out.back() != '{') out += ", ";
  out += concat('"', name, "\": ", value);
}

// Fields of one direction; the names are those of the members.
std::string direction_json(const DirectionCounters& d) {
  std::string out = "{";
  field(out, "copies", d.copies);
  field(out, "bytes", d.bytes);
  field(out, "blocked_ns", d.blocked_ns);
  field(out, "blocked_device_ns", static_cast<uint64_t>(device_ns_of(d.blocked_ns)));
  field(out, "messages", d.messages);
  field(out, "own_messages", d.own_messages);
  field(out, "own_altered", d.own_altered);
  field(out, "sealed_bytes", d.sealed_bytes);
  field(out, "verified_bytes", d.verified_bytes);
  field(out, "positions", d.positions);
  field(out, "rejected", d.rejected);
  field(out, "rotations", d.rotations);
  return out + "}";
}

// What is told of the part that a program profiles.
struct Measured {
  uint64_t copies = 0;
  uint64_t bytes = 0;
  uint64_t blocked_ns = 0;

  static Measured now(const DirectionCounters& d) { return {d.copies, d.bytes, d.blocked_ns}; }
  void add_since(const Measured& start, const Measured& end) {
    copies += end.copies - start.copies;
    bytes += end.bytes - start.bytes;
    blocked_ns += end.blocked_ns - start.blocked_ns;
  }
};

struct Profile {
  std::mutex mutex;
  bool running = false;
  bool ever = false;
  Measured to_device_start, to_host_start;
  Measured to_device, to_host;  // of all ranges that have ended
};

Profile& profile() {
  static Profile& made = *new Profile;
  return made;
}

std::string measured_json(const Measured& measured) {
  std::string out = "{";
  field(out, "copies", measured.copies);
  field(out, "bytes", measured.bytes);
  field(out, "blocked_ns", measured.blocked_ns);
  field(out, "blocked_device_ns", static_cast<uint64_t>(device_ns_of(measured.blocked_ns)));
  return out + "}";
}

std::string profile_json() {
  const std::lock_guard lock(profile().mutex);
  if (!profile().ever) return {};
  return concat(", \"profiled\": {\"to_device\": ", measured_json(profile().to_device),
                ", \"to_host\": ", measured_json(profile().to_host), "}");
}

struct Start {
  RealNs real = monotonic_ns();
  RealNs clock = clock_ns();
};

const Start& started() {
  static const Start start;
  return start;
}

}  // namespace

Counters& counters() {
  static Counters& made = *(started(), new Counters);
  return made;
}

void start_profile() {
  const std::lock_guard lock(profile().mutex);
  if (profile().running) return;
  profile().running = profile().ever = true;
  profile().to_device_start = Measured::now(counters().to_device);
  profile().to_host_start = Measured::now(counters().to_host);
}

void stop_profile() {
  const std::lock_guard lock(profile().mutex);
  if (!profile().running) return;
  profile().running = false;
  profile().to_device.add_since(profile().to_device_start, Measured::now(counters().to_device));
  profile().to_host.add_since(profile().to_host_start, Measured::now(counters().to_host));
}

std::string counters_json() {
  stop_profile();
  const Counters& c = counters();
  std::string out = "{";
  out += concat("\"emulated\": true, \"cc\": ", config()->cc ? "true" : "false");
  field(out, "gpus", static_cast<uint64_t>(config()->gpus));
  field(out, "dilation_permille", static_cast<uint64_t>(config()->dilation * 1000));
  const RealNs on_the_clock = clock_ns() - started().clock;
  field(out, "real_ns", monotonic_ns() - started().real);  // looked at later, so never less
  field(out, "device_ns", static_cast<uint64_t>(device_ns_of(on_the_clock)));
  field(out, "overrun_ns", overrun_ns());
  out += ", \"to_device\": " + direction_json(c.to_device);
  out += ", \"to_host\": " + direction_json(c.to_host);
  field(out, "device_copies", c.device_copies);
  field(out, "device_copy_bytes", c.device_copy_bytes);
  field(out, "peer_copies", c.peer_copies);
  field(out, "fills", c.fills);
  field(out, "launches", c.launches);
  field(out, "unknown_launches", c.unknown_launches);
  field(out, "host_functions", c.host_functions);
  field(out, "synchronisations", c.synchronisations);
  field(out, "answered_bytes", c.answered_bytes);
  field(out, "contexts", c.contexts);
  field(out, "contexts_failed", c.contexts_failed);
  field(out, "attacks", c.attacks);
  out += profile_json();
  return out + "}\n";
}

void write_counters() {
  const Config* current = config();
  if (current == nullptr || current->stats.empty()) return;
  const std::string path = output_path(current->stats);
  const int error = write_output(path, counters_json());
  if (error != 0) {
    std::fprintf(stderr, "sealane emulated GPU: cannot write SEALANE_EMU_STATS=%s: %s\n",
                 visible(path).c_str(), std::strerror(error));
  }
}

}  // namespace sealane::emu
