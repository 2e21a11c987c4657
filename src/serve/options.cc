// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/options.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/text.h"

namespace sealane::serve {
namespace {

std::optional<uint64_t> number(Lookup lookup, const char* name) {
  const char* text = lookup(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  uint64_t value = 0;
  const char* end = text + std::strlen(text);
  const auto read = std::from_chars(text, end, value);
  if (read.ec == std::errc() && read.ptr == end) return value;
  std::fprintf(stderr, "sealane: %s=%s is not a number: not used\n", name, text);
  return std::nullopt;
}

bool flag(Lookup lookup, const char* name) {
  const char* text = lookup(name);
  return text != nullptr && *text != '\0' && std::strcmp(text, "0") != 0;
}

uint64_t megabytes(Lookup lookup, const char* name, uint64_t usual) {
  const auto value = number(lookup, name);
  return value ? std::min<uint64_t>(*value, 1_MiB) * 1_MiB : usual;
}

void switch_off(Options& options) {
  options.engine = options.async = options.parallel = options.coalesce = false;
  options.registration = options.pinned = false;
  options.speculate = Speculate::off;
}

// What is on where nobody says anything.
void switch_defaults_on(Options& options) {
  const Options usual;
  options.engine = usual.engine;
  options.async = usual.async;
  options.parallel = usual.parallel;
  options.coalesce = usual.coalesce;
  options.registration = usual.registration;
  if (options.speculate == Speculate::off) options.speculate = usual.speculate;
}

bool switch_on(Options& options, std::string_view part) {
  if (part == "engine") {
    options.engine = true;
  } else if (part == "async") {
    options.async = true;
  } else if (part == "parallel") {
    options.parallel = true;
  } else if (part == "coalesce") {
    options.coalesce = true;
  } else if (part == "register") {
    options.registration = true;
  } else if (part == "pinned") {
    options.pinned = true;
  } else if (part == "speculate") {
    options.speculate = Speculate::on;
  } else if (part == "default") {
    switch_defaults_on(options);
  } else {
    return part == "none";
  }
  return true;
}

void read_enable(Options& options, std::string_view list) {
  switch_off(options);
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view part = list.substr(0, comma);
    if (!switch_on(options, part)) {
      std::fprintf(stderr,
                   "sealane: SEALANE_ENABLE knows engine, async, parallel, coalesce, speculate, "
                   "register, pinned, default, none: not %.*s\n",
                   static_cast<int>(part.size()), part.data());
    }
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

// The policies people compare (core/policy.h), as sets of switches. `off` is none: it is CC mode
// that is off; nor is the paper's, which is for the simulator to compare with.
void read_policy(Options& options, std::string_view name) {
  const Policy* const policy = find_policy(name);
  if (policy == nullptr || !policy->runs_live()) {
    std::string known;
    for (const Policy& each : policies()) {
      if (each.runs_live()) known += concat(known.empty() ? "" : ", ", each.name);
    }
    std::fprintf(stderr, "sealane: SEALANE_POLICY knows %s: not %.*s\n", known.c_str(),
                 static_cast<int>(name.size()), name.data());
    return;
  }
  switch_off(options);
  options.engine = policy->fast_engine;
  options.async = policy->async;
  options.parallel = policy->parallel;
  options.coalesce = policy->coalesce;
  options.registration = policy->carries();
  if (policy->speculates()) {
    options.speculate = policy->where_it_pays ? Speculate::by_cost : Speculate::on;
  }
}

}  // namespace

const Policy* Options::speculation() const {
  if (!engine || !async || !parallel || speculate == Speculate::off) return nullptr;
  return find_policy(speculate == Speculate::on ? "speculate" : "sealane");
}

Options read_options(Lookup lookup) {
  Options options;
  options.disabled = flag(lookup, "SEALANE_DISABLE");
  options.observe = flag(lookup, "SEALANE_OBSERVE");
  if (const char* name = lookup("SEALANE_POLICY"); name != nullptr) read_policy(options, name);
  const char* list = lookup("SEALANE_ENABLE");
  if (list != nullptr && *list != '\0') read_enable(options, list);
  if (options.observe) switch_off(options);
  options.verify = number(lookup, "SEALANE_VERIFY").value_or(options.verify);
  const uint64_t pause = number(lookup, "SEALANE_METRICS_SECONDS").value_or(5);
  options.metrics_seconds = std::clamp<uint64_t>(pause, 1, 86400);
  options.workers = static_cast<unsigned>(number(lookup, "SEALANE_WORKERS").value_or(0));
  options.staging_bytes_max = megabytes(lookup, "SEALANE_STAGING_MB", options.staging_bytes_max);
  options.early = number(lookup, "SEALANE_EARLY").value_or(1) != 0;
  options.page_guards = number(lookup, "SEALANE_PAGE_GUARDS").value_or(1) != 0;
  options.slot_bytes_max = megabytes(lookup, "SEALANE_SLOT_MB", options.slot_bytes_max);
  return options;
}

namespace {

Options& the_options() {
  static Options& read =
      *new Options(read_options([](const char* name) -> const char* { return std::getenv(name); }));
  return read;
}

}  // namespace

const Options& options() { return the_options(); }

void only_watch() { switch_off(the_options()); }

}  // namespace sealane::serve
