// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Bulk copies behind the door to what seals ahead (speculation.h): when each is asked for there,
// when its turn is told, and what their thread carries then. Which of those that may go goes first,
// in how many parts, and what must be sent in between to keep the positions of what is sealed
// already, is decided behind the door.
//
// Events: handle_added with a copy, at_turn before a thread takes anything. Part of Copies; pure.
// It fails with the door: who has stopped is asked nothing, and its thread carries as any other.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "core/copy/copy_table.h"
#include "core/copy/copy_threads.h"
#include "core/copy/speculation.h"

namespace sealane {

class BulkTurns {
 public:
  BulkTurns(CopyTable& copies, CopyThreads& threads, const CopiesOptions& options)
      : copies_(copies), threads_(threads), options_(options) {}

  bool may_be_sealed_ahead(const CopyCall& call) const;
  bool is_bulk(const CopyCall& call) const {
    return call.direction == Direction::to_device && may_be_sealed_ahead(call);
  }

  // A source that is read in place may change until the copy's turn: what was sealed from it is
  // claimed then, of any other here.
  void handle_added(CopyId id, Instant now);
  // Copies whose source is read in place and whose turn has come. Each is told once.
  void at_turn(CopyThreadId thread, std::vector<CopyId>& out);
  // True: a copy that nobody behind the door knows may go, as any other.
  bool tell_turns(CopyThread& thread, Instant now);
  const Crossing* take(CopyThread& thread, Instant now);  // nullptr: nothing may go

 private:
  CopyTable& copies_;
  CopyThreads& threads_;
  const CopiesOptions& options_;
};

}  // namespace sealane
