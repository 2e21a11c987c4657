// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "scenario/scenario.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "base/text.h"

namespace sealane::test {
namespace {

using workload::Action;
using Kind = ScenarioFault::Kind;
using Relation = Expectation::Relation;

constexpr std::array<std::string_view, 8> kCounters = {
    "hit", "voided", "padded", "relinquished", "held", "resealed", "coalesced", "slots"};
constexpr uint64_t kHostBase = 0x7f00'0000'0000;
constexpr uint64_t kDeviceBase = 0x10'0000'0000;
constexpr uint64_t kBufferSpacing = 1_GiB;
constexpr uint64_t kRepeatMax = 1000;
constexpr size_t kOperationsMax = 100'000;

struct Line {
  size_t number;
  std::vector<std::string> words;
};

struct Buffer {
  uint64_t host;
  uint64_t device;
  uint64_t bytes;
  MemoryKind memory = MemoryKind::pinned;
  bool allocated = false;
};

// A number with one of the given units.
struct Unit {
  std::string_view name;
  uint64_t factor;
};
constexpr std::array kSizes = {Unit{"", 1}, Unit{"K", 1_KiB}, Unit{"M", 1_MiB}};
constexpr std::array kTimes = {Unit{"ns", 1}, Unit{"us", 1'000}, Unit{"ms", 1'000'000}};

template <typename Units>
std::optional<uint64_t> parse_amount(std::string_view text, const Units& units) {
  uint64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || number > 1'000'000'000) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  for (const Unit& unit : units) {
    if (unit.name == text) return number * unit.factor;
  }
  return std::nullopt;
}

class Parser {
 public:
  explicit Parser(std::string file) : file_(std::move(file)) {
    call(workload::CreateContext{kContext});
  }

  Result<Scenario> parse(std::string_view text) {
    if (Status status = split(text); !status) return status.error();
    size_t at = 0;
    while (at < lines_.size()) {
      if (Status status = statement(at); !status) return status.error();
    }
    if (!scenario_.faults.empty() && scenario_.faults.back().before == scenario_.program.size()) {
      return usage_error(file_ + ": the last fault is followed by nothing that could suffer");
    }
    if (scenario_.expectations.empty()) return usage_error(file_ + ": expects nothing");
    if (scenario_.title.empty()) return usage_error(file_ + ": has no title (a first comment)");
    return std::move(scenario_);
  }

 private:
  static constexpr workload::ContextId kContext{1};

  Status split(std::string_view text) {
    std::istringstream in{std::string(text)};
    std::string line;
    for (size_t number = 1; std::getline(in, line); ++number) {
      if (line.starts_with("# ") && scenario_.title.empty()) scenario_.title = line.substr(2);
      std::istringstream words(line.substr(0, line.find('#')));
      Line found{number, {}};
      for (std::string word; words >> word;) found.words.push_back(word);
      if (!found.words.empty()) lines_.push_back(std::move(found));
    }
    return {};
  }

  // Carries out the statement at lines_[at] and moves on behind it.
  Status statement(size_t& at) {
    line_ = &lines_[at];
    next_ = 1;
    if (scenario_.program.size() > kOperationsMax) return fail("the scenario is too long");
    if (line_->words[0] == "repeat") return repeat(at);
    ++at;
    if (Status status = simple(line_->words[0]); !status) return status;
    if (next_ < line_->words.size()) return fail("did not expect '" + line_->words[next_] + "'");
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
      mark_ = scenario_.program.size();
      return {};
    }
    if (verb == "expect") return expect();
    if (is_fault(verb)) return fault(verb);
    return set_up(verb);
  }

  Status repeat(size_t& at) {
    const auto count = number();
    if (!count || *count > kRepeatMax) return fail("expected 'repeat N'");
    size_t depth = 1;
    size_t end = at + 1;
    for (; end < lines_.size(); ++end) {
      if (lines_[end].words[0] == "repeat") ++depth;
      if (lines_[end].words[0] == "end" && --depth == 0) break;
    }
    if (end == lines_.size()) return fail("this 'repeat' has no 'end'");
    const size_t body = at + 1;
    for (uint64_t i = 0; i < *count; ++i) {
      for (size_t inner = body; inner < end;) {
        if (Status status = statement(inner); !status) return status;
      }
    }
    at = end + 1;
    return {};
  }

  // ---- setup ----

  Status set_up(const std::string& verb) {
    ScenarioSetup& setup = scenario_.setup;
    const std::string value = word();
    const auto amount = parse_amount(value, kSizes);
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
    if (scenario_.program.size() > 1) return fail("the setup comes before the program");
    return {};
  }

  // ---- the program ----

  Status declare() {
    const std::string name = word();
    const auto bytes = size();
    if (!bytes) return fail("expected 'buffer NAME SIZE [pinned|pageable]'");
    const std::string memory = word();
    if (buffers_.contains(name)) return fail("there is a buffer '" + name + "' already");
    Buffer& made = add_buffer(name, *bytes);
    if (memory == "pageable") made.memory = MemoryKind::pageable;
    if (memory != "pageable" && memory != "pinned" && !memory.empty()) {
      return fail("expected pinned or pageable, not '" + memory + "'");
    }
    return {};
  }

  Status copy() {
    const std::string way = word();
    if (way != "h2d" && way != "d2h") return fail("expected h2d or d2h, not '" + way + "'");
    const auto range = part();
    if (!range) return range.error();
    const auto stream = on_stream();
    if (!stream) return stream.error();
    const bool sync = take("sync");
    workload::Copy made{};
    made.stream = *stream;
    made.direction = way == "h2d" ? Direction::to_device : Direction::to_host;
    made.host = *range;
    made.device = range->address - kHostBase + kDeviceBase;
    made.memory = memory_of(range->address);
    made.call = sync ? workload::CallKind::sync : workload::CallKind::async;
    call(made);
    return {};
  }

  Status access(bool write) {
    const auto range = part();
    if (!range) return range.error();
    if (write) {
      call(workload::WriteHost{*range});
    } else {
      call(workload::ReadHost{*range});
    }
    return {};
  }

  Status free_buffer() {
    const std::string name = word();
    const auto found = buffers_.find(name);
    if (found == buffers_.end() || !found->second.allocated) {
      return fail("there is no buffer '" + name + "' to free");
    }
    found->second.allocated = false;
    call(workload::FreeHost{found->second.host});
    return {};
  }

  Status kernel() {
    const auto time = duration();
    if (!time) return fail("expected 'kernel TIME', as in 'kernel 2ms'");
    const auto stream = on_stream();
    if (!stream) return stream.error();
    call(workload::Launch{*stream, *time});
    return {};
  }

  Status think() {
    const auto time = duration();
    if (!time) return fail("expected 'think TIME', as in 'think 2ms'");
    think_ += *time;
    return {};
  }

  Status thread() {
    const auto id = number();
    if (!id) return fail("expected 'thread N'");
    thread_ = workload::ThreadId{static_cast<uint32_t>(*id)};
    return {};
  }

  Status event(bool record) {
    const std::string name = word();
    if (name.empty()) return fail("expected the name of an event");
    const auto stream = on_stream();
    if (!stream) return stream.error();
    const workload::EventId id = event_id(name);
    if (record) {
      call(workload::RecordEvent{id, *stream});
    } else {
      call(workload::WaitEvent{*stream, id});
    }
    return {};
  }

  Status sync() {
    if (next_ == line_->words.size()) {
      call(workload::SyncContext{kContext});
    } else if (take("event")) {
      const std::string name = word();
      if (!events_.contains(name)) return fail("nothing records an event '" + name + "'");
      call(workload::SyncEvent{events_.at(name)});
    } else {
      const auto stream = stream_id(word());
      if (!stream) return stream.error();
      call(workload::SyncStream{*stream});
    }
    return {};
  }

  // ---- what goes wrong, what must be seen ----

  static bool is_fault(const std::string& verb) {
    return verb == "rotate" || verb == "driver" || verb == "stall" || verb == "bus";
  }

  Status fault(const std::string& verb) {
    ScenarioFault made{Kind::rotate, scenario_.program.size()};
    if (verb == "driver") {
      made.kind = Kind::driver_message;
      if (!take("message")) return fail("expected 'driver message'");
    } else if (verb == "stall") {
      made.kind = Kind::stall;
      const bool workers = take("workers");
      const auto time = duration();
      if (!workers || !time) return fail("expected 'stall workers TIME'");
      made.stall = *time;
    } else if (verb == "bus") {
      const std::map<std::string, Kind> actions = {{"flip", Kind::flip},
                                                   {"drop", Kind::drop},
                                                   {"repeat", Kind::repeat},
                                                   {"swap", Kind::swap}};
      const auto found = actions.find(word());
      if (found == actions.end()) return fail("expected 'bus flip|drop|repeat|swap'");
      made.kind = found->second;
    }
    scenario_.faults.push_back(made);
    return {};
  }

  Status expect() {
    Expectation made{line_->number, scenario_.program.size(), mark_, word()};
    if (made.what == "as") {
      if (!take("fast") || !take("as") || !take("stock")) {
        return fail("expected 'expect as fast as stock'");
      }
      made.what = "as-fast-as-stock";
    } else if (made.what != "ok" && made.what != "error") {
      if (std::find(kCounters.begin(), kCounters.end(), made.what) == kCounters.end()) {
        return fail("nothing is counted as '" + made.what + "'");
      }
      if (take("at")) {
        const std::string side = word();
        if (side != "least" && side != "most") return fail("expected 'at least' or 'at most'");
        made.relation = side == "least" ? Relation::at_least : Relation::at_most;
      }
      const auto value = size();
      if (!value) return fail("expected a number after '" + made.what + "'");
      made.value = *value;
    }
    scenario_.expectations.push_back(std::move(made));
    return {};
  }

  // ---- words of a line ----

  std::string word() { return next_ < line_->words.size() ? line_->words[next_++] : ""; }

  bool take(std::string_view expected) {
    if (next_ == line_->words.size() || line_->words[next_] != expected) return false;
    ++next_;
    return true;
  }

  std::optional<uint64_t> number() { return parse_amount(word(), std::array{Unit{"", 1}}); }
  std::optional<uint64_t> size() { return parse_amount(word(), kSizes); }
  std::optional<Duration> duration() {
    const auto time = parse_amount(word(), kTimes);
    if (!time) return std::nullopt;
    return Duration(static_cast<int64_t>(*time));
  }

  // NAME [SIZE] [at OFFSET]; a new name needs a size and becomes a buffer.
  Result<Range> part() {
    const std::string name = word();
    std::optional<uint64_t> bytes;
    if (next_ < line_->words.size() && (bytes = parse_amount(line_->words[next_], kSizes))) ++next_;
    uint64_t offset = 0;
    if (take("at")) {
      const auto given = size();
      if (!given) return fail("expected an offset after 'at'");
      offset = *given;
    }
    if (!buffers_.contains(name)) {
      if (name.empty() || !bytes) return fail("'" + name + "' is new: say how large it is");
      add_buffer(name, offset + *bytes);
    }
    Buffer& buffer = buffers_.at(name);
    if (!buffer.allocated) allocate(buffer);
    const uint64_t length = bytes.value_or(buffer.bytes - std::min(offset, buffer.bytes));
    if (offset + length > buffer.bytes) return fail("that is beyond the end of '" + name + "'");
    return Range{buffer.host + offset, length};
  }

  Result<workload::StreamId> on_stream() {
    if (!take("on")) return stream_id("s1");
    return stream_id(word());
  }

  Result<workload::StreamId> stream_id(const std::string& name) {
    if (name.size() < 2 || name[0] != 's') return fail("expected a stream such as s1");
    const auto [found, fresh] =
        streams_.try_emplace(name, workload::StreamId{static_cast<uint32_t>(streams_.size() + 1)});
    if (fresh) {
      call(workload::CreateStream{found->second, kContext, workload::StreamKind::non_blocking});
    }
    return found->second;
  }

  workload::EventId event_id(const std::string& name) {
    const auto [found, fresh] =
        events_.try_emplace(name, workload::EventId{static_cast<uint32_t>(events_.size() + 1)});
    if (fresh) call(workload::CreateEvent{found->second});
    return found->second;
  }

  Buffer& add_buffer(const std::string& name, uint64_t bytes) {
    const uint64_t offset = buffers_.size() * kBufferSpacing;
    return buffers_[name] = Buffer{kHostBase + offset, kDeviceBase + offset, bytes};
  }

  void allocate(Buffer& buffer) {
    buffer.allocated = true;
    call(workload::AllocateHost{{buffer.host, buffer.bytes}, buffer.memory});
    if (device_allocated_.insert(buffer.device).second) {
      call(workload::AllocateDevice{kContext, buffer.device, buffer.bytes});
    }
  }

  MemoryKind memory_of(uint64_t address) const {
    for (const auto& [name, buffer] : buffers_) {
      if (address >= buffer.host && address - buffer.host < kBufferSpacing) return buffer.memory;
    }
    return MemoryKind::pinned;
  }

  void call(Action action) {
    workload::Operation operation;
    operation.thread = thread_;
    operation.think = std::exchange(think_, Duration(0));
    operation.action = std::move(action);
    scenario_.program.push_back(std::move(operation));
  }

  Error fail(const std::string& what) const {
    return usage_error(concat(file_, ":", line_->number, ": ", what));
  }

  std::string file_;
  Scenario scenario_;
  std::vector<Line> lines_;
  const Line* line_ = nullptr;
  size_t next_ = 0;  // the next word of the line
  size_t mark_ = 0;
  workload::ThreadId thread_{1};
  Duration think_{0};
  std::map<std::string, Buffer> buffers_;
  std::map<std::string, workload::StreamId> streams_;
  std::map<std::string, workload::EventId> events_;
  std::set<uint64_t> device_allocated_;
};

}  // namespace

Scenario Scenario::prefix(size_t operations) const {
  Scenario result = *this;
  result.program.resize(std::min(operations, program.size()));
  std::erase_if(result.faults, [&](const ScenarioFault& f) { return f.before >= operations; });
  return result;
}

Result<Scenario> parse_scenario(std::string_view text, const std::string& file) {
  auto scenario = Parser(file).parse(text);
  if (scenario) scenario->name = std::filesystem::path(file).stem().string();
  return scenario;
}

Result<Scenario> load_scenario(const std::string& path) {
  std::ifstream file(path);
  if (!file) return usage_error(path + ": cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return parse_scenario(text.str(), path);
}

}  // namespace sealane::test
