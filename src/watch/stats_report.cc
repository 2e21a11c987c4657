// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What Stats counted, for programs (JSON) and for people (a few lines).

#include "base/figures.h"
#include "base/json_writer.h"
#include "watch/observer.h"
#include "watch/speculation_report.h"
#include "watch/stats.h"

namespace sealane::serve {
namespace {

constexpr std::string_view kMethod =
    "per copy: toll + per message (AEAD + message cost + staging if pageable) while the link moves "
    "the message before, with the platform's numbers; waiting for the stream is not in it, so "
    "callers would have waited at least this long";

}  // namespace

double Stats::seconds(uint64_t real_ns) const {
  const double dilation = options_.dilation != nullptr ? options_.dilation() : 0;
  return static_cast<double>(real_ns) / (dilation > 0 ? dilation : 1) / 1e9;
}

std::string Stats::json() const {
  JsonWriter json;
  json.begin_object().field("version", 1);
  const double dilation = options_.dilation != nullptr ? options_.dilation() : 0;
  json.field("dilation", dilation > 0 ? dilation : 1);
  const auto sealing = lanes();
  write_counts(json, counts(), sealing);
  if (const auto range = profiled()) {
    json.begin_object("profiled");
    write_counts(json, *range, sealing);
    json.end_object();
  }
  json.begin_object("decisions").begin_object("speculate");
  json.field("decision", to_string(options_.speculation.why));
  json.field("why", describe(options_.speculation)).end_object().end_object();
  json.begin_object("stock_estimate").field("platform", options_.costs.from);
  json.field("method", kMethod).field("comparable", is_timed()).end_object();
  if (options_.observer != nullptr) options_.observer->write(json);
  json.begin_array("notes");
  for (const auto& note : notes_) {
    if (note != nullptr) json.element(note.load());
  }
  json.end_array().end_object();
  return json.text();
}

void Stats::write_counts(JsonWriter& json, const Counts& counts,
                         const std::vector<SpeculationStats>& lanes) const {
  json.field("seconds", seconds(counts.elapsed_ns));
  for (const Direction direction : kDirections) write_direction(json, counts, direction);
  write_copies(json, counts);
  json.begin_object("waits").field("count", counts.waits.count);
  json.field("blocked_s", seconds(counts.waits.ns)).end_object();
  json.begin_object("calls");
  for (size_t i = 0; i < names_.size(); ++i) {
    if (counts.calls[i] != 0) json.field(names_[i].load(), counts.calls[i]);
  }
  json.end_object();
  json.begin_object("workers").field("parts", counts.parts.count);
  json.field("bytes", counts.parts.bytes).field("busy_s", seconds(counts.parts.ns));
  json.field("sealed_bytes", counts.sealed[0].bytes + counts.sealed[1].bytes);
  json.field("sealing_s", seconds(counts.sealed[0].ns + counts.sealed[1].ns));
  json.field("cpu_s", static_cast<double>(counts.cpu_ns) / 1e9).end_object();
  write_speculation(json, counts, lanes);
  json.field("keys", counts.keys);
}

void Stats::write_direction(JsonWriter& json, const Counts& counts, Direction direction) const {
  const size_t d = static_cast<size_t>(direction);
  const Tally all = counts.copies_of(direction);
  const Tally carried = counts.copies_by(direction, Route::carried);
  json.begin_object(to_string(direction)).field("copies", all.count).field("bytes", all.bytes);
  json.field("blocked_s", seconds(all.ns)).field("failed", all.failed);
  json.field("stock_blocked_s_estimate", static_cast<double>(counts.stock_ns[d]) / 1e9);
  json.field("carried_copies", carried.count).field("carried_bytes", carried.bytes);
  json.field("passed_copies", all.count - carried.count);
  json.field("passed_bytes", all.bytes - carried.bytes);
  json.field("carrying_s", seconds(counts.carried[d].ns));
  json.field("coalesced_copies", counts.coalesced[d]);
  json.field("crossings_saved", counts.crossings_saved[d]);
  json.begin_object("messages");
  for (size_t a = 0; a < kAnswers; ++a) {
    const Tally& tally = counts.messages[d][a];
    json.begin_object(to_string(static_cast<Answer>(a))).field("count", tally.count);
    json.field("bytes", tally.bytes).field("busy_s", seconds(tally.ns)).end_object();
  }
  json.end_object().end_object();
}

// One entry for every kind and route there was.
void Stats::write_copies(JsonWriter& json, const Counts& counts) const {
  json.begin_array("copies");
  for (size_t kind = 0; kind < 8 * kRoutes; ++kind) {
    const size_t route = kind % kRoutes;
    const bool pinned = (kind / kRoutes & 1) != 0;
    const bool asynchronous = (kind / kRoutes & 2) != 0;
    const Direction direction = kDirections[kind / kRoutes >> 2];
    const Tally& tally = counts.copies[static_cast<size_t>(direction)][asynchronous][pinned][route];
    if (tally.count == 0) continue;
    json.begin_object().field("direction", to_string(direction));
    json.field("call", asynchronous ? "async" : "sync");
    json.field("memory", pinned ? "pinned" : "pageable");
    json.field("route", to_string(static_cast<Route>(route)));
    json.field("copies", tally.count).field("bytes", tally.bytes);
    json.field("failed", tally.failed).field("blocked_s", seconds(tally.ns)).end_object();
  }
  json.end_array();
}

std::string Stats::copy_line(const Counts& counts, Direction direction) const {
  const Tally all = counts.copies_of(direction);
  const Tally carried = counts.copies_by(direction, Route::carried);
  const uint64_t stock_ns = counts.stock_ns[static_cast<size_t>(direction)];
  return concat(
      "  ", padded(direction == Direction::to_device ? "to device" : "to host", 11),
      indented(grouped(all.count), 9), indented(bytes_text(all.bytes), 12),
      indented(percent_of(static_cast<double>(carried.bytes), static_cast<double>(all.bytes)), 10),
      indented(time_text(seconds(all.ns)), 16),
      indented(is_timed() ? time_text(static_cast<double>(stock_ns) / 1e9) : "-", 18), "\n");
}

std::string Stats::summary() const {
  const Counts whole = counts();
  std::string out = concat("sealane: ", time_text(seconds(whole.elapsed_ns)),
                           " from the first GPU call to the last");
  if (options_.dilation != nullptr) {
    out += is_timed() ? " (device time)"
                      : "\n  (emulated at full speed: times say nothing; --platform P paces it)";
  }
  out += "\n  direction     copies       bytes   carried  callers waited  stock, estimated\n";
  for (const Direction direction : kDirections) out += copy_line(whole, direction);
  if (const auto range = profiled()) {
    out += concat("  of these, profiled (", time_text(seconds(range->elapsed_ns)), ")\n");
    for (const Direction direction : kDirections) out += copy_line(*range, direction);
  }
  if (options_.speculation.why != SpeculationChoice::Why::excluded) {
    out += concat("  ", wrapped(concat("sealing ahead ", describe(options_.speculation)), 4));
  }
  out += speculation_lines(whole, profiled(), lanes());
  out += concat("  waiting calls ", grouped(whole.waits.count), ", ",
                time_text(seconds(whole.waits.ns)), "; own threads' CPU ",
                time_text(static_cast<double>(whole.cpu_ns) / 1e9), "\n");
  if (const uint64_t together = whole.coalesced[0] + whole.coalesced[1]; together > 0) {
    out +=
        concat("  small copies that travelled together ", grouped(together), ": ",
               grouped(whole.crossings_saved[0] + whole.crossings_saved[1]), " crossings saved\n");
  }
  const uint64_t failed =
      whole.copies_of(Direction::to_device).failed + whole.copies_of(Direction::to_host).failed;
  if (failed > 0) out += concat("  failed copies ", grouped(failed), "\n");
  for (const auto& note : notes_) {
    if (note != nullptr) out += concat("  ", wrapped(concat("note: ", note.load()), 4));
  }
  return out;
}

}  // namespace sealane::serve
