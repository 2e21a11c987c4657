// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One direction of the sealed way between host and device, of one context.
//
// A transfer, stage by stage (to the device; the other direction is its mirror image):
//   1. plan      the copy becomes messages of at most message_bytes_max, with the driver's own
//                messages in between if it has any. Both ends know the plan.
//   2. host      for each message: [stage,] seal through libcrypto, publish      caller's thread
//   3. bus       a bounce buffer; the adversary's turn
//   4. device    for each message: take, verify with its own count and key,      queue's thread
//                put in place
// Stages 2 and 4 run at the same time on two threads, message by message. A message the receiver
// refuses ends the transfer on both sides and the context with it.
//
// Threads: host_*() and device_*() of one transfer are called by one thread each; transfers of a
// context are serialised by its owner.
#pragma once

#include <memory>
#include <vector>

#include "emu/channel/bus.h"
#include "emu/channel/keys.h"
#include "emu/channel/sealing.h"
#include "emu/device/pace.h"
#include "emu/device/strided.h"
#include "emu/truth/counters.h"

namespace sealane::emu {

// What a refused message does to its context.
constexpr int kRefused = 214;  // CUDA_ERROR_ECC_UNCORRECTABLE: integrity is lost, sticky

struct Piece {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool own = false;     // a message of the driver's, not of the copy; both ends know what it says
  bool rotate = false;  // a test wants a new key here
};

struct Transfer {
  std::vector<Piece> pieces;
  uint64_t bytes = 0;
  bool pageable = false;
  // When its first message may begin on the modelled machine's clock. Every later time of a paced
  // transfer is counted from here, not from when a thread happened to wake up.
  RealNs start = 0;
};

class SealedChannel {
 public:
  // nullptr if libcrypto cannot be reached.
  static std::unique_ptr<SealedChannel> create(Direction direction, uint64_t channel, Server& link);

  Transfer plan(uint64_t bytes, bool pageable);  // before both ends start
  bool host_send(const Transfer& transfer, const Strided& from);
  bool device_receive(const Transfer& transfer, const Strided& to);
  bool device_send(const Transfer& transfer, const Strided& from);
  bool host_receive(const Transfer& transfer, const Strided& to);

 private:
  SealedChannel(Direction direction, const ChannelSeed& seed, Server& link);

  bool host_advance(const Piece& piece);  // next position, new key where due
  void device_advance(const Piece& piece);
  bool host_seal(sealane_emu_message& message);
  bool host_open(const sealane_emu_message& message);
  void fill(sealane_emu_message& message, const BusMessage& slot, uint64_t bytes);
  bool refuse();
  bool refuse_own();
  Piece own_piece(uint64_t next_bytes);
  // What a message of the driver's own says: another thing each time.
  static void write_own(const KeySchedule& keys, std::vector<uint8_t>& out, uint64_t bytes);
  static bool is_own(const KeySchedule& keys, const uint8_t* said, uint64_t bytes);
  // Sleeps out a message's work on the caller's core, which could begin at `arrival`; returns its
  // end.
  RealNs pace_core(const Transfer& transfer, const Piece& piece, RealNs arrival,
                   const Answered& answered);

  const Direction direction_;
  const PathModel& model_;
  DirectionCounters& counters_;
  Server& link_;
  Bus bus_;
  KeySchedule host_keys_;
  KeySchedule device_keys_;
  std::unique_ptr<Sealer> sealer_;
  std::unique_ptr<Gcm> device_;
  std::array<uint8_t, 16> additional_{};
  std::vector<uint8_t> staging_;  // host's
  std::vector<uint8_t> scratch_;  // device's, for rows
  Server core_;
  uint64_t messages_until_own_;
  uint64_t own_made_ = 0;
  uint32_t rotations_followed_;
};

}  // namespace sealane::emu
