// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "workload/nsys.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "workload/csv.h"
#include "workload/numbers.h"
#include "workload/total_time.h"

namespace sealane::workload {
namespace {

constexpr std::string_view kApiSuffix = "_cuda_api_trace.csv";
constexpr std::string_view kGpuSuffix = "_cuda_gpu_trace.csv";
constexpr double kNsMax = 1e15;  // eleven days: beyond that a time is not a time
constexpr size_t kRowsMax = 20'000'000;

// --- the two tables

struct Call {
  Duration start{0};
  Duration length{0};
  std::string name;
  uint64_t correlation = 0;
  uint32_t thread = 0;
};

struct Done {
  enum class Kind : uint8_t { kernel, to_device, to_host, on_device } kind = Kind::kernel;
  Duration length{0};
  uint64_t bytes = 0;
  MemoryKind memory = MemoryKind::pinned;
  uint32_t stream = 0;
  uint32_t context = 0;
};

Result<double> scale_ns(const CsvReader& csv, const CsvReader::Column& column) {
  for (const auto& [unit, ns] :
       {std::pair("ns", 1.0), {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"sec", 1e9}}) {
    if (column.unit == unit) return ns;
  }
  return csv.error(concat("a time in unknown units: '", column.unit, "'"));
}

Result<double> scale_bytes(const CsvReader& csv, const CsvReader::Column& column) {
  for (const auto& [unit, bytes] : {std::pair("B", 1.0),
                                    {"KB", 1e3},
                                    {"MB", 1e6},
                                    {"GB", 1e9},
                                    {"KiB", 1024.0},
                                    {"MiB", 1048576.0},
                                    {"GiB", 1073741824.0}}) {
    if (column.unit == unit) return bytes;
  }
  return csv.error(concat("an amount in unknown units: '", column.unit, "'"));
}

Result<Duration> time(const CsvReader& csv, const CsvReader::Column& column, double scale) {
  SEALANE_LET(const auto value, csv.number(column));
  if (value * scale > kNsMax) return csv.error("a time beyond all measure");
  return Duration(std::llround(value * scale));
}

Result<uint64_t> whole(const CsvReader& csv, const CsvReader::Column& column, double most) {
  SEALANE_LET(const auto value, csv.number(column));
  if (value > most || value != std::floor(value)) return csv.error("not a number of that kind");
  return static_cast<uint64_t>(value);
}

Result<std::vector<Call>> read_calls(CsvReader& csv) {
  SEALANE_TRY(csv.read_header());
  const auto start = csv.column("Start");
  const auto length = csv.column("Duration");
  const auto name = csv.column("Name");
  const auto correlation = csv.column("CorrID");
  const auto thread = csv.column("Tid");
  for (const auto* column : {&start, &length, &name, &correlation, &thread}) {
    if (!*column) return column->error();
  }
  const auto start_scale = scale_ns(csv, *start);
  const auto length_scale = scale_ns(csv, *length);
  if (!start_scale) return start_scale.error();
  if (!length_scale) return length_scale.error();

  std::vector<Call> calls;
  for (;;) {
    SEALANE_LET(const auto more, csv.next());
    if (!more) break;
    if (calls.size() == kRowsMax) return csv.error("more rows than can be read");
    const auto from = time(csv, *start, *start_scale);
    const auto took = time(csv, *length, *length_scale);
    const auto id = whole(csv, *correlation, 9e15);
    const auto who = whole(csv, *thread, 4e9);
    if (!from) return from.error();
    if (!took) return took.error();
    if (!id) return id.error();
    if (!who) return who.error();
    calls.push_back({*from, *took, csv.text(*name), *id, static_cast<uint32_t>(*who)});
  }
  std::stable_sort(calls.begin(), calls.end(),
                   [](const Call& a, const Call& b) { return a.start < b.start; });
  return calls;
}

// What the device did, by correlation id.
using DoneMap = std::multimap<uint64_t, Done>;

class GpuTable {
 public:
  explicit GpuTable(CsvReader& csv) : csv_(csv) {}

  Result<DoneMap> read() {
    SEALANE_TRY(find_columns());
    DoneMap all;
    for (;;) {
      SEALANE_LET(const auto more, csv_.next());
      if (!more) return all;
      if (all.size() == kRowsMax) return csv_.error("more rows than can be read");
      SEALANE_LET(const auto id, whole(csv_, correlation_, 9e15));
      SEALANE_LET(auto done, row());
      all.emplace(id, done);
    }
  }

 private:
  Status find_columns() {
    SEALANE_TRY(csv_.read_header());
    for (const auto& [name, to] : {std::pair("Duration", &length_),
                                   {"CorrId", &correlation_},
                                   {"Name", &name_},
                                   {"Bytes", &bytes_},
                                   {"SrcMemKd", &source_},
                                   {"DstMemKd", &destination_}}) {
      SEALANE_LET(*to, csv_.column(name));
    }
    throughput_ = csv_.optional_column("Throughput");
    stream_ = csv_.optional_column("Strm");
    context_ = csv_.optional_column("Ctx");
    const auto ns = scale_ns(csv_, length_);
    const auto bytes = scale_bytes(csv_, bytes_);
    if (!ns) return ns.error();
    if (!bytes) return bytes.error();
    ns_ = *ns;
    bytes_scale_ = *bytes;
    return {};
  }

  Result<Done> row() {
    Done done;
    SEALANE_LET(done.length, time(csv_, length_, ns_));
    for (const auto& [column, to] :
         {std::pair(&stream_, &done.stream), {&context_, &done.context}}) {
      if (!*column || csv_.empty(**column)) continue;
      SEALANE_LET(const auto value, whole(csv_, **column, 4e9));
      *to = static_cast<uint32_t>(value);
    }
    const std::string& name = csv_.text(name_);
    if (!name.starts_with("[CUDA memcpy")) return done;
    return copy(done, name);
  }

  Result<Done> copy(Done done, const std::string& name) {
    SEALANE_LET(done.bytes, copied_bytes(done.length));
    if (name.find("Host-to-Device") != std::string::npos) {
      done.kind = Done::Kind::to_device;
    } else if (name.find("Device-to-Host") != std::string::npos) {
      done.kind = Done::Kind::to_host;
    } else {
      done.kind = Done::Kind::on_device;
      if (csv_.text(source_) == "Managed" || csv_.text(destination_) == "Managed") {
        return csv_.error(
            "copies of managed memory within the device: this run had CC on; export one with CC "
            "off");
      }
      return done;
    }
    const auto& host = done.kind == Done::Kind::to_device ? source_ : destination_;
    if (csv_.text(host) == "Pageable") done.memory = MemoryKind::pageable;
    if (csv_.text(host) == "Managed") done.memory = MemoryKind::managed;
    return done;
  }

  // Small amounts are rounded to nothing; rate and time say what they were.
  Result<uint64_t> copied_bytes(Duration length) const {
    SEALANE_LET(const auto amount, csv_.number(bytes_));
    double bytes = amount * bytes_scale_;
    if (amount < 0.1 && throughput_ && !csv_.empty(*throughput_) && throughput_->unit == "MB/s") {
      SEALANE_LET(const auto rate, csv_.number(*throughput_));
      bytes = rate * static_cast<double>(length.count()) / 1e3;
    }
    if (bytes > static_cast<double>(kRangeBytesMax))
      return csv_.error("an amount beyond all measure");
    return static_cast<uint64_t>(std::llround(bytes));
  }

  CsvReader& csv_;
  CsvReader::Column length_, correlation_, name_, bytes_, source_, destination_;
  std::optional<CsvReader::Column> throughput_, stream_, context_;
  double ns_ = 1;
  double bytes_scale_ = 1;
};

// --- the program

bool contains(const std::string& name, std::string_view part) {
  return name.find(part) != std::string::npos;
}

// What is before the first of these is start-up.
bool begins_work(const Call& call) {
  return contains(call.name, "Memcpy") || contains(call.name, "Launch");
}

// When the device was done with everything.
Result<Duration> latest_end(CsvReader& csv) {
  SEALANE_TRY(csv.read_header());
  const auto start = csv.column("Start");
  const auto length = csv.column("Duration");
  if (!start) return start.error();
  if (!length) return length.error();
  const auto start_scale = scale_ns(csv, *start);
  const auto length_scale = scale_ns(csv, *length);
  if (!start_scale) return start_scale.error();
  if (!length_scale) return length_scale.error();
  Duration latest{0};
  for (;;) {
    SEALANE_LET(const auto more, csv.next());
    if (!more) return latest;
    const auto from = time(csv, *start, *start_scale);
    const auto took = time(csv, *length, *length_scale);
    if (!from) return from.error();
    if (!took) return took.error();
    latest = std::max(latest, *from + *took);
  }
}

class ProgramWriter {
 public:
  ProgramWriter(const std::vector<Call>& calls, const DoneMap& done) : calls_(calls), done_(done) {}

  Program write() {
    auto call = std::find_if(calls_.begin(), calls_.end(), begins_work);
    if (call == calls_.end()) return {};
    began_ = call->start;
    for (; call != calls_.end(); ++call) translate(*call);
    return std::move(program_);
  }

 private:
  struct Thread {
    Duration free{0};  // when its last call returned
    std::optional<EventId> recorded;
  };

  void translate(const Call& call) {
    Thread& thread = threads_.emplace(call.thread, Thread{began_, {}}).first->second;
    current_ = &call;
    const auto [first, last] = done_.equal_range(call.correlation);
    for (auto done = first; done != last; ++done) perform(done->second);
    if (first == last) wait_or_record(thread);
  }

  void perform(const Done& done) {
    const StreamId stream = stream_of(done);
    switch (done.kind) {
      case Done::Kind::kernel:
        add(Launch{stream, done.length});
        copies_since_launch_.clear();
        break;
      case Done::Kind::on_device:
        add(CopyOnDevice{stream, kDevice, kDevice, done.bytes});
        break;
      default:
        copy(done, stream);
    }
  }

  void copy(const Done& done, StreamId stream) {
    const Direction direction =
        done.kind == Done::Kind::to_device ? Direction::to_device : Direction::to_host;
    const Same same{direction, done.memory, done.bytes};
    const uint32_t nth = copies_since_launch_[same]++;
    const auto [place, added] = buffers_.emplace(std::pair(same, nth), next_host_);
    if (added) next_host_ += (done.bytes / 4096 + 2) * 4096;
    const bool async = contains(current_->name, "Async");
    add(Copy{stream,
             direction,
             {place->second, done.bytes},
             kDevice,
             done.memory,
             async ? CallKind::async : CallKind::sync});
  }

  void wait_or_record(Thread& thread) {
    const std::string& name = current_->name;
    if (contains(name, "EventRecord")) {
      const EventId event{next_event_ = next_event_ % kEvents + 1};
      if (created_.insert(event).second) add(CreateEvent{event});
      add(RecordEvent{event, any_stream()});
      thread.recorded = event;
    } else if (contains(name, "EventCreate")) {
      any_stream();
      add_call(CreateEvent{EventId{kEvents + ++more_events_}});
    } else if (contains(name, "cudaMalloc") && !contains(name, "Host")) {
      any_stream();
      allocated_.push_back(kAllocations + kAllocationBytes * ++allocations_);
      add_call(AllocateDevice{ContextId{last_context_}, allocated_.back(), kAllocationBytes});
    } else if (contains(name, "cudaFree") && !contains(name, "Host") && !allocated_.empty()) {
      add_call(FreeDevice{allocated_.back()});
      allocated_.pop_back();
    } else if (contains(name, "EventSynchronize") && thread.recorded) {
      add(SyncEvent{*thread.recorded});
    } else if (contains(name, "Synchronize")) {
      any_stream();
      add(SyncContext{ContextId{last_context_}});
    }
  }

  // A call takes what is left after the time its thread spent elsewhere.
  void add(Action action) {
    Thread& thread = threads_.at(current_->thread);
    Operation operation;
    operation.thread = ThreadId{current_->thread};
    operation.think = std::max(Duration{0}, current_->start - thread.free);
    operation.at = Instant(current_->start);
    operation.action = std::move(action);
    thread.free = std::max(thread.free, current_->start + current_->length);
    program_.push_back(std::move(operation));
  }

  // It takes what it took, and what CC adds.
  void add_call(Action action) {
    add(std::move(action));
    program_.back().think += current_->length;
  }

  StreamId stream_of(const Done& done) {
    // A stream's number is its context's own.
    const auto [found, added] = streams_.emplace(std::pair(done.context, done.stream),
                                                 static_cast<uint32_t>(streams_.size() + 1));
    last_context_ = done.context;
    last_stream_ = found->second;
    if (contexts_.insert(done.context).second) add(CreateContext{ContextId{done.context}});
    if (added) {
      add(CreateStream{StreamId{found->second}, ContextId{done.context}, StreamKind::blocking});
    }
    return StreamId{found->second};
  }

  StreamId any_stream() {
    if (last_stream_ == 0) return stream_of(Done{});
    return StreamId{last_stream_};
  }

  using Same = std::tuple<Direction, MemoryKind, uint64_t>;
  static constexpr uint64_t kDevice = 0x3'0000'0000;
  static constexpr uint64_t kAllocations = 0x8'0000'0000;  // their sizes are not in the exports
  static constexpr uint64_t kAllocationBytes = 4096;
  static constexpr uint32_t kEvents = 1024;

  const std::vector<Call>& calls_;
  const DoneMap& done_;
  Program program_;
  const Call* current_ = nullptr;
  Duration began_{0};
  std::map<uint32_t, Thread> threads_;
  std::set<uint32_t> contexts_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> streams_;
  std::map<std::pair<Same, uint32_t>, uint64_t> buffers_;
  std::map<Same, uint32_t> copies_since_launch_;
  std::set<EventId> created_;
  uint64_t next_host_ = 0x7f00'0000'0000;
  uint32_t next_event_ = 0;
  uint32_t more_events_ = 0;  // that were made: which are recorded is not in the exports
  uint64_t allocations_ = 0;
  std::vector<uint64_t> allocated_;
  uint32_t last_stream_ = 0;
  uint32_t last_context_ = 0;
};

std::optional<std::string> prefix_of(const std::string& path) {
  for (const std::string_view suffix : {kApiSuffix, kGpuSuffix}) {
    if (path.ends_with(suffix)) return path.substr(0, path.size() - suffix.size());
  }
  if (std::ifstream(path + std::string(kApiSuffix))) return path;
  return std::nullopt;
}

}  // namespace

bool is_nsys(const std::string& path) { return prefix_of(path).has_value(); }

std::vector<std::string> nsys_files(const std::string& path) {
  const std::string prefix = prefix_of(path).value_or(path);
  return {prefix + std::string(kApiSuffix), prefix + std::string(kGpuSuffix)};
}

Result<Program> load_nsys(const std::string& path) {
  const std::vector<std::string> files = nsys_files(path);
  const std::string& api_file = files.front();
  const std::string& gpu_file = files.back();
  std::ifstream api(api_file, std::ios::binary);
  std::ifstream gpu(gpu_file, std::ios::binary);
  if (!api) return usage_error(concat(api_file, ": cannot be read"));
  if (!gpu) return usage_error(concat(gpu_file, ": cannot be read"));
  return parse_nsys(api, api_file, gpu, gpu_file);
}

Result<Duration> nsys_span(const std::string& path) {
  const std::string prefix = prefix_of(path).value_or(path);
  const std::string api_file = prefix + std::string(kApiSuffix);
  const std::string gpu_file = prefix + std::string(kGpuSuffix);
  std::ifstream api(api_file, std::ios::binary);
  std::ifstream gpu(gpu_file, std::ios::binary);
  if (!api) return usage_error(concat(api_file, ": cannot be read"));
  if (!gpu) return usage_error(concat(gpu_file, ": cannot be read"));
  CsvReader api_csv(api, api_file);
  SEALANE_LET(const auto calls, read_calls(api_csv));
  const auto first = std::find_if(calls.begin(), calls.end(), begins_work);
  if (first == calls.end()) return usage_error(concat(api_file, ": no copy and no launch in it"));
  const auto launch = std::find_if(first, calls.end(),
                                   [](const Call& call) { return contains(call.name, "Launch"); });
  CsvReader gpu_csv(gpu, gpu_file);
  SEALANE_LET(const auto end, latest_end(gpu_csv));
  const Duration loading = launch == calls.end() ? Duration{0} : launch->length;
  return std::max(Duration{0}, end - first->start - loading);
}

Result<Program> parse_nsys(std::istream& api, const std::string& api_file, std::istream& gpu,
                           const std::string& gpu_file) {
  CsvReader api_csv(api, api_file);
  SEALANE_LET(auto calls, read_calls(api_csv));
  CsvReader gpu_csv(gpu, gpu_file);
  SEALANE_LET(auto done, GpuTable(gpu_csv).read());
  Program program = ProgramWriter(calls, done).write();
  if (program.empty()) return usage_error(concat(api_file, ": no copy and no launch in it"));
  TotalTime time;
  for (const Operation& operation : program) {
    if (Status status = time.add(operation); !status) {
      return usage_error(concat(api_file, ": ", status.error().message));
    }
  }
  make_numbers_small(program);
  return program;
}

}  // namespace sealane::workload
