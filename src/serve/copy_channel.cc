// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/copy_channel.h"

#include "serve/events.h"
#include "serve/process.h"

namespace sealane::serve {
namespace {

// The copy this thread has handed to the driver.
class InFlight {
 public:
  explicit InFlight(const HeldCopy& copy) { this_thread().copy = copy.id; }
  ~InFlight() { this_thread().copy = 0; }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;
};

}  // namespace

CopyChannel::CopyChannel(GpuDriver& driver, CopyThreadId thread, int lane,
                         const CopyContext& context)
    : driver_(driver),
      thread_(thread),
      lane_(lane),
      direction_(CopyThreads::direction_of(thread)),
      context_(context),
      words_(driver, context),
      proxy_(driver, direction_),
      crossing_(driver, direction_) {
  parts_.reserve(CopyList::kMax);
}

Code CopyChannel::probe(uint64_t device_address) {
  uint32_t unused = 0;
  return driver_.copy(context_, Direction::to_host, device_address, &unused, 1);
}

Code CopyChannel::carry(const HeldCopy& copy, uint64_t offset, uint64_t bytes) {
  const InFlight in_flight(copy);
  const Instant begin = SteadyClock().now();
  uint8_t* const host = copy.host + offset;
  const uint64_t device = copy.device_address + offset;
  const Code code = copy.drivers ? driver_.copy(context_, direction_, device, host, bytes)
                                 : proxy_.copy(context_, device, host, bytes);
  tell(copy, offset, bytes, code, begin, SteadyClock().now());
  return code;
}

// Of one crossing the first copy has the time.
Code CopyChannel::carry_together(std::span<HeldCopy* const> copies, const Gathering& group) {
  const InFlight in_flight(*copies.front());
  const Instant begin = SteadyClock().now();
  parts_.clear();
  for (const HeldCopy* copy : copies) {
    parts_.push_back({copy->device_address, copy->host, copy->bytes});
  }
  const Code code = crossing_.carry(context_, group, parts_);
  const Instant end = SteadyClock().now();
  for (const HeldCopy* copy : copies) {
    const bool first = copy == copies.front();
    tell(*copy, 0, copy->bytes, code, first ? begin : end, end, first ? copies.size() : 0);
  }
  return code;
}

Code CopyChannel::pad(uint64_t messages) {
  if (pad_word_.address == 0 && !words_.take(pad_word_)) return kNotSupported;
  uint8_t nothing = 0;
  for (uint64_t i = 0; i < messages; ++i) {
    const Code code = proxy_.copy(context_, pad_word_.address, &nothing, 1);
    if (code != kSuccess) return code;
  }
  return kSuccess;
}

// The gates still have to open, so that whoever waits behind them learns of the error.
void CopyChannel::replace_context() {
  CopyContext fresh;
  const auto device = static_cast<int>(CopyThreads::device_of(thread_));
  if (driver_.make_context(device, fresh) == kSuccess) {
    context_ = fresh;
    words_.replace_context(fresh);
  }
  crossing_.forget();
}

void CopyChannel::open_gate(Stream& stream, uint32_t value) {
  stream.gates[CopyThreads::place_of(thread_)].open(driver_, context_, stream.context, value);
}

void CopyChannel::close() {
  proxy_.drop();
  driver_.drop_context(context_);
}

void CopyChannel::tell(const HeldCopy& copy, uint64_t offset, uint64_t bytes, Code code,
                       Instant begin, Instant end, size_t together) const {
  if (!watched()) return;
  Event event;
  event.kind = EventKind::carried;
  event.direction = direction_;
  event.device = static_cast<uint8_t>(CopyThreads::device_of(thread_));
  event.lane = static_cast<uint16_t>(lane_);
  event.code = code;
  event.id = copy.id;
  event.bytes = bytes;
  event.host = reinterpret_cast<uint64_t>(copy.host + offset);
  event.device_address = copy.device_address + offset;
  event.together = static_cast<uint16_t>(together);
  event.begin = begin;
  event.end = end;
  report(event);
}

}  // namespace sealane::serve
