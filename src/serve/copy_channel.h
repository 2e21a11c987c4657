// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A context of ours in which copies of one direction cross to or from one GPU. It has its own
// sealed channel and its own hardware queues: what crosses here waits for nothing of the program's.
// Knows the driver, where the bytes of a copy are, and how they travel best: as they are, by way of
// pinned memory (pinned_proxy.h), or several as one (crossing.h). Which copy and when is not its
// business.
//
// Failure: each call returns the driver's code. After a failed copy the context is of no use, and
// replaced; if there is no other, later copies fail as well, and gates are opened from the
// program's side.
//
// Threads: the copy thread's. words() from any thread; close() when nothing crosses any more.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"
#include "serve/crossing.h"
#include "serve/gpu_driver.h"
#include "serve/pinned_proxy.h"
#include "serve/under_way.h"

namespace sealane::serve {

class CopyChannel {
 public:
  // `lane`: its number, for those who watch.
  CopyChannel(GpuDriver& driver, CopyThreadId thread, int lane, const CopyContext& context);
  CopyChannel(const CopyChannel&) = delete;
  CopyChannel& operator=(const CopyChannel&) = delete;

  // Can its context reach this device memory? Copies a byte of it to the host.
  Code probe(uint64_t device_address);

  // A part of a copy. Meanwhile it is this thread's copy in flight, here and below.
  Code carry(const HeldCopy& copy, uint64_t offset, uint64_t bytes);
  // Several small ones as one crossing, if there is memory to gather them in.
  bool can_gather(const Gathering& group) { return crossing_.ready(context_, group); }
  Code carry_together(std::span<HeldCopy* const> copies, const Gathering& group);
  // Messages that say nothing, to move the driver's counter on.
  Code pad(uint64_t messages);
  void replace_context();
  // Behind everything that has crossed.
  void open_gate(Stream& stream, uint32_t value);
  // Those who watch: so a part of a copy has gone, or not. `together`: copies of its crossing.
  void tell(const HeldCopy& copy, uint64_t offset, uint64_t bytes, Code code, Instant begin,
            Instant end, size_t together = 1) const;

  GateWords& words() { return words_; }
  Direction direction() const { return direction_; }
  void close();  // gives the context back

 private:
  GpuDriver& driver_;
  const CopyThreadId thread_;
  const int lane_;
  const Direction direction_;
  CopyContext context_;
  GateWords words_;
  GateWord pad_word_;  // what pads write to
  PinnedProxy proxy_;
  Crossing crossing_;
  std::vector<CrossingPart> parts_;
};

}  // namespace sealane::serve
