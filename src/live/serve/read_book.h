// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies to the host whose bytes the program does not see yet: what is known of each, and what
// follows from that when somebody touches the memory, frees it, or copies it again. Decides only:
// no system calls, no threads.
//
//   filling   the driver is still at it; its bytes go to memory of ours
//   landing   the driver is done; the destination is being trapped
//   trapped   whoever touches the destination waits
//   opening   somebody verifies and delivers the bytes
//
// Of a destination whose ends lie within pages only the whole pages can be trapped. The rest, its
// edges, must be there when the copy is over: messages that hold a byte of an edge are not put off.
//
// Not synchronised. A handful of copies at a time: looking is a walk.
#pragma once

#include <cstdint>
#include <vector>

#include "core/copy.h"

namespace sealane::serve {

using ReadId = uint64_t;
constexpr ReadId kNoRead = 0;

class ReadBook {
 public:
  // A copy to `destination`, whose bytes the driver puts at `memory`. `inner` are the destination's
  // whole pages.
  ReadId add(const Range& destination, const Range& inner, uint64_t memory);
  void remove(ReadId id);

  // The copy for which the driver writes these bytes, and whether they may be opened later.
  struct Filling {
    ReadId id = kNoRead;
    bool may_wait = false;
  };
  Filling find_filling(const Range& out) const;

  bool land(ReadId id);   // filling -> landing. False: not before an earlier copy to this memory
  bool trap(ReadId id);   // landing -> trapped. True: somebody has touched it and must ask again
  bool claim(ReadId id);  // trapped -> opening. False: somebody else has it, or it is over

  // Somebody touched trapped memory. `open`: the caller is to open `id`, which is claimed for him.
  // `wait`: it is being opened. `gone`: it has been; whoever waits may look again.
  enum class Answer : uint8_t { open, wait, gone };
  struct Touched {
    Answer answer = Answer::gone;
    ReadId id = kNoRead;
  };
  Touched touch(uint64_t address);

  // Those the program takes for done whose bytes are not there yet.
  std::vector<ReadId> put_off(const Range& range) const;

 private:
  enum class State : uint8_t { filling, landing, trapped, opening };
  struct Read {
    ReadId id = kNoRead;
    Range destination;
    Range inner;
    uint64_t memory = 0;
    State state = State::filling;
    bool touched = false;  // while landing
  };
  Read* find(ReadId id);

  std::vector<Read> reads_;
  ReadId last_ = kNoRead;
};

}  // namespace sealane::serve
