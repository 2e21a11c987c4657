// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One bulk copy over several contexts. In CC mode the messages of a context follow one another, and
// each has a price of its own besides its bytes; contexts have channels and copy queues of their
// own, so parts of a copy can overlap. It is cut where its messages would end anyway; the lane
// carries the first part in its own context, each helper another in its own, and the copy is over
// when all are. So gates, order and errors are the lane's, as without it.
//
// Whether that is faster here is tried with the first copies (core/order/stripe_trial.h); if not,
// the contexts are given back. Helpers are opened with the first copy that is large enough.
//
// Failure: the error of any part is the copy's. After one, or without contexts, threads or access
// to the program's memory, copies travel whole.
// Threads: carry() and close() on the lane's thread, or while it rests. Must not be destroyed: a
// helper's thread may still be leaving.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/bytes.h"
#include "core/copy.h"
#include "core/order/stripe_trial.h"
#include "live/serve/gpu_driver.h"
#include "live/serve/stand_in.h"

namespace sealane::serve {

// A copy, or a part of one.
struct Piece {
  uint64_t id = 0;  // of the copy
  uint64_t device_address = 0;
  uint8_t* host = nullptr;
  uint64_t bytes = 0;
  bool drivers = false;  // `host` is memory pinned by the driver
};

// Who carries pieces, for those who watch.
struct Carrier {
  int device = 0;
  int lane = 0;  // its number
  Direction direction = Direction::to_device;
};

// Carries a piece in a context, and tells whoever watches. The calling thread's copy in flight.
Code carry_piece(GpuDriver& driver, const LaneContext& context, StandIn& stand_in,
                 const Carrier& carrier, const Piece& piece);
// What a watcher sees of a copy that was carried: `together` as in Event.
void tell_carried(const Carrier& carrier, const Piece& piece, Code code, Instant begin, Instant end,
                  size_t together);

class Stripes {
 public:
  static constexpr uint64_t kBytesMin = 4_MiB;
  static constexpr uint64_t kBorder = 1_MiB;  // the driver's messages
  static constexpr unsigned kMax = 8;         // contexts of a copy

  // `contexts` of a copy, the lane's own among them: 2 or more.
  Stripes(GpuDriver& driver, const Carrier& lane, unsigned contexts);
  ~Stripes();
  Stripes(const Stripes&) = delete;
  Stripes& operator=(const Stripes&) = delete;

  bool takes(uint64_t bytes) const { return bytes >= kBytesMin && state_ != State::given_up; }

  // `own` carries a piece in the lane's context: Code(const Piece&).
  template <typename Own>
  Code carry(const Piece& whole, const Own& own) {
    if (const Code code = ready(whole); code != kSuccess) return code;
    if (state_ == State::given_up) return own(whole);
    const auto way = trial_.next();
    const Instant begin = SteadyClock().now();
    Code code = kSuccess;
    if (way == StripeTrial::Way::whole) {
      code = own(whole);
    } else {
      hand_out(whole);
      code = await_all(own(part_of(whole, 0, parts(whole))));
    }
    conclude(way, whole.bytes, code, SteadyClock().now() - begin);
    return code;
  }

  void close();  // gives the contexts back

  // What the n-th of `count` carries, who are no more than there are messages.
  static Piece part_of(const Piece& whole, unsigned n, unsigned count);

 private:
  class Helper;
  enum class State : uint8_t { unopened, open, given_up };

  Code ready(const Piece& first);
  unsigned parts(const Piece& whole) const;
  void hand_out(const Piece& whole);
  Code await_all(Code own);
  void conclude(StripeTrial::Way way, uint64_t bytes, Code code, Duration took);
  void give_up(const char* why);
  void tell_trial() const;

  GpuDriver& driver_;
  const Carrier lane_;
  const unsigned contexts_;
  State state_ = State::unopened;
  StripeTrial trial_;
  std::vector<std::unique_ptr<Helper>> helpers_;
};

}  // namespace sealane::serve
