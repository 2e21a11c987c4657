// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "support/report.h"

#include <cstdio>
#include <memory>

#include "support/fail.h"

namespace examples {

void Report::add(const char* name, const std::string& value) {
  entries_.push_back({name, value, true});
}

void Report::add(const char* name, uint64_t value) {
  entries_.push_back({name, std::to_string(value), false});
}

void Report::add(const char* name, double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  entries_.push_back({name, text, false});
}

// Names and values are words of ours: nothing in them needs escaping.
std::string Report::json() const {
  std::string out = "{";
  for (const Entry& entry : entries_) {
    if (out.size() > 1) out += ", ";
    out += "\"" + entry.name + "\": ";
    out += entry.quoted ? "\"" + entry.value + "\"" : entry.value;
  }
  return out + "}\n";
}

void Report::publish(const std::string& json_file) const {
  if (json_file == "-") {
    std::fputs(json().c_str(), stdout);
    return;
  }
  for (const Entry& entry : entries_) {
    std::printf("%-14s %s\n", entry.name.c_str(), entry.value.c_str());
  }
  if (json_file.empty()) return;
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(json_file.c_str(), "w"), std::fclose);
  if (!file || std::fputs(json().c_str(), file.get()) < 0 || std::fflush(file.get()) != 0) {
    fail("cannot write '%s'", json_file.c_str());
  }
}

void Hash::add(uint64_t word) {
  for (int byte = 0; byte < 8; ++byte) {
    state_ ^= (word >> (8 * byte)) & 0xff;
    state_ *= 0x100000001b3;
  }
}

std::string Hash::text() const {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(state_));
  return text;
}

}  // namespace examples
