// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One line of a trace, read and written. The words of a line:
//
//   verb [object] operands... tTHREAD [+THINK_NS] [@TIME_NS]

#include <array>
#include <charconv>

#include "base/text.h"
#include "workload/trace.h"

namespace sealane::workload {
namespace {

constexpr int64_t kNanosecondsMax = 1'000'000'000'000'000'000;  // 31 years

// ---- Words ----

template <typename Enum>
struct Word {
  std::string_view text;
  Enum value;
};

constexpr std::array kStreamKinds = {Word<StreamKind>{"legacy", StreamKind::legacy},
                                     Word<StreamKind>{"blocking", StreamKind::blocking},
                                     Word<StreamKind>{"nonblocking", StreamKind::non_blocking}};
constexpr std::array kMemoryKinds = {Word<MemoryKind>{"pageable", MemoryKind::pageable},
                                     Word<MemoryKind>{"pinned", MemoryKind::pinned},
                                     Word<MemoryKind>{"managed", MemoryKind::managed}};
constexpr std::array kCallKinds = {Word<CallKind>{"sync", CallKind::sync},
                                   Word<CallKind>{"async", CallKind::async}};

constexpr std::array kWorkKinds = {Word<WorkKind>{"host-function", WorkKind::host_function},
                                   Word<WorkKind>{"device-write", WorkKind::device_write}};

template <typename Words, typename Enum>
std::string_view word_of(const Words& words, Enum value) {
  for (const auto& word : words) {
    if (word.value == value) return word.text;
  }
  SEALANE_CHECK(false, "an enumerator without a word");
}

// ---- Reading ----

// Takes a line apart word by word. The first mistake sticks; the caller looks once, at the end.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}

  bool failed() const { return !mistake_.empty(); }
  const std::string& mistake() const { return mistake_; }

  void expect(std::string what) {
    if (mistake_.empty()) mistake_ = std::move(what);
  }

  std::string_view word() {
    skip_spaces();
    const size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view found = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return found;
  }

  bool at_end() {
    skip_spaces();
    return rest_.empty();
  }

  template <typename Id>
  Id id(char letter, std::string_view meaning) {
    const std::string_view text = word();
    uint32_t value = 0;
    if (text.empty() || text[0] != letter || !parse(text.substr(1), 10, value)) {
      expect(concat("expected a ", meaning, " such as ", letter, "1, not '", shown(text), "'"));
    }
    return Id{value};
  }
  ContextId context() { return id<ContextId>('c', "context"); }
  StreamId stream() { return id<StreamId>('s', "stream"); }
  EventId event() { return id<EventId>('e', "event"); }
  ThreadId thread() { return id<ThreadId>('t', "thread"); }

  uint64_t address() {
    const std::string_view text = word();
    uint64_t value = 0;
    if (!text.starts_with("0x") || !parse(text.substr(2), 16, value)) {
      expect(concat("expected an address such as 0x7f00, not '", shown(text), "'"));
    }
    return value;
  }

  uint64_t bytes() {
    const std::string_view text = word();
    uint64_t value = 0;
    if (!parse(text, 10, value)) {
      expect(concat("expected a number of bytes, not '", shown(text), "'"));
    }
    return value;
  }

  // Of what is copied, read or written; what is allocated may be reserved addresses alone.
  uint64_t touched_bytes() {
    const uint64_t value = bytes();
    if (value > kRangeBytesMax) expect(concat("an amount beyond all measure, ", value, " bytes"));
    return value;
  }

  Duration nanoseconds(std::string_view text) {
    int64_t value = 0;
    if (!parse(text, 10, value) || value < 0 || value > kNanosecondsMax) {
      expect(concat("expected nanoseconds, not '", shown(text), "'"));
    }
    return Duration(value);
  }

  template <typename Choices>
  auto one_of(const Choices& choices) {
    const std::string_view text = word();
    for (const auto& choice : choices) {
      if (choice.text == text) return choice.value;
    }
    std::string names;
    for (const auto& choice : choices) names += concat(names.empty() ? "" : ", ", choice.text);
    expect(concat("expected one of ", names, ", not '", shown(text), "'"));
    return choices[0].value;
  }

  static std::string shown(std::string_view text) {
    constexpr size_t kShown = 40;
    std::string clean(text.substr(0, kShown));
    for (char& c : clean) {
      if (c < ' ' || c > '~') c = '?';
    }
    return clean;
  }

 private:
  void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }

  template <typename Int>
  static bool parse(std::string_view text, int base, Int& value) {
    if (text.empty() || text[0] == '-') return false;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    return failed == std::errc() && end == text.data() + text.size();
  }

  std::string_view rest_;
  std::string mistake_;
};

Action unknown(Words& words, std::string_view text) {
  words.expect(concat("unknown word '", Words::shown(text), "'"));
  return {};
}

Action parse_create(Words& words) {
  const std::string_view what = words.word();
  if (what == "context") return CreateContext{words.context()};
  if (what == "event") return CreateEvent{words.event()};
  if (what != "stream") return unknown(words, what);
  CreateStream made{};
  made.stream = words.stream();
  made.context = words.context();
  made.kind = words.one_of(kStreamKinds);
  return made;
}

Action parse_destroy(Words& words) {
  const std::string_view what = words.word();
  if (what == "context") return DestroyContext{words.context()};
  if (what == "stream") return DestroyStream{words.stream()};
  if (what == "event") return DestroyEvent{words.event()};
  return unknown(words, what);
}

Range parse_range(Words& words) {
  const uint64_t address = words.address();
  return {address, words.bytes()};
}

Range parse_touched(Words& words) {
  const uint64_t address = words.address();
  return {address, words.touched_bytes()};
}

Action parse_alloc(Words& words) {
  const std::string_view where = words.word();
  if (where == "device") {
    const ContextId context = words.context();
    const Range range = parse_range(words);
    return AllocateDevice{context, range.address, range.bytes};
  }
  if (where != "host") return unknown(words, where);
  const MemoryKind memory = words.one_of(kMemoryKinds);
  return AllocateHost{parse_range(words), memory};
}

Action parse_free(Words& words) {
  const std::string_view where = words.word();
  if (where == "device") return FreeDevice{words.address()};
  if (where == "host") return FreeHost{words.address()};
  return unknown(words, where);
}

// Destination first, as CUDA has it.
Action parse_copy(Words& words) {
  const std::string_view way = words.word();
  const bool known = way == "h2d" || way == "d2h" || way == "d2d";
  if (!known) return unknown(words, way);
  const StreamId stream = words.stream();
  const uint64_t to = words.address();
  const uint64_t from = words.address();
  const uint64_t bytes = words.touched_bytes();
  if (way == "d2d") return CopyOnDevice{stream, to, from, bytes};
  const MemoryKind memory = words.one_of(kMemoryKinds);
  const CallKind call = words.one_of(kCallKinds);
  if (way == "h2d") return Copy{stream, Direction::to_device, {from, bytes}, to, memory, call};
  return Copy{stream, Direction::to_host, {to, bytes}, from, memory, call};
}

Action parse_sync(Words& words) {
  const std::string_view what = words.word();
  if (what == "event") return SyncEvent{words.event()};
  if (what == "stream") return SyncStream{words.stream()};
  if (what == "context") return SyncContext{words.context()};
  return unknown(words, what);
}

Action parse_query(Words& words) {
  const std::string_view what = words.word();
  if (what == "event") return QueryEvent{words.event()};
  if (what == "stream") return QueryStream{words.stream()};
  return unknown(words, what);
}

Action parse_work(Words& words) {
  StreamWork work{};
  work.stream = words.stream();
  work.kind = words.one_of(kWorkKinds);
  work.host = parse_touched(words);
  return work;
}

Action parse_capture(Words& words) {
  const std::string_view what = words.word();
  if (what != "begin" && what != "end") return unknown(words, what);
  return CaptureStream{words.stream(), what == "begin"};
}

uint32_t parse_number(Words& words) {
  const uint64_t number = words.bytes();
  if (number > UINT32_MAX) words.expect("expected a smaller number");
  return static_cast<uint32_t>(number);
}

Action parse_action(Words& words) {
  const std::string_view verb = words.word();
  if (verb == "copy") return parse_copy(words);
  if (verb == "launch") {
    const StreamId stream = words.stream();
    return Launch{stream, words.nanoseconds(words.word())};
  }
  if (verb == "write") return WriteHost{parse_touched(words)};
  if (verb == "read") return ReadHost{parse_touched(words)};
  if (verb == "record") {
    const EventId event = words.event();
    return RecordEvent{event, words.stream()};
  }
  if (verb == "wait") {
    const StreamId stream = words.stream();
    return WaitEvent{stream, words.event()};
  }
  if (verb == "work") return parse_work(words);
  if (verb == "hold") {
    const StreamId stream = words.stream();
    return HoldStream{stream, parse_number(words)};
  }
  if (verb == "raise") return RaiseFlag{parse_number(words)};
  if (verb == "batch") return BatchCopies{parse_number(words)};
  if (verb == "capture") return parse_capture(words);
  if (verb == "sync") return parse_sync(words);
  if (verb == "query") return parse_query(words);
  if (verb == "alloc") return parse_alloc(words);
  if (verb == "free") return parse_free(words);
  if (verb == "create") return parse_create(words);
  if (verb == "destroy") return parse_destroy(words);
  return unknown(words, verb);
}

// ---- Writing ----

void append_hex(std::string& out, uint64_t value) {
  char digits[16];
  out += "0x";
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value, 16).ptr);
}

// What a line is made of, so that the writers below read like the format.
struct Hex {
  uint64_t value;
};
void append(std::string& out, std::string_view text) { out += text; }
void append(std::string& out, Hex address) { append_hex(out, address.value); }
void append(std::string& out, uint64_t number) { append_text(out, number); }
void append(std::string& out, ContextId id) { append_text(out += 'c', static_cast<uint32_t>(id)); }
void append(std::string& out, StreamId id) { append_text(out += 's', static_cast<uint32_t>(id)); }
void append(std::string& out, EventId id) { append_text(out += 'e', static_cast<uint32_t>(id)); }

template <typename First, typename... Rest>
void line(std::string& out, const First& first, const Rest&... rest) {
  append(out, first);
  ((out += ' ', append(out, rest)), ...);
}

void write(std::string& out, const CreateContext& a) { line(out, "create context", a.context); }
void write(std::string& out, const DestroyContext& a) { line(out, "destroy context", a.context); }
void write(std::string& out, const CreateStream& a) {
  line(out, "create stream", a.stream, a.context, word_of(kStreamKinds, a.kind));
}
void write(std::string& out, const DestroyStream& a) { line(out, "destroy stream", a.stream); }
void write(std::string& out, const CreateEvent& a) { line(out, "create event", a.event); }
void write(std::string& out, const DestroyEvent& a) { line(out, "destroy event", a.event); }
void write(std::string& out, const AllocateHost& a) {
  line(out, "alloc host", word_of(kMemoryKinds, a.memory), Hex{a.range.address}, a.range.bytes);
}
void write(std::string& out, const FreeHost& a) { line(out, "free host", Hex{a.address}); }
void write(std::string& out, const AllocateDevice& a) {
  line(out, "alloc device", a.context, Hex{a.address}, a.bytes);
}
void write(std::string& out, const FreeDevice& a) { line(out, "free device", Hex{a.address}); }
void write(std::string& out, const WriteHost& a) {
  line(out, "write", Hex{a.range.address}, a.range.bytes);
}
void write(std::string& out, const ReadHost& a) {
  line(out, "read", Hex{a.range.address}, a.range.bytes);
}
void write(std::string& out, const Copy& a) {
  const bool to_device = a.direction == Direction::to_device;
  const Hex host{a.host.address};
  const Hex device{a.device};
  line(out, to_device ? "copy h2d" : "copy d2h", a.stream, to_device ? device : host,
       to_device ? host : device, a.host.bytes, word_of(kMemoryKinds, a.memory),
       word_of(kCallKinds, a.call));
}
void write(std::string& out, const CopyOnDevice& a) {
  line(out, "copy d2d", a.stream, Hex{a.to}, Hex{a.from}, a.bytes);
}
void write(std::string& out, const Launch& a) {
  line(out, "launch", a.stream, static_cast<uint64_t>(a.run_time.count()));
}
void write(std::string& out, const RecordEvent& a) { line(out, "record", a.event, a.stream); }
void write(std::string& out, const WaitEvent& a) { line(out, "wait", a.stream, a.event); }
void write(std::string& out, const SyncEvent& a) { line(out, "sync event", a.event); }
void write(std::string& out, const SyncStream& a) { line(out, "sync stream", a.stream); }
void write(std::string& out, const SyncContext& a) { line(out, "sync context", a.context); }
void write(std::string& out, const QueryEvent& a) { line(out, "query event", a.event); }
void write(std::string& out, const QueryStream& a) { line(out, "query stream", a.stream); }
void write(std::string& out, const StreamWork& a) {
  line(out, "work", a.stream, word_of(kWorkKinds, a.kind), Hex{a.host.address}, a.host.bytes);
}
void write(std::string& out, const HoldStream& a) { line(out, "hold", a.stream, uint64_t{a.flag}); }
void write(std::string& out, const RaiseFlag& a) { line(out, "raise", uint64_t{a.flag}); }
void write(std::string& out, const BatchCopies& a) { line(out, "batch", uint64_t{a.copies}); }
void write(std::string& out, const CaptureStream& a) {
  line(out, "capture", a.begins ? "begin" : "end", a.stream);
}

}  // namespace

Result<Operation> parse_trace_line(std::string_view text) {
  Words words(text);
  Operation operation;
  operation.action = parse_action(words);
  operation.thread = words.thread();
  while (!words.failed() && !words.at_end()) {
    const std::string_view word = words.word();
    if (word[0] == '+' && operation.think == Duration(0) && !operation.at) {
      operation.think = words.nanoseconds(word.substr(1));
    } else if (word[0] == '@' && !operation.at) {
      operation.at = Instant(words.nanoseconds(word.substr(1)));
    } else {
      words.expect(concat("unexpected '", Words::shown(word), "' after the thread"));
    }
  }
  if (words.failed()) return usage_error(words.mistake());
  return operation;
}

std::string to_text(const Action& action) {
  std::string out;
  std::visit([&](const auto& a) { write(out, a); }, action);
  return out;
}

void append_trace_line(std::string& out, const Operation& operation) {
  std::visit([&](const auto& action) { write(out, action); }, operation.action);
  append_text(out += " t", static_cast<uint32_t>(operation.thread));
  if (operation.think != Duration(0)) append_text(out += " +", operation.think.count());
  if (operation.at) append_text(out += " @", operation.at->time_since_epoch().count());
  out += '\n';
}

}  // namespace sealane::workload
