// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/runner.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "base/try.h"
#include "comm/exit_hold.h"
#include "core/collective/choose.h"
#include "seal/reduce.h"
#include "seal/stream_copy.h"

namespace sealane {
namespace {

constexpr Duration kLookInterval = std::chrono::milliseconds(50);  // at the control links
// A result this long does not stay in a core's cache: stores past it need not read the destination
// first, which is a third of the memory traffic.
constexpr uint64_t kStreamedBytesMin = 4_MiB;
constexpr uint64_t kNowhere = ~uint64_t{0};

uint32_t communicator_of(const std::string& group) {
  uint32_t hash = 2166136261;  // FNV-1a: names differ, nothing more is asked of it
  for (const char c : group) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619;
  return hash;
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

bool is_message(Collective collective) {
  return collective == Collective::send || collective == Collective::receive;
}

bool overlap(Bytes a, Bytes b) {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

std::string list(const std::vector<uint32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) text += concat(i == 0 ? "" : ", ", ranks[i]);
  return text;
}

}  // namespace

struct Runner::Scratch {
  explicit Scratch(uint32_t record_bytes)
      : memory(static_cast<uint8_t*>(std::aligned_alloc(64, kAreas * record_bytes)), std::free),
        bytes(record_bytes) {
    SEALANE_CHECK(memory != nullptr, "out of memory");
  }
  ~Scratch() { wipe({memory.get(), kAreas * bytes}); }

  static constexpr size_t kAreas = 5;
  MutableBytes area(size_t index) const { return {memory.get() + index * bytes, bytes}; }
  MutableBytes opened(bool other) const { return area(other ? 1 : 0); }
  MutableBytes gathered() const { return area(2); }
  MutableBytes result() const { return area(3); }
  MutableBytes stash() const { return area(4); }
  bool holds(Bytes part) const {
    return part.data() >= memory.get() && part.data() < memory.get() + kAreas * bytes;
  }

  std::unique_ptr<uint8_t, void (*)(void*)> memory;
  size_t bytes;
};

// One operation under way.
struct Runner::Running {
  Running(const Operation& operation_, Schedule schedule_, uint32_t record_bytes,
          const Identity& self, Fabric& fabric_)
      : operation(operation_),
        schedule(std::move(schedule_)),
        execution(schedule, record_bytes),
        ranks(self.size),
        rank(self.rank),
        fabric(fabric_),
        told(self.size) {}

  uint32_t out_wire(const Step& step) const { return step.to == kEveryone ? ranks : step.to; }
  uint32_t in_wire(const Step& step) const {
    return step.from_broadcast ? ranks + step.from : step.from;
  }
  bool readable(const Step& step) { return fabric.readable(in_wire(step)); }
  bool writable(const Step& step) { return fabric.writable(out_wire(step)); }

  bool finished() { return execution.done() && fabric.flush(); }
  bool streamed() const { return operation.out.bytes() >= kStreamedBytesMin; }

  void add_laggards(std::vector<uint32_t>& peers) const {
    for (uint32_t peer = 0; peer < ranks; ++peer) {
      if (peer != rank && fabric.behind(peer)) peers.push_back(peer);
    }
  }
  std::vector<uint32_t> waiting_for() {
    if (!execution.done()) return execution.waiting_for(*this);
    std::vector<uint32_t> peers;
    add_laggards(peers);
    return peers;
  }

  const Operation& operation;
  Schedule schedule;
  Execution execution;
  uint32_t ranks;
  uint32_t rank;
  Fabric& fabric;
  Call call;
  std::vector<bool> told;  // which ranks heard that it waits for them
  // Where in `out` the sum belongs that the last task left in scratch, and what this task leaves.
  uint64_t sum_at = kNowhere;
  uint64_t next_sum_at = kNowhere;
  // What was verified last, on its way to the caller: the next record that is opened or sealed
  // takes it along (seal/delivery.h).
  Delivery pending;
  bool other_area = false;  // which of two areas was opened into last
  Instant last_progress{};
  Instant last_look{};
};

Runner::Runner(const JoinOptions& options, Membership membership, std::unique_ptr<Lanes> lanes)
    : options_(options),
      group_(std::move(membership)),
      lanes_(std::move(lanes)),
      communicator_(communicator_of(options.self.group)),
      sent_to_(options.self.size),
      received_from_(options.self.size),
      awaiting_(options.self.size),
      scratch_(std::make_unique<Scratch>(options.record_bytes)) {}

Runner::~Runner() = default;

uint64_t Runner::memory_bytes() const {
  const uint64_t windows = (in_windows_ != nullptr ? DeviceWindows::kBytes : 0) +
                           (out_windows_ != nullptr ? DeviceWindows::kBytes : 0);
  return group_.fabric->memory_bytes() + Scratch::kAreas * options_.record_bytes + windows;
}

Request Runner::request(const Operation& operation) const {
  Request request;
  request.collective = operation.collective;
  request.rank = options_.self.rank;
  request.size = options_.self.size;
  request.root = operation.root;
  request.bytes = operation.collective == Collective::reduce_scatter ||
                          operation.collective == Collective::receive
                      ? operation.out.bytes()
                      : operation.in.bytes();
  if (operation.collective == Collective::broadcast) {
    request.bytes = std::max(operation.in.bytes(), operation.out.bytes());
  }
  request.record_bytes = options_.record_bytes;
  request.channel_records = group_.ring_records;
  request.algorithm = options_.algorithm;
  request.algorithm = choose(request, group_.topology);
  return request;
}

Status Runner::run(Operation operation) {
  if (failure_) return *failure_;
  const uint64_t number = counter(operation)++;
  awaited_.store(kNobody, std::memory_order_relaxed);
  const Status status = attempt(operation, number);
  if (status) return {};
  return fail({status.error().kind,
               concat(to_string(operation.label.collective.value_or(operation.collective)), " ",
                      number, ": ", status.error().message)});
}

Error Runner::fail(const Error& error) {
  if (!failure_) failure_ = error;
  group_.control->abort(failure_->message);
  return *failure_;
}

Status Runner::attempt(Operation& operation, uint64_t number) {
  const Request asked = request(operation);
  const Call call = call_of(operation, asked, number);
  if (!is_message(operation.collective)) recent_[number % recent_.size()] = call;
  // Ranks that never wait must hear of trouble, too.
  const bool look = SteadyClock().now() - last_heard_ >= kLookInterval;
  SEALANE_TRY(look ? hear_control() : hear_calls());
  operation.in.locate(in_windows_, options_.self.size);
  operation.out.locate(out_windows_, options_.self.size);
  Running running(operation, make_schedule(asked), options_.record_bytes, options_.self,
                  *group_.fabric);
  running.call = call;
  const Status status = carry_out(running);
  const Status arrived = finish(operation);
  return status ? arrived : status;
}

// Both sides forget their windows, whatever happened.
Status Runner::finish(const Operation& operation) const {
  const Status in = operation.in.finish();
  const Status out = operation.out.finish();
  return in ? out : in;
}

Call Runner::call_of(const Operation& operation, const Request& asked, uint64_t number) const {
  Call call{number, operation.collective, operation.type, operation.op, 0, asked.bytes};
  if (operation.collective == Collective::broadcast || operation.collective == Collective::reduce ||
      operation.collective == Collective::send) {
    call.root = operation.root;
  }
  if (operation.collective == Collective::receive) {
    call.collective = Collective::send;
    call.root = options_.self.rank;
  }
  return call.labelled(operation.label);
}

uint64_t& Runner::counter(const Operation& operation) {
  if (operation.collective == Collective::send) return sent_to_[operation.root];
  if (operation.collective == Collective::receive) return received_from_[operation.root];
  return collectives_;
}

Status Runner::carry_out(Running& running) {
  while (!running.finished()) {
    SEALANE_TRY(check_stopped());
    if (const auto task = running.execution.poll(running)) {
      SEALANE_TRY(perform(running, *task));
      running.execution.handle_done(*task);
      running.last_progress = Instant();
    } else if (Status status = wait(running); !status) {
      return status;
    }
  }
  settle(running);
  return {};
}

// ---- Waiting: look a little longer, then sleep in slices and look at the peers in between ----

Status Runner::wait(Running& running) {
  const SteadyClock clock;
  const Instant start = clock.now();
  if (running.last_progress == Instant()) running.last_progress = running.last_look = start;
  Fabric& fabric = running.fabric;
  // Other ranks may be waiting for what this one has not announced yet.
  if (!running.execution.done()) fabric.flush();
  const Duration patience = fabric.patience();
  while (patience > Duration(0) && clock.now() - start < patience) {
    if (running.execution.poll(running)) return {};
    relax();
  }
  settle(running);
  fabric.prepare_wait();
  if (running.execution.poll(running)) return {};
  fabric.wait(kLookInterval);
  const Instant now = clock.now();
  if (now - running.last_look < kLookInterval) return {};
  running.last_look = now;
  SEALANE_TRY(check_peers(running));
  SEALANE_TRY(check_message(running));
  const auto peers = running.waiting_for();
  awaited_.store(peers.empty() ? kNobody : peers.front(), std::memory_order_relaxed);
  tell_call(running, peers);
  if (peers.empty() || now - running.last_progress < options_.timeout) return {};
  return peer_error(
      concat("no progress for ",
             std::chrono::duration_cast<std::chrono::milliseconds>(options_.timeout).count(),
             " ms while waiting for ", list(peers)));
}

// Who is gone is asked first: what it had sent or taken before has arrived by then.
Status Runner::check_peers(Running& running) {
  SEALANE_TRY(hear_control());
  std::vector<uint32_t> gone;
  for (uint32_t peer = 0; peer < running.ranks; ++peer) {
    if (peer == running.rank) continue;
    if (group_.control->gone(peer) || group_.fabric->lost(peer)) gone.push_back(peer);
  }
  if (gone.empty()) return {};
  for (const uint32_t peer : running.waiting_for()) {
    if (!std::binary_search(gone.begin(), gone.end(), peer)) continue;
    return peer_error(concat("rank ", peer, " is gone: its process ended or its host is away"));
  }
  return {};
}

Status Runner::listen() {
  if (failure_) return *failure_;
  const Status status = hear_control();
  if (status) return {};
  return fail(status.error());
}

std::vector<bool> Runner::gone() const {
  std::vector<bool> gone(options_.self.size);
  for (uint32_t peer = 0; peer < gone.size(); ++peer) gone[peer] = group_.control->gone(peer);
  return gone;
}

Status Runner::check_stopped() const {
  if (process_exits()) return exiting_error();
  if (!stopped_.load(std::memory_order_relaxed)) return {};
  return aborted_error();
}

Status Runner::hear_control() {
  last_heard_ = SteadyClock().now();
  group_.control->pump();
  if (const auto& aborted = group_.control->aborted()) return *aborted;
  return hear_calls();
}

// ---- Calls that differ where no record tells: who waits says in what ----

void Runner::tell_call(Running& running, const std::vector<uint32_t>& peers) {
  if (is_message(running.operation.collective)) return;
  for (const uint32_t peer : peers) {
    if (running.told[peer] || group_.control->gone(peer)) continue;
    running.told[peer] = true;
    const Waiting waiting{running.call, sent_to_[peer], received_from_[peer]};
    group_.control->send(peer, ControlKind::call, waiting.encode());
  }
}

std::vector<uint8_t> Runner::Waiting::encode() const {
  std::vector<uint8_t> out = call.encode();
  const size_t at = out.size();
  out.resize(at + 2 * sizeof(uint64_t));
  store_le(&out[at], sent);
  store_le(&out[at + sizeof(uint64_t)], received);
  return out;
}

std::optional<Runner::Waiting> Runner::Waiting::decode(Bytes bytes) {
  constexpr size_t kCounts = 2 * sizeof(uint64_t);
  if (bytes.size() < kCounts) return std::nullopt;
  const Bytes counts = bytes.last(kCounts);
  const auto call = Call::decode(bytes.first(bytes.size() - kCounts));
  if (!call) return std::nullopt;
  return Waiting{*call, load_le<uint64_t>(counts.data()),
                 load_le<uint64_t>(counts.data() + sizeof(uint64_t))};
}

// The other end of a message waits for this rank in a call that comes later here. If it had begun
// the message before, that is on its way; if not, both would wait for ever.
Status Runner::check_message(const Running& running) const {
  const Operation& operation = running.operation;
  if (!is_message(operation.collective) || !awaiting_[operation.root]) return {};
  const Waiting& theirs = *awaiting_[operation.root];
  const bool receives = operation.collective == Collective::receive;
  if ((receives ? theirs.sent : theirs.received) > running.call.number) return {};
  return peer_error(concat("rank ", operation.root, " ", differ(theirs.call, running.call)));
}

Status Runner::hear_calls() {
  for (uint32_t peer = 0; peer < options_.self.size; ++peer) {
    if (const auto heard = group_.control->take_call(peer)) {
      awaiting_[peer] = Waiting::decode(*heard);
      if (!awaiting_[peer]) return peer_error(concat("rank ", peer, " sent a malformed call"));
    }
    if (!awaiting_[peer] || awaiting_[peer]->call.number >= collectives_) continue;
    const Waiting theirs = *std::exchange(awaiting_[peer], std::nullopt);
    SEALANE_TRY(compare(peer, theirs.call));
  }
  return {};
}

Status Runner::compare(uint32_t peer, const Call& theirs) {
  const Call& own = recent_[theirs.number % recent_.size()];
  if (own.number != theirs.number || own == theirs) return {};
  return peer_error(concat("rank ", peer, " ", differ(theirs, own)));
}

// ---- One record of one step ----

RecordHeader Runner::header(const Running& running, const Task& task, uint32_t origin) const {
  const Step& step = running.schedule.steps[task.step];
  RecordHeader header;
  header.length = task.bytes;
  header.communicator = communicator_;
  running.call.write(header);
  header.phase = static_cast<uint8_t>(step.phase);
  header.chunk = task.number;
  header.origin = origin;
  return header;
}

void Runner::settle(Running& running) { sealane::carry_out(std::exchange(running.pending, {})); }

Result<Bytes> Runner::open(Running& running, const Task& task) {
  const Step& step = running.schedule.steps[task.step];
  running.other_area = !running.other_area;
  return lanes_->view(step, header(running, task, step.origin),
                      running.fabric.front(running.in_wire(step)),
                      scratch_->opened(running.other_area), std::exchange(running.pending, {}));
}

// Of the caller's memory, where what was verified may still be missing.
Bytes Runner::read(Running& running, const Buffer& buffer, uint64_t at, size_t count) const {
  const MutableBytes scratch = scratch_->gathered();
  const Bytes place = buffer.target(at, count, scratch);
  if (place.data() == scratch.data() || overlap(place, running.pending.to)) settle(running);
  return buffer.read(at, count, scratch);
}

Status Runner::send(Running& running, const Task& task, const Delivery& payload) {
  SEALANE_TRY(running.operation.in.problem());
  SEALANE_TRY(running.operation.out.problem());
  const Step& step = running.schedule.steps[task.step];
  const uint32_t wire = running.out_wire(step);
  const uint32_t lane = step.kind == StepKind::publish ? kEveryone : step.to;
  const MutableBytes slot = running.fabric.slot(wire);
  Delivery sealed = payload;
  sealed.sealed_streamed = running.fabric.streams(wire, task.bytes);
  SEALANE_LET(const auto written,
              lanes_->write(lane, header(running, task, options_.self.rank), sealed, slot));
  running.fabric.commit(wire, written);
  records_made_.fetch_add(1, std::memory_order_relaxed);
  bytes_made_.fetch_add(task.bytes, std::memory_order_relaxed);
  return {};
}

// The record's elements and the own ones, in the order all ranks agree on.
Delivery Runner::sum_of(const Running& running, const Task& task, Bytes own, Bytes incoming,
                        MutableBytes to) const {
  const bool record_first = running.schedule.steps[task.step].record_first;
  const ReduceOperator op = running.operation.op;
  return {record_first ? incoming : own,
          record_first ? own : incoming,
          running.operation.type,
          op == ReduceOperator::avg ? ReduceOperator::sum : op,
          to,
          false};
}

// Keeps a delivery for the next record to take along, if all its memory lasts until then.
bool Runner::postpone(Running& running, const Delivery& delivery, Bytes incoming) const {
  const bool lasts = scratch_->holds(incoming) && !scratch_->holds(delivery.to) &&
                     delivery.first.data() != scratch_->gathered().data() &&
                     delivery.second.data() != scratch_->gathered().data();
  if (!lasts) return false;
  running.pending = delivery;
  return true;
}

Status Runner::fold(Running& running, const Task& task, uint64_t in_at, uint64_t out_at) {
  const Step& step = running.schedule.steps[task.step];
  const Operation& operation = running.operation;
  const bool still_in_scratch = running.sum_at == out_at;
  const bool stashed = step.kind == StepKind::fold_stash;
  SEALANE_LET(const auto opened,
              stashed ? Bytes(scratch_->stash().first(task.bytes)) : open(running, task));
  Bytes own = scratch_->result().first(task.bytes);
  if (step.operand == Operand::in && !stashed) {
    own = read(running, operation.in, in_at, task.bytes);
  } else if (!still_in_scratch) {
    own = read(running, operation.out, out_at, task.bytes);
  }
  const MutableBytes to = operation.out.target(out_at, task.bytes, scratch_->result());
  Delivery sum = sum_of(running, task, own, opened, to);
  sum.streamed = step.last && running.streamed();
  const bool divided = step.last && operation.op == ReduceOperator::avg;
  if (divided || !postpone(running, sum, opened)) {
    // A sum to be streamed is made in scratch, where the step that publishes it finds it.
    if (sum.streamed) sum.to = scratch_->result().first(task.bytes);
    reduce(sum.type, sum.op, sum.first, sum.second, sum.to);
    if (divided) divide(sum.type, sum.to, options_.self.size);
    if (to.data() != sum.to.data()) stream_copy(to, sum.to);
    operation.out.written(out_at, to);
    if (sum.streamed) running.next_sum_at = out_at;
  }
  if (!stashed) running.fabric.pop(running.in_wire(step));
  return {};
}

Status Runner::publish(Running& running, const Task& task, uint64_t in_at, uint64_t out_at) {
  const Operation& operation = running.operation;
  const bool still_in_scratch = running.sum_at == out_at;
  if (running.schedule.steps[task.step].operand == Operand::in) {
    return send(running, task, in_place(read(running, operation.in, in_at, task.bytes)));
  }
  if (still_in_scratch) return send(running, task, in_place(scratch_->result().first(task.bytes)));
  const MutableBytes to = operation.out.target(out_at, task.bytes, scratch_->result());
  if (!to.empty() && running.pending.to.data() == to.data()) {
    return send(running, task, std::exchange(running.pending, {}));
  }
  return send(running, task, in_place(read(running, operation.out, out_at, task.bytes)));
}

Status Runner::relay(Running& running, const Task& task, uint64_t in_at) {
  SEALANE_LET(const auto incoming, open(running, task));
  const Bytes own = read(running, running.operation.in, in_at, task.bytes);
  const MutableBytes partial = scratch_->result().first(task.bytes);
  Status sent = send(running, task, sum_of(running, task, own, incoming, partial));
  running.fabric.pop(running.in_wire(running.schedule.steps[task.step]));
  return sent;
}

// Verified in the cache first: unverified bytes never are in the caller's memory.
Status Runner::receive(Running& running, const Task& task, uint64_t out_at) {
  const Buffer& out = running.operation.out;
  const uint32_t wire = running.in_wire(running.schedule.steps[task.step]);
  SEALANE_LET(const auto opened, open(running, task));
  const MutableBytes to = out.target(out_at, task.bytes, scratch_->result());
  Delivery copy;
  copy.first = opened;
  copy.to = to;
  copy.streamed = running.streamed();
  if (!postpone(running, copy, opened)) {
    sealane::carry_out(copy);
    out.written(out_at, to);
  }
  running.fabric.pop(wire);
  return {};
}

Status Runner::perform(Running& running, const Task& task) {
  const Step& step = running.schedule.steps[task.step];
  const Block& block = running.schedule.blocks[step.block];
  const Buffer& in = running.operation.in;
  const Buffer& out = running.operation.out;
  const uint64_t in_at = block.in_offset + task.offset;
  const uint64_t out_at = block.out_offset + task.offset;
  // Good for one task, whatever that is: another one comes first where a wire is full.
  running.sum_at = std::exchange(running.next_sum_at, kNowhere);

  switch (step.kind) {
    case StepKind::copy: {
      settle(running);
      const MutableBytes to = out.target(out_at, task.bytes, scratch_->result());
      const Bytes from = in.read(in_at, task.bytes, scratch_->gathered());
      if (to.data() != from.data()) std::memmove(to.data(), from.data(), task.bytes);
      out.written(out_at, to);
      return {};
    }
    case StepKind::stash:
      std::memcpy(scratch_->stash().data(), read(running, in, in_at, task.bytes).data(),
                  task.bytes);
      return {};
    case StepKind::send:
      return send(running, task, in_place(read(running, in, in_at, task.bytes)));
    case StepKind::publish:
      return publish(running, task, in_at, out_at);
    case StepKind::fold:
    case StepKind::fold_stash:
      return fold(running, task, in_at, out_at);
    case StepKind::relay:
      return relay(running, task, in_at);
    case StepKind::receive:
      return receive(running, task, out_at);
    case StepKind::forward: {
      // Passed on as it came: every receiver verifies for itself.
      const Bytes record = running.fabric.front(running.in_wire(step));
      const uint32_t wire = running.out_wire(step);
      std::memcpy(running.fabric.slot(wire).data(), record.data(), record.size());
      running.fabric.commit(wire, record.size());
      return receive(running, task, out_at);
    }
  }
  return internal_error("unknown step");
}

}  // namespace sealane
