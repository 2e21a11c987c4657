// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/collective/execution.h"

#include <algorithm>
#include <map>

#include "base/check.h"

namespace sealane {
namespace {

// No sum on the way that could wrap.
uint64_t records_of(uint64_t bytes, uint32_t record_bytes) {
  return bytes / record_bytes + (bytes % record_bytes != 0 ? 1 : 0);
}

}  // namespace

Execution::Execution(const Schedule& schedule, uint32_t record_bytes)
    : schedule_(schedule), record_bytes_(record_bytes), states_(schedule.steps.size()) {
  active_.reserve(states_.size());
  for (size_t i = 0; i < states_.size(); ++i) {
    const Step& step = schedule_.steps[i];
    const uint64_t bytes = schedule_.blocks[step.block].bytes;
    states_[i].records = records_of(bytes, record_bytes_);
    if (schedule_.empty_records || step.phase == Phase::agreement) {
      states_[i].records = std::max<uint64_t>(states_[i].records, 1);
    }
    if (step.after >= 0) {
      SEALANE_CHECK(static_cast<size_t>(step.after) < i, "a step waits for a later one");
      states_[static_cast<size_t>(step.after)].dependent = static_cast<int32_t>(i);
    }
  }
  uint64_t records = 0;
  first_numbers_.reserve(schedule_.blocks.size());
  for (const Block& block : schedule_.blocks) {
    first_numbers_.push_back(records);
    records += records_of(block.bytes, record_bytes_);
    SEALANE_CHECK(records < kRecordNumbers, "more records than a header can number");
  }
  link_wires();
  for (uint32_t i = 0; i < states_.size(); ++i) {
    if (states_[i].unfinished_before == 0 && !states_[i].active) activate(i);
  }
}

void Execution::link_wires() {
  std::map<std::pair<uint32_t, bool>, uint32_t> last_reader;
  std::map<uint32_t, uint32_t> last_writer;
  const auto link = [&](auto& last, auto wire, uint32_t index, int32_t State::*next) {
    const auto [found, fresh] = last.try_emplace(wire, index);
    if (fresh) return;
    states_[found->second].*next = static_cast<int32_t>(index);
    ++states_[index].unfinished_before;
    found->second = index;
  };
  for (uint32_t i = 0; i < states_.size(); ++i) {
    const Step& step = schedule_.steps[i];
    if (step.from != kNobody) {
      link(last_reader, std::pair(step.from, step.from_broadcast), i, &State::next_reader);
    }
    if (step.to != kNobody) link(last_writer, step.to, i, &State::next_writer);
  }
}

Task Execution::task(uint32_t index) const {
  const State& state = states_[index];
  const uint64_t offset = state.finished * record_bytes_;
  const uint32_t block = schedule_.steps[index].block;
  const uint64_t left = schedule_.blocks[block].bytes - offset;
  return {index, state.finished, static_cast<uint32_t>(first_numbers_[block] + state.finished),
          offset, static_cast<uint32_t>(std::min<uint64_t>(left, record_bytes_))};
}

void Execution::handle_done(const Task& task) {
  State& state = states_[task.step];
  SEALANE_CHECK(task.record == state.finished, "records of a step out of order");
  ++state.finished;
  continuation_ = state.dependent;
  if (state.finished == state.records) complete(task.step);
}

void Execution::activate(uint32_t index) {
  states_[index].active = true;
  if (states_[index].records == 0) return complete(index);
  active_.push_back(index);
}

void Execution::complete(uint32_t index) {
  ++completed_;
  const auto found = std::find(active_.begin(), active_.end(), index);
  if (found != active_.end()) active_.erase(found);
  release(states_[index].next_reader);
  release(states_[index].next_writer);
}

void Execution::release(int32_t next) {
  if (next == kNone) return;
  const auto index = static_cast<uint32_t>(next);
  if (--states_[index].unfinished_before == 0) activate(index);
}

}  // namespace sealane
