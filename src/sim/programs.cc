// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "sim/programs.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "core/copy/copy_threads.h"
#include "workload/patterns.h"

namespace sealane::sim {
namespace {

using workload::CallKind;
using workload::Operation;
using workload::Program;

// How often things happen, drawn anew for every seed (swarm testing: a seed that never does X
// explores what happens without X much deeper).
struct Mix {
  double out_of_order = 0;  // a copy that is not the loop's next
  double control = 0;       // small copies after a bulk one
  double kernel = 0.5;
  double swap_out = 0;
  double write = 0;
  double sync = 0.1;
  double event = 0;
  double sync_copy = 0;
  double free = 0;
  double phase = 0;      // the loop changes
  double held = 0;       // a copy waits for the host, which writes its source meanwhile
  double host_work = 0;  // a stream writes what it copies next, by CPU or by device
  double batch = 0;      // copies that are one call
  double capture = 0;
  double legacy = 0;  // streams that wait for each other by CUDA's old rule
};

// One thread's part of a program.
class Writer {
 public:
  Writer(SeededRandom& random, uint32_t thread, const Mix& mix)
      : random_(random), mix_(mix), thread_(thread) {}

  Program write(uint64_t operations) {
    set_up();
    while (program_.size() < operations) round();
    add(workload::SyncContext{workload::ContextId{thread_ + 1}});
    return std::move(program_);
  }

 private:
  struct Buffer {
    Range range;
    uint64_t device = 0;
    MemoryKind memory = MemoryKind::pinned;
    bool in_flight = false;            // since the last synchronisation
    uint32_t written_on = UINT32_MAX;  // who reads it there comes behind who writes it
  };

  void set_up() {
    const uint64_t streams = random_.between(1, 3);
    const bool old_rule = random_.chance(mix_.legacy);
    for (uint64_t i = 0; i < streams; ++i) {
      streams_.push_back(workload::StreamId(thread_ * 8 + static_cast<uint32_t>(i) + 1));
      const auto kind = !old_rule ? workload::StreamKind::non_blocking
                        : i == 0  ? workload::StreamKind::legacy
                                  : workload::StreamKind::blocking;
      add(workload::CreateStream{streams_.back(), workload::ContextId{thread_ + 1}, kind});
    }
    const uint64_t count = random_.between(2, 14);
    const uint64_t bytes_max = uint64_t{1} << random_.between(18, 23);
    uint64_t address = (uint64_t{thread_} + 1) << 40;
    for (uint64_t i = 0; i < count; ++i) {
      Buffer buffer;
      buffer.range = {address, random_.chance(0.8) ? bytes_max : random_.between(4096, bytes_max)};
      buffer.device = address;
      const uint64_t kind = random_.below(6);
      buffer.memory = kind == 0   ? MemoryKind::managed
                      : kind <= 2 ? MemoryKind::pageable
                                  : MemoryKind::pinned;
      address += bytes_max + random_.below(3) * 4096;
      add(workload::AllocateHost{buffer.range, buffer.memory});
      buffers_.push_back(buffer);
    }
    control_ = {.range = {address + 1_GiB, 64_KiB},
                .device = address + 1_GiB,
                .memory = random_.chance(0.4) ? MemoryKind::pinned : MemoryKind::pageable};
    if (control_.memory == MemoryKind::pinned) {
      add(workload::AllocateHost{control_.range, control_.memory});
    }
    new_loop();
  }

  void new_loop() {
    loop_.clear();
    const uint64_t length = random_.between(1, 2 * buffers_.size());
    for (uint64_t i = 0; i < length; ++i) loop_.push_back(random_.below(buffers_.size()));
    at_ = 0;
  }

  void round() {
    const size_t planned = loop_[at_++ % loop_.size()];
    copy_in(random_.chance(mix_.out_of_order) ? random_.below(buffers_.size()) : planned);
    while (random_.chance(mix_.control)) control_copy();
    if (random_.chance(mix_.kernel)) {
      add(workload::Launch{stream(), Duration(random_.between(1'000, 400'000))});
    }
    if (random_.chance(mix_.event)) wait_across();
    if (random_.chance(mix_.swap_out)) copy_out(random_.below(buffers_.size()));
    if (random_.chance(mix_.held)) hold_and_write(random_.below(buffers_.size()));
    if (random_.chance(mix_.host_work)) write_by_stream(random_.below(buffers_.size()));
    if (random_.chance(mix_.batch)) copy_batch();
    if (random_.chance(mix_.capture)) capture();
    if (random_.chance(mix_.write)) change(random_.below(buffers_.size()));
    if (random_.chance(mix_.sync)) synchronise();
    if (random_.chance(mix_.free)) reallocate(random_.below(buffers_.size()));
    if (random_.chance(mix_.phase)) new_loop();
  }

  void copy_in(size_t index) {
    Buffer& buffer = buffers_[index];
    workload::StreamId on = stream();
    if (buffer.written_on != UINT32_MAX) {
      // What comes from the device is read on the same stream, or after a synchronisation.
      if (random_.chance(0.5)) {
        synchronise_all();
      } else {
        on = workload::StreamId(buffer.written_on);
      }
    }
    Range range = buffer.range;
    if (random_.chance(mix_.out_of_order)) {
      const uint64_t skip = random_.below(range.bytes);
      range = {range.address + skip, range.bytes - skip};
    }
    const CallKind call = random_.chance(mix_.sync_copy) ? CallKind::sync : CallKind::async;
    add(workload::Copy{on, Direction::to_device, range, buffer.device, buffer.memory, call});
    buffer.in_flight = buffer.in_flight || buffer.memory == MemoryKind::pinned;
  }

  void copy_out(size_t index) {
    Buffer& buffer = buffers_[index];
    if (buffer.in_flight || buffer.written_on != UINT32_MAX) synchronise_all();
    const workload::StreamId on = stream();
    const bool sync = random_.chance(mix_.sync_copy);
    add(workload::Copy{on, Direction::to_host, buffer.range, buffer.device, buffer.memory,
                       sync ? CallKind::sync : CallKind::async});
    if (!sync && buffer.memory == MemoryKind::pinned) {
      buffer.written_on = static_cast<uint32_t>(on);
      buffer.in_flight = true;
    }
  }

  // Nobody reads the source before the host says so: until then it may be written.
  void hold_and_write(size_t index) {
    Buffer& buffer = buffers_[index];
    if (buffer.memory != MemoryKind::pinned) return;
    if (buffer.in_flight || buffer.written_on != UINT32_MAX) synchronise_all();
    const workload::StreamId on = stream();
    const uint32_t flag = thread_ << 24 | ++flags_;
    add(workload::HoldStream{on, flag});
    add(workload::Copy{on, Direction::to_device, buffer.range, buffer.device, buffer.memory,
                       CallKind::async});
    if (random_.chance(0.8)) {
      const uint64_t offset = random_.below(buffer.range.bytes);
      add(workload::WriteHost{
          {buffer.range.address + offset, random_.between(1, buffer.range.bytes - offset)}});
    }
    add(workload::RaiseFlag{flag});
    buffer.in_flight = true;
  }

  // Work of a stream writes a source; the copy behind it, there or in a stream that waits, reads
  // it.
  void write_by_stream(size_t index) {
    Buffer& buffer = buffers_[index];
    if (buffer.memory != MemoryKind::pinned) return;
    if (buffer.in_flight || buffer.written_on != UINT32_MAX) synchronise_all();
    workload::StreamId on = stream();
    add(workload::Launch{on, Duration(random_.between(1'000, 400'000))});
    const uint64_t offset = random_.chance(0.5) ? 0 : random_.below(buffer.range.bytes);
    add(workload::StreamWork{
        on,
        random_.chance(0.3) ? workload::WorkKind::host_function : workload::WorkKind::device_write,
        {buffer.range.address + offset, random_.between(1, buffer.range.bytes - offset)}});
    if (random_.chance(0.4)) {
      const auto event = workload::EventId(thread_ * 8 + static_cast<uint32_t>(random_.below(8)));
      add(workload::RecordEvent{event, on});
      on = stream();
      add(workload::WaitEvent{on, event});
    }
    add(workload::Copy{on, Direction::to_device, buffer.range, buffer.device, buffer.memory,
                       CallKind::async});
    buffer.written_on = static_cast<uint32_t>(on);
    buffer.in_flight = true;
  }

  // Copies of different buffers, so that no order among them matters.
  void copy_batch() {
    const workload::StreamId on = stream();
    const size_t count = std::min<size_t>(buffers_.size(), random_.between(2, 6));
    const size_t first = random_.below(buffers_.size());
    std::vector<size_t> chosen;
    for (size_t i = 0; i < count; ++i) {
      const size_t index = (first + i) % buffers_.size();
      if (buffers_[index].written_on == UINT32_MAX) chosen.push_back(index);
    }
    if (chosen.size() < 2) return;
    add(workload::BatchCopies{static_cast<uint32_t>(chosen.size())});
    for (const size_t index : chosen) {
      Buffer& buffer = buffers_[index];
      const uint64_t bytes =
          random_.chance(0.5) ? buffer.range.bytes : std::min<uint64_t>(4096, buffer.range.bytes);
      add(workload::Copy{on,
                         Direction::to_device,
                         {buffer.range.address, bytes},
                         buffer.device,
                         buffer.memory,
                         CallKind::async});
      buffer.in_flight = buffer.in_flight || buffer.memory == MemoryKind::pinned;
    }
  }

  void capture() {
    const workload::StreamId on = stream();
    add(workload::CaptureStream{on, true});
    add(workload::Launch{on, Duration(random_.between(1'000, 50'000))});
    const Buffer& buffer = buffers_[random_.below(buffers_.size())];
    if (buffer.memory == MemoryKind::pinned) {
      add(workload::Copy{on, Direction::to_device, buffer.range, buffer.device, buffer.memory,
                         CallKind::async});
    }
    add(workload::CaptureStream{on, false});
  }

  // Small ones, both ways. From and to pinned memory on one stream alone, where each may read what
  // one before it writes.
  void control_copy() {
    const bool pinned = control_.memory == MemoryKind::pinned;
    const uint64_t bytes = random_.between(1, 8192);
    const uint64_t offset = random_.below(control_.range.bytes - bytes);
    const Range range{control_.range.address + offset, bytes};
    if (random_.chance(pinned ? 0.05 : 0.3)) {
      if (pinned) synchronise_all();
      add(workload::WriteHost{range});
    }
    const CallKind call = random_.chance(mix_.sync_copy) ? CallKind::sync : CallKind::async;
    const bool out = random_.chance(0.2);
    add(workload::Copy{pinned ? streams_.front() : stream(),
                       out ? Direction::to_host : Direction::to_device, range,
                       control_.device + offset, control_.memory, call});
  }

  void wait_across() {
    const auto event = workload::EventId(thread_ * 8 + static_cast<uint32_t>(random_.below(8)));
    add(workload::RecordEvent{event, stream()});
    if (random_.chance(0.7)) add(workload::WaitEvent{stream(), event});
    if (random_.chance(0.2)) add(workload::SyncEvent{event});
  }

  void change(size_t index) {
    Buffer& buffer = buffers_[index];
    if (buffer.in_flight || buffer.written_on != UINT32_MAX) synchronise_all();
    const uint64_t offset = random_.chance(0.5) ? 0 : random_.below(buffer.range.bytes);
    add(workload::WriteHost{
        {buffer.range.address + offset, random_.between(1, buffer.range.bytes - offset)}});
  }

  void reallocate(size_t index) {
    Buffer& buffer = buffers_[index];
    if (random_.chance(0.5)) synchronise_all();  // else the free waits for what touches it
    add(workload::FreeHost{buffer.range.address});
    buffer.in_flight = false;
    buffer.written_on = UINT32_MAX;
    if (random_.chance(0.5)) buffer.range.bytes = random_.between(4096, buffer.range.bytes);
    add(workload::AllocateHost{buffer.range, buffer.memory});
  }

  void synchronise() {
    if (random_.chance(0.5)) return synchronise_all();
    add(workload::SyncStream{stream()});
  }
  void synchronise_all() {
    add(workload::SyncContext{workload::ContextId{thread_ + 1}});
    for (Buffer& buffer : buffers_) {
      buffer.in_flight = false;
      buffer.written_on = UINT32_MAX;
    }
  }

  workload::StreamId stream() { return streams_[random_.below(streams_.size())]; }
  void add(workload::Action action) {
    Operation operation;
    operation.thread = workload::ThreadId{thread_ + 1};
    operation.think = Duration(random_.below(20'000));
    operation.action = std::move(action);
    program_.push_back(std::move(operation));
  }

  SeededRandom& random_;
  Mix mix_;
  uint32_t thread_;
  Program program_;
  std::vector<workload::StreamId> streams_;
  std::vector<Buffer> buffers_;
  Buffer control_;
  std::vector<size_t> loop_;
  size_t at_ = 0;
  uint32_t flags_ = 0;
};

double sometimes(SeededRandom& random, double most) {
  return random.chance(0.5) ? random.real() * most : 0;
}

Mix swarm_mix(SeededRandom& random) {
  Mix mix;
  mix.out_of_order = sometimes(random, 0.3);
  mix.control = sometimes(random, 0.7);
  mix.kernel = random.real();
  mix.swap_out = sometimes(random, 0.5);
  mix.write = sometimes(random, 0.3);
  mix.sync = sometimes(random, 0.5);
  mix.event = sometimes(random, 0.4);
  mix.sync_copy = sometimes(random, 0.5);
  mix.free = sometimes(random, 0.05);
  mix.phase = sometimes(random, 0.02);
  mix.held = sometimes(random, 0.3);
  mix.host_work = sometimes(random, 0.3);
  mix.batch = sometimes(random, 0.2);
  mix.capture = sometimes(random, 0.05);
  mix.legacy = sometimes(random, 1);
  return mix;
}

// Predictable just long enough to be believed, then not.
Mix adversarial_mix(SeededRandom& random) {
  Mix mix = swarm_mix(random);
  mix.phase = 0.01 + random.real() * 0.05;
  mix.write = 0.2 + random.real() * 0.6;
  mix.control = random.real() * 0.8;
  return mix;
}

Program write_program(SeededRandom& random, const Mix& mix, uint64_t ops) {
  const auto threads = static_cast<uint32_t>(random.between(1, 3));
  Program program;
  for (uint32_t thread = 0; thread < threads; ++thread) {
    Program part = Writer(random, thread, mix).write(ops / threads);
    program.insert(program.end(), part.begin(), part.end());
  }
  return program;
}

Program serve_program(SeededRandom& random, uint64_t ops) {
  const auto all = workload::patterns();
  workload::PatternOptions options;
  options.seed = random.next();
  options.buffers = static_cast<uint32_t>(random.between(2, 24));
  options.buffer_bytes = 4096 * random.between(32, 2048);
  options.memory = random.chance(0.3) ? MemoryKind::pageable : MemoryKind::pinned;
  options.kernel = Duration(random.between(10'000, 2'000'000));
  options.steps = static_cast<uint32_t>(std::max<uint64_t>(ops / (6 * options.buffers), 1));
  return workload::make_pattern(all[random.below(all.size())], options);
}

void draw_machine(SeededRandom& random, Setup& setup) {
  constexpr std::array<uint64_t, 5> kBudgets{2_MiB, 8_MiB, 32_MiB, 128_MiB, 256_MiB};
  constexpr std::array<uint32_t, 4> kQueues{1, 2, 8, 32};
  constexpr std::array<uint64_t, 4> kCores{2, 4, 16, 64};
  setup.platform.host.cores = kCores[random.below(kCores.size())];
  const uint64_t workers_max = std::min<uint64_t>(setup.platform.host.cores, 6);
  setup.workers = static_cast<uint32_t>(random.between(1, workers_max));
  setup.slot_bytes_max = kBudgets[random.below(kBudgets.size())];
  setup.hardware_queues = kQueues[random.below(kQueues.size())];
  setup.page_guards = random.chance(0.7);
  setup.contexts_max = static_cast<uint32_t>(random.chance(0.8) ? 16 : random.below(6));
  setup.registered = sometimes(random, 0.5);
  setup.mapped = sometimes(random, 0.9);
}

void draw_faults(SeededRandom& random, Faults& faults) {
  faults.driver_message = sometimes(random, 0.1);
  faults.rotation = sometimes(random, 0.02);
  faults.worker_stall = sometimes(random, 0.05);
  faults.guard_write = sometimes(random, 0.2);
  faults.free_in_flight = sometimes(random, 0.05);
  if (random.chance(0.4)) faults.tamper = 0.002;
  if (random.chance(0.1)) faults.refused_step = 0.02;
  if (random.chance(0.1)) faults.crash = 0.002;
  faults.apart = sometimes(random, 0.3);
  if (random.chance(0.1)) faults.no_room = 0.05;
}

}  // namespace

Case make_case(Mode mode, uint64_t seed, uint64_t ops, const Platform& platform) {
  SeededRandom random(seed * 3 + static_cast<uint64_t>(mode));
  Case made;
  made.setup.platform = platform;
  made.setup.seed = seed;
  draw_machine(random, made.setup);
  // The runtime has two, for programs with several contexts.
  made.setup.bulk_threads = 1 + static_cast<uint32_t>(seed % kBulkThreads);
  switch (mode) {
    case Mode::swarm:
      made.program = write_program(random, swarm_mix(random), ops);
      draw_faults(random, made.setup.faults);
      break;
    case Mode::serve:
      made.program = serve_program(random, ops);
      made.setup.faults.driver_message = sometimes(random, 0.02);
      made.setup.faults.rotation = sometimes(random, 0.002);
      break;
    case Mode::adversarial:
      made.program = write_program(random, adversarial_mix(random), ops);
      draw_faults(random, made.setup.faults);
      made.setup.faults.guard_write = 0.1 + random.real() * 0.4;
      break;
  }
  if (mode != Mode::serve && random.chance(0.2)) made.setup.staged = 0.5;
  return made;
}

}  // namespace sealane::sim
