// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What tests of the copy machine share: calls, and a machine that says what it asks for.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "base/text.h"
#include "core/copy/copies.h"

namespace sealane {

inline constexpr uint64_t kHost = 1 << 20;
inline constexpr uint64_t kDevice = uint64_t{1} << 40;
inline constexpr ErrorCode kForged = 214;

using Lines = std::vector<std::string>;

inline CopyCall copy_in(StreamKey stream, uint64_t page, uint64_t bytes = 4096) {
  CopyCall call;
  call.stream = stream;
  call.context = 1;
  call.host = {kHost + page * 4096, bytes};
  call.device_address = kDevice + page * 4096;
  call.memory = HostKind::pinned;
  return call;
}
inline CopyCall copy_out(StreamKey stream, uint64_t page, uint64_t bytes = 4096) {
  CopyCall call = copy_in(stream, page, bytes);
  call.direction = Direction::to_host;
  return call;
}

// Says in words what the machine asks for, so that a test reads like a history.
class Told {
 public:
  explicit Told(const CopiesOptions& options = {}) : copies(options) {}

  Lines ask(const CopyCall& call) { return ask(std::vector{call}); }
  Lines ask(const std::vector<CopyCall>& calls) {
    for (const CopyCall& call : calls) {
      while (const auto missing = copies.missing_thread(call)) copies.handle_thread(*missing, true);
    }
    copies.handle_copies(calls, plan, {});
    Lines lines;
    if (plan.verdict != CopyVerdict::carried) lines.push_back("passed");
    if (meanwhile) meanwhile();
    if (plan.verdict == CopyVerdict::carried) copies.handle_put(plan);
    for (const CallStep& step : plan.steps) {
      if (const auto* snapshot = std::get_if<TakeSnapshot>(&step)) {
        lines.push_back(concat("snapshot ", snapshot->copy));
      } else if (const auto* record = std::get_if<RecordEvent>(&step)) {
        lines.push_back(concat("record ", record->event));
      } else {
        const auto& gate = std::get<PutGate>(step);
        lines.push_back(concat("gate ", gate.thread, "=", gate.value));
      }
    }
    return lines;
  }
  // What the thread takes now, "" for nothing.
  std::string take(CopyThreadId thread) {
    const Crossing* crossing = copies.take(thread, {});
    if (crossing == nullptr) return "";
    std::string line = crossing->dropped ? "drop" : crossing->early ? "early" : "carry";
    for (const CopyId copy : crossing->copies) line += concat(" ", copy);
    return line;
  }
  Lines end(CopyThreadId thread, ErrorCode code = 0, ErrorCode delivery = 0) {
    std::vector<Ending> endings;
    copies.handle_crossed(thread, code, endings);
    Lines lines = said(endings);
    if (delivered) delivered();
    copies.handle_delivered(thread, endings, delivery);
    for (std::string& line : said(endings)) lines.push_back(std::move(line));
    copies.handle_ended(thread, {});
    return lines;
  }
  static Lines said(const std::vector<Ending>& endings) {
    Lines lines;
    for (const Ending& ending : endings) {
      if (const auto* wiped = std::get_if<Wipe>(&ending)) {
        lines.push_back(concat("wipe ", wiped->copy));
      } else if (const auto* deliver = std::get_if<Deliver>(&ending)) {
        lines.push_back(concat("deliver ", deliver->copy));
      } else if (const auto* failed = std::get_if<FailContext>(&ending)) {
        lines.push_back(concat("fail ", failed->context));
      } else if (const auto* gate = std::get_if<OpenGate>(&ending)) {
        lines.push_back(concat("open ", gate->thread, "=", gate->value));
      } else {
        lines.push_back(concat("give back ", std::get<GiveBack>(ending).copy));
      }
    }
    return lines;
  }

  Copies copies;
  CallPlan plan;
  std::function<void()> meanwhile;  // what happens while a call does its steps,
  std::function<void()> delivered;  // while bytes are delivered
};

inline constexpr CopyThreadId kIn = 0;
inline constexpr CopyThreadId kSecondIn = 1;
inline constexpr CopyThreadId kOut = 2;

}  // namespace sealane
