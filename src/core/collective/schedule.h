// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Collectives as data: what one rank does, as steps over blocks of its buffers. A step treats its
// block record by record; execution.h decides which record of which step is next.
//
// Who reads what: `in` is what the caller contributes, `out` is where the result goes; they may be
// the same memory. Blocks say where a piece lies in each. Every schedule fixes the order of
// operands, so that all ranks get identical bits whatever the timing.
//
//   exchange  everybody sends everything to everybody        1 hop     small messages, 2 ranks
//   direct    each rank reduces one block for all, then      2 hops    shared memory, few ranks
//             publishes it on its broadcast lane
//   ring      the same, but blocks travel round the ring:    2(N-1)    networks with many ranks
//             partial sums re-sealed at every hop, results
//             forwarded as the origin's ciphertext
//   hub       one rank reduces for all                       2 hops    several GPUs of one machine
//
// In every schedule each rank's records reach every other, if only by way of a third, so that a
// rank that makes another call is noticed in that very call: where the data alone would not do it
// (who broadcasts hears nobody, who gives to a sum hears nothing) an empty record does.
//
// Pure; building a schedule allocates, using one does not.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sealane {

enum class Collective : uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  barrier,
  send,
  receive,
  // Names of calls that a caller makes of those above; there are no schedules for them.
  gather,
  scatter,
  all_to_all,
};

enum class Algorithm : uint8_t { automatic, exchange, direct, ring, hub };

std::string_view to_string(Collective collective);
std::string_view to_string(Algorithm algorithm);
Result<Algorithm> parse_algorithm(std::string_view name);  // a usage error names those there are

constexpr uint32_t kNobody = ~uint32_t{0};
constexpr uint32_t kEveryone = kNobody - 1;

enum class StepKind : uint8_t {
  copy,        // in → out, local
  stash,       // in → aside, local: `out` is about to be overwritten
  send,        // in, sealed on the pair's lane → `to`
  publish,     // in or out, sealed on the own broadcast lane → `to` (or everyone)
  fold,        // `from` → opened, verified, combined with in or out → out
  fold_stash,  // out combined with what was stashed → out, local
  relay,       // `from` → opened, verified, combined with in, sealed again → `to`
  receive,     // `from` → opened, verified → out
  forward,     // as receive, and the ciphertext as it came → `to`
};

enum class Operand : uint8_t { in, out };

// Named in every record, so that one phase's record cannot serve in another.
enum class Phase : uint8_t {
  none,
  exchange,
  reduce_scatter,
  all_gather,
  to_hub,
  point_to_point,
  agreement,  // one empty record that says: this is the call I am in
};

struct Step {
  StepKind kind;
  Phase phase = Phase::none;
  uint32_t block = 0;
  uint32_t from = kNobody;        // the rank whose wire is read
  uint32_t to = kNobody;          // the rank whose wire is written, or kEveryone
  uint32_t origin = kNobody;      // the rank that sealed what is read
  bool from_broadcast = false;    // read from the broadcast wire of `from`, not the pair's
  bool broadcast_lane = false;    // what is read was sealed on the origin's broadcast lane
  Operand operand = Operand::in;  // publish: what; fold: what the record is combined with
  bool record_first = false;      // order of operands: the record's elements come first
  bool last = false;              // the sum is complete: an average divides here
  int32_t after = -1;             // record i waits for record i of that step
};

struct Block {
  uint64_t in_offset = 0;
  uint64_t out_offset = 0;
  uint64_t bytes = 0;
};

struct Schedule {
  std::vector<Step> steps;
  std::vector<Block> blocks;
  bool empty_records = false;  // a block without bytes still has one record (barrier)
};

struct Request {
  Collective collective = Collective::all_reduce;
  Algorithm algorithm = Algorithm::direct;  // not automatic: choose.h does that
  uint32_t rank = 0;
  uint32_t size = 1;
  uint32_t root = 0;   // broadcast, reduce: the root; send, receive: the other rank
  uint64_t bytes = 0;  // all_gather: of one rank's part; reduce_scatter: of one rank's result
  uint32_t record_bytes = 0;
  uint32_t channel_records = 0;  // records a wire holds: bounds what a ring has under way
};

// A header numbers a record by 32 bits. The larger side of a call may have so many records; then no
// schedule of it needs more numbers: cutting into blocks makes at most twice as many and two per
// rank, and a ring that gathers has its own part twice.
constexpr uint64_t kRecordNumbers = uint64_t{1} << 32;
constexpr uint64_t kCallRecordsMax = kRecordNumbers >> 2;

Schedule make_schedule(const Request& request);

// True if the algorithm can carry out the request; exchange among three or more needs a message
// that fits one record.
bool possible(const Request& request);

}  // namespace sealane
