// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "live/serve/stripes.h"

#include <algorithm>
#include <string>

#include "base/figures.h"
#include "base/text.h"
#include "live/serve/costs.h"
#include "live/serve/events.h"
#include "live/serve/messages.h"
#include "live/serve/pace.h"
#include "live/serve/thread.h"

namespace sealane::serve {
namespace {

using Way = StripeTrial::Way;

// A few words per lane, once: whoever tells them later finds them.
void note(const std::string& text) {
  if (!watched()) return;
  Event event;
  event.kind = EventKind::note;
  event.text = (new std::string(text))->c_str();  // notes are kept to the end
  report(event);
}

}  // namespace

Code carry_piece(GpuDriver& driver, const LaneContext& context, StandIn& stand_in,
                 const Carrier& carrier, const Piece& piece) {
  const Instant begin = watched() ? SteadyClock().now() : Instant{};
  copy_in_flight() = {piece.id, {reinterpret_cast<uint64_t>(piece.host), piece.bytes}};
  const Code code =
      piece.drivers
          ? driver.copy(context, carrier.direction, piece.device_address, piece.host, piece.bytes)
          : stand_in.copy(context, piece.device_address, piece.host, piece.bytes);
  copy_in_flight() = {};
  if (watched()) tell_carried(carrier, piece, code, begin, SteadyClock().now(), 1);
  return code;
}

void tell_carried(const Carrier& carrier, const Piece& piece, Code code, Instant begin, Instant end,
                  size_t together) {
  Event event;
  event.kind = EventKind::carried;
  event.direction = carrier.direction;
  event.device = static_cast<uint8_t>(carrier.device);
  event.lane = static_cast<uint16_t>(carrier.lane);
  event.code = code;
  event.id = piece.id;
  event.bytes = piece.bytes;
  event.host = reinterpret_cast<uint64_t>(piece.host);
  event.device_address = piece.device_address;
  event.together = static_cast<uint16_t>(together);
  event.begin = begin;
  event.end = end;
  report(event);
}

// A context of its own and the thread that uses it. One piece at a time.
class Stripes::Helper {
 public:
  Helper(GpuDriver& driver, const Carrier& lane)
      : driver_(driver), lane_(lane), stand_in_(driver, lane.direction) {}

  // Success, or why it is of no use. Copies a byte of the program's memory: can it be reached?
  Code open(uint64_t reachable) {
    const Code made = driver_.make_lane(lane_.device, context_);
    if (made != kSuccess) return made;
    uint32_t unused = 0;
    Code code = driver_.copy(context_, Direction::to_host, reachable, &unused, 1);
    if (code == kSuccess && !start_thread<&Helper::work>("sealane-stripe", this)) {
      code = kNotSupported;
    }
    if (code != kSuccess) driver_.drop_lane(context_);
    return code;
  }

  void hand(const Piece& piece) {
    {
      const std::lock_guard lock(mutex_);
      piece_ = piece;
      busy_ = true;
    }
    asked_.notify_one();
  }

  Code await() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !busy_; });
    return code_;
  }

  void close() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    asked_.notify_one();
    stand_in_.drop();
    driver_.drop_lane(context_);
  }

 private:
  void work() {
    driver_.enter_thread();
    std::unique_lock lock(mutex_);
    for (;;) {
      asked_.wait(lock, [&] { return busy_ || closing_; });
      if (!busy_) return;
      const Piece piece = piece_;
      lock.unlock();
      pace().go_on_now();
      const Code code = carry_piece(driver_, context_, stand_in_, lane_, piece);
      lock.lock();
      code_ = code;
      busy_ = false;
      changed_.notify_one();
    }
  }

  GpuDriver& driver_;
  const Carrier lane_;
  LaneContext context_;
  StandIn stand_in_;
  std::mutex mutex_;
  std::condition_variable asked_;
  std::condition_variable changed_;
  Piece piece_;
  Code code_ = kSuccess;
  bool busy_ = false;
  bool closing_ = false;
};

Stripes::Stripes(GpuDriver& driver, const Carrier& lane, unsigned contexts)
    : driver_(driver), lane_(lane), contexts_(std::clamp(contexts, 2u, kMax)) {}

Stripes::~Stripes() = default;

Piece Stripes::part_of(const Piece& whole, unsigned n, unsigned count) {
  const uint64_t messages = (whole.bytes + kBorder - 1) / kBorder;
  const uint64_t begin = std::min(whole.bytes, messages * n / count * kBorder);
  const uint64_t end = std::min(whole.bytes, messages * (n + 1) / count * kBorder);
  Piece part = whole;
  part.device_address += begin;
  part.host += begin;
  part.bytes = end - begin;
  return part;
}

unsigned Stripes::parts(const Piece& whole) const {
  const uint64_t messages = (whole.bytes + kBorder - 1) / kBorder;
  return static_cast<unsigned>(std::min<uint64_t>(contexts_, messages));
}

// Somebody on the bus is no reason to travel another way: the error is the copy's.
Code Stripes::ready(const Piece& first) {
  if (state_ != State::unopened) return kSuccess;
  state_ = State::open;
  for (unsigned i = 1; i < contexts_; ++i) {
    auto helper = std::make_unique<Helper>(driver_, lane_);
    const Code code = helper->open(first.device_address);
    if (code == kSuccess) {
      helpers_.push_back(std::move(helper));
      continue;
    }
    give_up("there is no further context for them");
    return code == kForged ? code : kSuccess;
  }
  return kSuccess;
}

void Stripes::hand_out(const Piece& whole) {
  const unsigned count = parts(whole);
  for (unsigned n = 1; n < count; ++n) helpers_[n - 1]->hand(part_of(whole, n, count));
}

// All of them, also behind an error: nobody may touch the memory after the copy is over.
Code Stripes::await_all(Code own) {
  for (const auto& helper : helpers_) {
    const Code code = helper->await();
    if (own == kSuccess) own = code;
  }
  pace().go_on_now();
  return own;
}

void Stripes::conclude(Way way, uint64_t bytes, Code code, Duration took) {
  if (code != kSuccess) return give_up("a copy failed");
  if (trial_.decided()) return;
  trial_.handle(way, bytes, took);
  if (!trial_.decided()) return;
  tell_trial();
  if (!trial_.pays()) close();
}

void Stripes::tell_trial() const {
  const auto rate = [&](Way way) { return fixed(dilation() / trial_.best(way), 1); };
  note(concat("lane ", lane_.lane, " of GPU ", lane_.device, ": copies over ", contexts_,
              " contexts ", rate(Way::striped), " GB/s, over one ", rate(Way::whole),
              trial_.pays() ? ": striped" : ": not striped"));
}

void Stripes::give_up(const char* why) {
  if (state_ != State::given_up) {
    note(concat("lane ", lane_.lane, " of GPU ", lane_.device, ": copies are not striped: ", why));
  }
  close();
}

void Stripes::close() {
  if (state_ == State::open) {
    for (const auto& helper : helpers_) helper->close();
  }
  state_ = State::given_up;
}

}  // namespace sealane::serve
