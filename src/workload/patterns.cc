// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "workload/patterns.h"

#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"

namespace sealane::workload {
namespace {

constexpr std::array kPatterns = {
    Pattern::repetition, Pattern::forward_backward, Pattern::interleaved, Pattern::fifo,
    Pattern::lifo,       Pattern::control,          Pattern::sequential,  Pattern::random,
    Pattern::rewriting,
};

constexpr ContextId kContext{1};
constexpr StreamId kCopyStream{1};
constexpr StreamId kKernelStream{2};
constexpr uint64_t kHostBase = 0x7f00'0000'0000;
constexpr uint64_t kControlBase = 0x7e00'0000'0000;
constexpr uint64_t kDeviceBase = 0x3'0000'0000;
constexpr uint64_t kDeviceControlBase = 0x2'0000'0000;
constexpr uint64_t kControlRegionBytes = 1_MiB;
constexpr uint64_t kControlBytesMax = 8_KiB;
// Device memory holds this many buffers: one in use, one being filled.
constexpr uint32_t kDeviceBuffers = 2;

// Writes a program call by call. One thread, one context, two streams, and one pair of events per
// device buffer: `filled` and `used`.
class PatternWriter {
 public:
  explicit PatternWriter(const PatternOptions& options) : options_(options), random_(options.seed) {
    SEALANE_CHECK(options.steps > 0 && options.buffers > 0, "a pattern without copies");
    SEALANE_CHECK(options.buffer_bytes > 0 && options.buffer_bytes % 4096 == 0,
                  "a pattern's buffers are whole pages");
    call(CreateContext{kContext});
    call(CreateStream{kCopyStream, kContext, StreamKind::non_blocking});
    call(CreateStream{kKernelStream, kContext, StreamKind::non_blocking});
    for (uint32_t i = 0; i < kDeviceBuffers; ++i) {
      call(CreateEvent{filled(i)});
      call(CreateEvent{used(i)});
    }
    call(AllocateDevice{kContext, kDeviceBase, kDeviceBuffers * options_.buffer_bytes});
  }

  SeededRandom& random() { return random_; }

  // Host memory for `count` buffers, one behind the other.
  void allocate_in_order(uint32_t count) {
    call(AllocateHost{{kHostBase, count * options_.buffer_bytes}, options_.memory});
    places_.resize(count);
    std::iota(places_.begin(), places_.end(), 0);
  }
  // In random order.
  void allocate(uint32_t count) {
    allocate_in_order(count);
    SeededRandom shuffle(options_.seed);
    for (uint32_t i = count; i > 1; --i) std::swap(places_[i - 1], places_[shuffle.below(i)]);
  }

  Range buffer(uint32_t index) const {
    return {kHostBase + places_[index] * options_.buffer_bytes, options_.buffer_bytes};
  }

  // Fills the next device buffer from the host and computes on it.
  void bulk_in(const Range& host) {
    const uint32_t slot = bulk_copies_++ % kDeviceBuffers;
    if (bulk_copies_ > kDeviceBuffers) call(WaitEvent{kCopyStream, used(slot)});
    copy(Direction::to_device, host, device(slot));
    call(RecordEvent{filled(slot), kCopyStream});
    call(WaitEvent{kKernelStream, filled(slot)});
    call(Launch{kKernelStream, options_.kernel});
    call(RecordEvent{used(slot), kKernelStream});
    if (options_.lockstep) call(SyncStream{kKernelStream});
  }

  void swap_out(const Range& host) { copy(Direction::to_host, host, device(0)); }
  void compute() { call(Launch{kKernelStream, options_.kernel}); }
  void write(const Range& host) { call(WriteHost{host}); }
  void synchronise() { call(SyncContext{kContext}); }
  void synchronise_copies() { call(SyncStream{kCopyStream}); }

  void allocate_control() {
    call(AllocateHost{{kControlBase, kControlRegionBytes}, MemoryKind::pinned});
    call(AllocateDevice{kContext, kDeviceControlBase, kControlRegionBytes});
  }

  // A few bytes from here and there in the control region, written just before: sampling
  // parameters, block tables. A place is written again when what was read there was waited for.
  void control_in() {
    constexpr uint64_t kPlaces = kControlRegionBytes / kControlBytesMax;
    constexpr uint64_t kStride = 37;  // comes to every place, and never to a neighbour
    const uint64_t bytes = random_.between(1, kControlBytesMax / 16) * 16;
    const uint64_t offset = controls_ * kStride % kPlaces * kControlBytesMax;
    if (++controls_ % kPlaces == 0) call(SyncStream{kKernelStream});
    write({kControlBase + offset, bytes});
    call(Copy{kKernelStream,
              Direction::to_device,
              {kControlBase + offset, bytes},
              kDeviceControlBase + offset,
              MemoryKind::pinned,
              CallKind::async});
  }

  Program finish() {
    synchronise();
    return std::move(program_);
  }

 private:
  static EventId filled(uint32_t slot) { return EventId{1 + 2 * slot}; }
  static EventId used(uint32_t slot) { return EventId{2 + 2 * slot}; }
  uint64_t device(uint32_t slot) const { return kDeviceBase + slot * options_.buffer_bytes; }

  void copy(Direction direction, const Range& host, uint64_t to) {
    call(Copy{kCopyStream, direction, host, to, options_.memory, CallKind::async});
  }

  void call(Action action) {
    Operation operation;
    operation.think = options_.think;
    operation.action = std::move(action);
    program_.push_back(std::move(operation));
  }

  PatternOptions options_;
  SeededRandom random_;
  Program program_;
  uint64_t controls_ = 0;
  std::vector<uint64_t> places_;  // of the buffers
  uint32_t bulk_copies_ = 0;
};

void repetition(PatternWriter& out, const PatternOptions& options, uint32_t controls,
                bool rewrite) {
  out.allocate(options.buffers);
  if (controls > 0) out.allocate_control();
  for (uint32_t step = 0; step < options.steps; ++step) {
    for (uint32_t layer = 0; layer < options.buffers; ++layer) {
      for (uint32_t i = 0; i < controls; ++i) out.control_in();
      if (rewrite) out.write(out.buffer(layer));
      out.bulk_in(out.buffer(layer));
    }
    out.synchronise();
  }
}

void forward_backward(PatternWriter& out, const PatternOptions& options) {
  out.allocate(options.buffers);
  for (uint32_t step = 0; step < options.steps; ++step) {
    for (uint32_t layer = 0; layer < options.buffers; ++layer) out.bulk_in(out.buffer(layer));
    for (uint32_t layer = options.buffers; layer-- > 0;) out.bulk_in(out.buffer(layer));
    out.synchronise();
  }
}

// The second loop has about two thirds of the first one's buffers, so the pair repeats only after
// many rounds.
void interleaved(PatternWriter& out, const PatternOptions& options) {
  const uint32_t second = options.buffers * 2 / 3 + 1;
  out.allocate(options.buffers + second);
  const uint64_t turns = uint64_t{options.steps} * options.buffers;
  for (uint64_t turn = 0; turn < turns; ++turn) {
    out.bulk_in(out.buffer(static_cast<uint32_t>(turn % options.buffers)));
    out.bulk_in(out.buffer(options.buffers + static_cast<uint32_t>(turn % second)));
    if ((turn + 1) % options.buffers == 0) out.synchronise();
  }
}

// Each step swaps some blocks out to places drawn from a pool, computes, and brings them back.
void swaps(PatternWriter& out, const PatternOptions& options, bool last_first) {
  const uint32_t pool = 4 * options.buffers;
  out.allocate(pool);
  std::vector<uint32_t> places(pool);
  std::iota(places.begin(), places.end(), 0);
  for (uint32_t step = 0; step < options.steps; ++step) {
    const auto count =
        static_cast<uint32_t>(out.random().between((options.buffers + 1) / 2, options.buffers));
    for (uint32_t i = 0; i < count; ++i) {
      std::swap(places[i], places[i + out.random().below(pool - i)]);
      out.swap_out(out.buffer(places[i]));
      out.compute();
    }
    out.synchronise_copies();
    for (uint32_t i = 0; i < count; ++i) {
      out.bulk_in(out.buffer(places[last_first ? count - 1 - i : i]));
    }
    out.synchronise();
  }
}

void sequential(PatternWriter& out, const PatternOptions& options) {
  const uint32_t chunks = options.steps * options.buffers;
  out.allocate_in_order(chunks);
  for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
    out.bulk_in(out.buffer(chunk));
    if ((chunk + 1) % options.buffers == 0) out.synchronise();
  }
}

void random(PatternWriter& out, const PatternOptions& options) {
  const uint32_t count = 4 * options.buffers;
  out.allocate(count);
  const uint64_t pages = options.buffer_bytes / 4096;
  for (uint64_t i = 0; i < uint64_t{options.steps} * options.buffers; ++i) {
    const Range whole = out.buffer(static_cast<uint32_t>(out.random().below(count)));
    const uint64_t first = out.random().below(pages);
    const uint64_t length = out.random().between(1, pages - first);
    out.bulk_in({whole.address + first * 4096, length * 4096});
    if ((i + 1) % options.buffers == 0) out.synchronise();
  }
}

}  // namespace

std::span<const Pattern> patterns() { return kPatterns; }

std::string_view to_string(Pattern pattern) {
  switch (pattern) {
    case Pattern::repetition:
      return "repetition";
    case Pattern::forward_backward:
      return "forward-backward";
    case Pattern::interleaved:
      return "interleaved";
    case Pattern::fifo:
      return "fifo";
    case Pattern::lifo:
      return "lifo";
    case Pattern::control:
      return "control";
    case Pattern::sequential:
      return "sequential";
    case Pattern::random:
      return "random";
    case Pattern::rewriting:
      return "rewriting";
  }
  return "unknown";
}

Program make_pattern(Pattern pattern, const PatternOptions& options) {
  PatternWriter out(options);
  switch (pattern) {
    case Pattern::repetition:
      repetition(out, options, 0, false);
      break;
    case Pattern::forward_backward:
      forward_backward(out, options);
      break;
    case Pattern::interleaved:
      interleaved(out, options);
      break;
    case Pattern::fifo:
      swaps(out, options, false);
      break;
    case Pattern::lifo:
      swaps(out, options, true);
      break;
    case Pattern::control:
      repetition(out, options, 3, false);
      break;
    case Pattern::sequential:
      sequential(out, options);
      break;
    case Pattern::random:
      random(out, options);
      break;
    case Pattern::rewriting:
      repetition(out, options, 0, true);
      break;
  }
  return out.finish();
}

}  // namespace sealane::workload
