// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What Stats counted, for programs (JSON) and for people (a few lines).

#include "base/figures.h"
#include "base/json_writer.h"
#include "live/serve/watch/stats.h"

namespace sealane::serve {
namespace {

constexpr std::string_view kMethod =
    "per copy: toll + per message (AEAD + message cost + staging if pageable) while the link moves "
    "the message before, with the platform's numbers; waiting for the stream is not in it, so "
    "callers would have waited at least this long";

constexpr Direction kDirections[] = {Direction::to_device, Direction::to_host};

}  // namespace

double Stats::seconds(double real_ns) const {
  const double dilation = options_.dilation != nullptr ? options_.dilation() : 0;
  return real_ns / (dilation > 0 ? dilation : 1) / 1e9;
}

Stats::Sum Stats::copies_of(Direction direction) const {
  Sum sum;
  for (const auto& by_memory : copies_[static_cast<size_t>(direction)]) {
    for (const auto& by_route : by_memory) {
      for (const Tally& tally : by_route) sum.add(tally);
    }
  }
  return sum;
}

Stats::Sum Stats::carried_of(Direction direction) const {
  Sum sum;
  for (const auto& by_memory : copies_[static_cast<size_t>(direction)]) {
    for (const auto& by_route : by_memory) sum.add(by_route[static_cast<size_t>(Route::carried)]);
  }
  return sum;
}

// Of the bytes sealed for the device, those that were sealed ahead.
double Stats::hit_rate() const {
  Sum all;
  for (const Tally& tally : messages_[0]) all.add(tally);
  Sum hits;
  hits.add(messages_[0][static_cast<size_t>(Answer::slot)]);
  return all.bytes == 0 ? 0 : static_cast<double>(hits.bytes) / static_cast<double>(all.bytes);
}

double Stats::own_cpu_seconds() const {
  uint64_t ns = 0;
  for (const Counter& thread : cpu_) ns += thread.load(std::memory_order_relaxed);
  return static_cast<double>(ns) / 1e9;
}

std::string Stats::json() const {
  JsonWriter json;
  json.begin_object().field("version", 1);
  const double dilation = options_.dilation != nullptr ? options_.dilation() : 0;
  json.field("dilation", dilation > 0 ? dilation : 1);
  json.field("seconds", seconds(static_cast<double>(last_ns_ - first_ns_)));
  for (const Direction direction : kDirections) write_direction(json, direction);
  write_copies(json);
  json.begin_object("waits").field("count", waits_.count.load());
  json.field("blocked_s", seconds(static_cast<double>(waits_.ns))).end_object();
  json.begin_object("calls");
  for (const NamedCalls& call : calls_) {
    if (call.name != nullptr) json.field(call.name.load(), call.count.load());
  }
  json.end_object();
  json.begin_object("workers").field("parts", parts_.count.load());
  json.field("bytes", parts_.bytes.load()).field("busy_s", seconds(static_cast<double>(parts_.ns)));
  json.field("cpu_s", own_cpu_seconds()).end_object();
  write_speculation(json);
  json.field("keys", keys_.load());
  json.begin_object("stock_estimate").field("platform", options_.costs.from);
  json.field("method", kMethod).end_object();
  json.begin_array("notes");
  for (const auto& note : notes_) {
    if (note != nullptr) json.element(note.load());
  }
  json.end_array().end_object();
  return json.text();
}

void Stats::write_direction(JsonWriter& json, Direction direction) const {
  const size_t d = static_cast<size_t>(direction);
  const Sum all = copies_of(direction);
  const Sum carried = carried_of(direction);
  json.begin_object(to_string(direction)).field("copies", all.count).field("bytes", all.bytes);
  json.field("blocked_s", seconds(static_cast<double>(all.ns))).field("failed", all.failed);
  json.field("stock_blocked_s_estimate", static_cast<double>(stock_ns_[d]) / 1e9);
  json.field("carried_copies", carried.count).field("carried_bytes", carried.bytes);
  json.field("passed_copies", all.count - carried.count);
  json.field("passed_bytes", all.bytes - carried.bytes);
  json.field("carrying_s", seconds(static_cast<double>(carried_[d].ns)));
  json.begin_object("messages");
  for (size_t a = 0; a < kAnswers; ++a) {
    const Tally& tally = messages_[d][a];
    json.begin_object(to_string(static_cast<Answer>(a))).field("count", tally.count.load());
    json.field("bytes", tally.bytes.load());
    json.field("busy_s", seconds(static_cast<double>(tally.ns))).end_object();
  }
  json.end_object().end_object();
}

// One entry for every kind and route there was.
void Stats::write_copies(JsonWriter& json) const {
  json.begin_array("copies");
  for (size_t kind = 0; kind < 8 * kRoutes; ++kind) {
    const size_t route = kind % kRoutes;
    const bool pinned = (kind / kRoutes & 1) != 0;
    const bool asynchronous = (kind / kRoutes & 2) != 0;
    const Direction direction = kDirections[kind / kRoutes >> 2];
    const Tally& tally = copies_[static_cast<size_t>(direction)][asynchronous][pinned][route];
    if (tally.count == 0) continue;
    json.begin_object().field("direction", to_string(direction));
    json.field("call", asynchronous ? "async" : "sync");
    json.field("memory", pinned ? "pinned" : "pageable");
    json.field("route", to_string(static_cast<Route>(route)));
    json.field("copies", tally.count.load()).field("bytes", tally.bytes.load());
    json.field("failed", tally.failed.load());
    json.field("blocked_s", seconds(static_cast<double>(tally.ns))).end_object();
  }
  json.end_array();
}

std::vector<Ahead::Stats> Stats::lanes() const {
  return options_.lanes != nullptr ? options_.lanes() : std::vector<Ahead::Stats>();
}

// Bytes as the driver's calls were answered; and of each lane what the core counted.
void Stats::write_speculation(JsonWriter& json) const {
  json.begin_object("speculation").field("hit_rate", hit_rate());
  json.field("hit_bytes", messages_[0][static_cast<size_t>(Answer::slot)].bytes.load());
  json.begin_array("lanes");
  for (const Ahead::Stats& lane : lanes()) {
    const Pipeline::Stats& core = lane.pipeline;
    json.begin_object().field("leader", lane.leader);
    json.field("requests", core.requests).field("hits", core.hits);
    json.field("messages", core.messages).field("messages_ahead", lane.answered);
    json.field("sealed_ahead", core.sealed_ahead);
    json.field("voided", core.voided).field("pads", core.padded);
    json.field("relinquished", core.relinquished).field("holds", core.held);
    json.field("resealed", core.resealed).field("slot_bytes_peak", lane.slot_bytes_peak);
    json.end_object();
  }
  json.end_array().end_object();
}

std::string Stats::copy_line(Direction direction) const {
  const Sum all = copies_of(direction);
  const Sum carried = carried_of(direction);
  return concat(
      "  ", padded(direction == Direction::to_device ? "to device" : "to host", 11),
      indented(grouped(all.count), 9), indented(bytes_text(all.bytes), 12),
      indented(percent_of(static_cast<double>(carried.bytes), static_cast<double>(all.bytes)), 10),
      indented(time_text(seconds(static_cast<double>(all.ns))), 16),
      indented(time_text(static_cast<double>(stock_ns_[static_cast<size_t>(direction)]) / 1e9), 18),
      "\n");
}

std::string Stats::summary() const {
  const double ran = seconds(static_cast<double>(last_ns_ - first_ns_));
  std::string out = concat("sealane: ", time_text(ran), " from the first GPU call to the last");
  if (options_.dilation != nullptr && options_.dilation() > 0) out += " (device time)";
  out += "\n  direction     copies       bytes   carried  callers waited  stock, estimated\n";
  for (const Direction direction : kDirections) out += copy_line(direction);
  out += concat("  waiting calls ", grouped(waits_.count), ", ",
                time_text(seconds(static_cast<double>(waits_.ns))), "; own threads' CPU ",
                time_text(own_cpu_seconds()), "\n");
  for (const Ahead::Stats& lane : lanes()) {
    out +=
        concat("  foreseen      ", grouped(lane.pipeline.hits), " of ",
               grouped(lane.pipeline.requests), " bulk copies", lane.leader.empty() ? "" : ", by ",
               lane.leader, "; ", grouped(lane.pipeline.voided), " records wiped\n");
  }
  Sum failed = copies_of(Direction::to_device);
  failed.failed += copies_of(Direction::to_host).failed;
  if (failed.failed > 0) out += concat("  failed copies ", grouped(failed.failed), "\n");
  for (const auto& note : notes_) {
    if (note != nullptr) out += concat("  note: ", note.load(), "\n");
  }
  return out;
}

}  // namespace sealane::serve
