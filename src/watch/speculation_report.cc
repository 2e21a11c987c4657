// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "watch/speculation_report.h"

#include <algorithm>

#include "base/figures.h"

namespace sealane::serve {
namespace {

size_t shown(const std::vector<SpeculationStats>& lanes) {
  return std::min(lanes.size(), Counts::kLanesMax);
}

void write_voided(JsonWriter& json, const Pipeline::Stats& pipeline) {
  json.begin_object("voided");
  for (size_t i = 0; i < kVoidReasons; ++i) {
    json.field(to_string(static_cast<VoidReason>(i)), pipeline.voided_for[i]);
  }
  json.end_object();
}

void write_predictors(JsonWriter& json, const std::vector<PredictorScore>& predictors) {
  json.begin_array("predictors");
  for (const PredictorScore& one : predictors) {
    json.begin_object().field("name", one.name).field("hits", one.hits);
    json.field("misses", one.misses).field("recent_hit_rate", one.recent_hit_rate()).end_object();
  }
  json.end_array();
}

void write_lane(JsonWriter& json, const LaneCounts& counts, const SpeculationStats& lane) {
  const Pipeline::Stats& pipeline = counts.pipeline;
  json.begin_object().field("device", lane.device).field("lane", lane.lane);
  json.field("leader", lane.leader);
  json.field("requests", pipeline.requests).field("hits", pipeline.hits);
  json.field("misses", counts.misses()).field("foreseen_rate", counts.foreseen_rate());
  json.field("messages", pipeline.messages).field("messages_ahead", counts.messages_ahead);
  json.field("hit_rate", counts.hit_rate()).field("guesses", pipeline.guesses);
  json.field("relinquished", pipeline.relinquished).field("sealed_ahead", pipeline.sealed_ahead);
  json.field("resealed", pipeline.resealed).field("pads", pipeline.padded);
  json.field("holds", pipeline.held);
  write_voided(json, pipeline);
  json.field("slot_bytes", lane.slot_bytes).field("slot_bytes_peak", lane.slot_bytes_peak);
  write_predictors(json, lane.predictors);
  json.end_object();
}

// "voided 12 slots (stale 3, passed 9)"
std::string voided_text(const Pipeline::Stats& pipeline) {
  std::string out = concat("voided ", grouped(pipeline.voided), " slots");
  const char* separator = " (";
  for (size_t i = 0; i < kVoidReasons; ++i) {
    if (pipeline.voided_for[i] == 0) continue;
    out += concat(separator, to_string(static_cast<VoidReason>(i)), " ",
                  grouped(pipeline.voided_for[i]));
    separator = ", ";
  }
  return pipeline.voided == 0 ? out : out + ")";
}

std::string hits_text(const LaneCounts& counts) {
  return concat(grouped(counts.pipeline.hits), " of ", grouped(counts.pipeline.requests),
                " bulk copies foreseen, ",
                percent_of(static_cast<double>(counts.messages_ahead),
                           static_cast<double>(counts.pipeline.messages)),
                " of their messages sealed ahead");
}

}  // namespace

void write_speculation(JsonWriter& json, const Counts& counts,
                       const std::vector<SpeculationStats>& lanes) {
  const LaneCounts sum = counts.lane_sum();
  json.begin_object("speculation").field("hit_rate", counts.hit_rate());
  json.field("hit_bytes", counts.messages[0][static_cast<size_t>(Answer::slot)].bytes);
  json.field("requests", sum.pipeline.requests).field("hits", sum.pipeline.hits);
  json.field("misses", sum.misses()).field("foreseen_rate", sum.foreseen_rate());
  json.begin_array("lanes");
  for (size_t i = 0; i < shown(lanes); ++i) write_lane(json, counts.lanes[i], lanes[i]);
  json.end_array().end_object();
}

std::string speculation_lines(const Counts& whole, const std::optional<Counts>& profiled,
                              const std::vector<SpeculationStats>& lanes) {
  std::string out;
  for (size_t i = 0; i < shown(lanes); ++i) {
    const LaneCounts& counts = whole.lanes[i];
    const SpeculationStats& lane = lanes[i];
    if (counts.pipeline.requests == 0) continue;
    const auto add = [&](size_t indent, const std::string& words) {
      out += std::string(indent, ' ') + wrapped(words, indent);
    };
    add(2, concat("sealing ahead on lane ", lane.lane, " of GPU ", lane.device, ": ",
                  hits_text(counts)));
    if (profiled) add(4, concat("profiled: ", hits_text(profiled->lanes[i])));
    add(4, concat(lane.leader.empty() ? "no predictor" : lane.leader, " leads; ",
                  voided_text(counts.pipeline), ", ", grouped(counts.pipeline.padded), " pads, ",
                  grouped(counts.pipeline.held), " holds, at most ",
                  bytes_text(lane.slot_bytes_peak), " in slots"));
  }
  return out;
}

}  // namespace sealane::serve
