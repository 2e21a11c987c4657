// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The language of scenario files (tests/scenarios/README.md), statement by statement.

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "base/random.h"
#include "base/text.h"
#include "scenario/program_builder.h"
#include "scenario/scenario.h"
#include "scenario/words.h"

namespace sealane::test {
namespace {

using Kind = ScenarioFault::Kind;
using Relation = Expectation::Relation;

constexpr std::array<std::string_view, 9> kCounters = {
    "hit", "ready", "voided", "padded", "relinquished", "held", "resealed", "coalesced", "slots"};
constexpr uint64_t kRepeatMax = 1000;
constexpr size_t kOperationsMax = 100'000;

class Parser {
 public:
  explicit Parser(std::string file) : file_(std::move(file)) {}

  Result<Scenario> parse(std::string_view text) {
    lines_ = split_lines(text, scenario_.title);
    size_t at = 0;
    while (at < lines_.size()) {
      if (Status status = statement(at); !status) return status.error();
    }
    if (!scenario_.faults.empty() && scenario_.faults.back().before == program_.size()) {
      return usage_error(file_ + ": the last fault is followed by nothing that could suffer");
    }
    if (scenario_.expectations.empty()) return usage_error(file_ + ": expects nothing");
    if (scenario_.title.empty()) return usage_error(file_ + ": has no title (a first comment)");
    return std::move(scenario_);
  }

 private:
  using Buffer = ProgramBuilder::Buffer;

  // A buffer, and the part of it that is meant.
  struct Part {
    Buffer* buffer;
    Range host;
  };

  // Carries out the statement at lines_[at] and moves on behind it.
  Status statement(size_t& at) {
    line_.emplace(lines_[at]);
    if (program_.size() > kOperationsMax) return fail("the scenario is too long");
    if (is_block(lines_[at])) return block(at);
    ++at;
    if (Status status = simple(line_->verb()); !status) return status;
    if (!line_->done()) return fail("did not expect '" + line_->word() + "'");
    return {};
  }

  Status simple(const std::string& verb) {
    if (verb == "buffer") return declare();
    if (verb == "copy") return copy();
    if (verb == "touch" || verb == "read") return access(verb == "touch");
    if (verb == "free") return free_buffer();
    if (verb == "kernel") return kernel();
    if (verb == "think") return think();
    if (verb == "thread") return thread();
    if (verb == "record" || verb == "wait") return event(verb == "record");
    if (verb == "sync") return sync();
    if (verb == "mark") {
      mark_ = program_.size();
      return {};
    }
    if (verb == "expect") return expect();
    if (is_fault(verb)) return fault(verb);
    return set_up(verb);
  }

  // ---- blocks ----

  static bool is_block(const Line& line) {
    return line.words[0] == "repeat" || line.words[0] == "shuffle";
  }

  // The index of the 'end' of the block that begins at lines_[begin].
  std::optional<size_t> end_of(size_t begin) const {
    size_t depth = 0;
    for (size_t at = begin; at < lines_.size(); ++at) {
      if (is_block(lines_[at])) ++depth;
      if (lines_[at].words[0] == "end" && --depth == 0) return at;
    }
    return std::nullopt;
  }

  Status block(size_t& at) {
    const std::string verb = line_->verb();
    const auto times = verb == "repeat" ? line_->number() : 1;
    if (!times || *times > kRepeatMax) return fail("expected 'repeat N'");
    if (!line_->done()) return fail("did not expect '" + line_->word() + "'");
    const auto end = end_of(at);
    if (!end) return fail("this '" + verb + "' has no 'end'");
    std::vector<size_t> inner;
    for (size_t next = at + 1; next < *end; next = end_of_statement(next)) inner.push_back(next);
    for (uint64_t i = 0; i < *times; ++i) {
      if (verb == "shuffle") shuffle(inner);
      for (size_t next : inner) {
        if (Status status = statement(next); !status) return status;
      }
    }
    at = *end + 1;
    return {};
  }

  size_t end_of_statement(size_t at) const {
    if (!is_block(lines_[at])) return at + 1;
    return end_of(at).value_or(at) + 1;
  }

  // Another order each time, and the same ones in every run.
  void shuffle(std::vector<size_t>& statements) {
    for (size_t i = statements.size(); i > 1; --i) {
      std::swap(statements[i - 1], statements[random_.below(i)]);
    }
  }

  // ---- setup ----

  Status set_up(const std::string& verb) {
    ScenarioSetup& setup = scenario_.setup;
    const std::string value = line_->word();
    const auto amount = parse_size(value);
    if (verb == "platform" && !value.empty()) {
      setup.platform = value;
    } else if (verb == "policy" && !value.empty()) {
      setup.policy = value;
    } else if (verb == "workers" && amount) {
      setup.workers = static_cast<uint32_t>(*amount);
    } else if (verb == "queues" && amount) {
      setup.queues = static_cast<uint32_t>(*amount);
    } else if (verb == "budget" && amount) {
      setup.budget_bytes = *amount;
    } else if (verb == "guards" && value == "digest") {
      setup.page_guards = false;
    } else {
      return fail("unknown statement '" + verb + " " + value + "'");
    }
    if (program_.size() > 1) return fail("the setup comes before the program");
    return {};
  }

  // ---- the program ----

  Status declare() {
    const std::string name = line_->word();
    const auto bytes = line_->size();
    if (!bytes) return fail("expected 'buffer NAME SIZE [pinned|pageable]'");
    const std::string memory = line_->word();
    if (program_.find_buffer(name) != nullptr)
      return fail("there is a buffer '" + name + "' already");
    Buffer& made = program_.add_buffer(name, *bytes);
    if (memory == "pageable") made.memory = MemoryKind::pageable;
    if (memory != "pageable" && memory != "pinned" && !memory.empty()) {
      return fail("expected pinned or pageable, not '" + memory + "'");
    }
    return {};
  }

  Status copy() {
    const std::string way = line_->word();
    if (way != "h2d" && way != "d2h") return fail("expected h2d or d2h, not '" + way + "'");
    const auto part = some_part();
    if (!part) return part.error();
    const auto stream = on_stream();
    if (!stream) return stream.error();
    const bool sync = line_->take("sync");
    workload::Copy made{};
    made.stream = *stream;
    made.direction = way == "h2d" ? Direction::to_device : Direction::to_host;
    made.host = part->host;
    made.device = part->host.address - part->buffer->host + part->buffer->device;
    made.memory = part->buffer->memory;
    made.call = sync ? workload::CallKind::sync : workload::CallKind::async;
    program_.add(made);
    return {};
  }

  Status access(bool write) {
    const auto part = some_part();
    if (!part) return part.error();
    if (write) {
      program_.add(workload::WriteHost{part->host});
    } else {
      program_.add(workload::ReadHost{part->host});
    }
    return {};
  }

  Status free_buffer() {
    const std::string name = line_->word();
    Buffer* const found = program_.find_buffer(name);
    if (found == nullptr || !found->allocated) {
      return fail("there is no buffer '" + name + "' to free");
    }
    found->allocated = false;
    program_.add(workload::FreeHost{found->host});
    return {};
  }

  Status kernel() {
    const auto time = line_->time();
    if (!time) return fail("expected 'kernel TIME', as in 'kernel 2ms'");
    const auto stream = on_stream();
    if (!stream) return stream.error();
    program_.add(workload::Launch{*stream, *time});
    return {};
  }

  Status think() {
    const auto time = line_->time();
    if (!time) return fail("expected 'think TIME', as in 'think 2ms'");
    program_.think(*time);
    return {};
  }

  Status thread() {
    const auto id = line_->number();
    if (!id) return fail("expected 'thread N'");
    program_.set_thread(workload::ThreadId{static_cast<uint32_t>(*id)});
    return {};
  }

  Status event(bool record) {
    const std::string name = line_->word();
    if (name.empty()) return fail("expected the name of an event");
    const auto stream = on_stream();
    if (!stream) return stream.error();
    const workload::EventId id = program_.event(name);
    if (record) {
      program_.add(workload::RecordEvent{id, *stream});
    } else {
      program_.add(workload::WaitEvent{*stream, id});
    }
    return {};
  }

  Status sync() {
    if (line_->done()) {
      program_.add(workload::SyncContext{ProgramBuilder::kContext});
    } else if (line_->take("event")) {
      const std::string name = line_->word();
      if (!program_.has_event(name)) return fail("nothing records an event '" + name + "'");
      program_.add(workload::SyncEvent{program_.event(name)});
    } else {
      const auto stream = some_stream(line_->word());
      if (!stream) return stream.error();
      program_.add(workload::SyncStream{*stream});
    }
    return {};
  }

  // ---- what goes wrong, what must be seen ----

  static bool is_fault(const std::string& verb) {
    return verb == "rotate" || verb == "driver" || verb == "stall" || verb == "bus";
  }

  Status fault(const std::string& verb) {
    ScenarioFault made{Kind::rotate, program_.size()};
    if (verb == "driver") {
      made.kind = Kind::driver_message;
      if (!line_->take("message")) return fail("expected 'driver message'");
    } else if (verb == "stall") {
      made.kind = Kind::stall;
      const bool workers = line_->take("workers");
      const auto time = line_->time();
      if (!workers || !time) return fail("expected 'stall workers TIME'");
      made.stall = *time;
    } else if (verb == "bus") {
      const std::map<std::string, Kind> actions = {{"flip", Kind::flip},
                                                   {"drop", Kind::drop},
                                                   {"repeat", Kind::repeat},
                                                   {"swap", Kind::swap}};
      const auto found = actions.find(line_->word());
      if (found == actions.end()) return fail("expected 'bus flip|drop|repeat|swap'");
      made.kind = found->second;
    }
    scenario_.faults.push_back(made);
    return {};
  }

  Status expect() {
    Expectation made{line_->line_number(), program_.size(), mark_};
    made.live = line_->take("live");
    if (made.live) made.since = 0;
    made.what = line_->word();
    if (made.what == "as") {
      if (!line_->take("fast") || !line_->take("as") || !line_->take("stock")) {
        return fail("expected 'expect as fast as stock'");
      }
      made.what = "as-fast-as-stock";
    } else if (made.what != "ok" && made.what != "error") {
      if (Status status = expect_counter(made); !status) return status;
    }
    scenario_.expectations.push_back(std::move(made));
    return {};
  }

  Status expect_counter(Expectation& made) {
    if (std::find(kCounters.begin(), kCounters.end(), made.what) == kCounters.end()) {
      return fail("nothing is counted as '" + made.what + "'");
    }
    if (line_->take("at")) {
      const std::string side = line_->word();
      if (side != "least" && side != "most") return fail("expected 'at least' or 'at most'");
      made.relation = side == "least" ? Relation::at_least : Relation::at_most;
    }
    const auto value = line_->size();
    if (!value) return fail("expected a number after '" + made.what + "'");
    made.value = *value;
    if (made.live && line_->take("under")) made.under = line_->word();
    return {};
  }

  // ---- things with names ----

  // NAME [SIZE] [at OFFSET]; a new name needs a size and becomes a buffer.
  Result<Part> some_part() {
    const std::string name = line_->word();
    const std::optional<uint64_t> bytes = line_->take_size();
    uint64_t offset = 0;
    if (line_->take("at")) {
      const auto given = line_->size();
      if (!given) return fail("expected an offset after 'at'");
      offset = *given;
    }
    Buffer* buffer = program_.find_buffer(name);
    if (buffer == nullptr) {
      if (name.empty() || !bytes) return fail("'" + name + "' is new: say how large it is");
      buffer = &program_.add_buffer(name, offset + *bytes);
    }
    program_.allocate(*buffer);
    const uint64_t length = bytes.value_or(buffer->bytes - std::min(offset, buffer->bytes));
    if (offset + length > buffer->bytes) return fail("that is beyond the end of '" + name + "'");
    return Part{buffer, {buffer->host + offset, length}};
  }

  Result<workload::StreamId> on_stream() {
    if (!line_->take("on")) return some_stream("s1");
    return some_stream(line_->word());
  }

  Result<workload::StreamId> some_stream(const std::string& name) {
    if (name.size() < 2 || name[0] != 's') return fail("expected a stream such as s1");
    return program_.stream(name);
  }

  Error fail(const std::string& what) const {
    return usage_error(concat(file_, ":", line_->line_number(), ": ", what));
  }

  std::string file_;
  Scenario scenario_;
  ProgramBuilder program_{scenario_.program};
  std::vector<Line> lines_;
  std::optional<Words> line_;  // the statement that is being carried out
  SeededRandom random_{1};
  size_t mark_ = 0;
};

}  // namespace

Result<Scenario> parse_scenario(std::string_view text, const std::string& file) {
  auto scenario = Parser(file).parse(text);
  if (scenario) scenario->name = std::filesystem::path(file).stem().string();
  return scenario;
}

}  // namespace sealane::test
