// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "ptx/exec/checker.h"

#include <algorithm>
#include <bit>

#include "base/text.h"
#include "ptx/exec/grid.h"

namespace sealane::ptx {
namespace {

void join(std::vector<uint32_t>& into, const std::vector<uint32_t>& from) {
  for (size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

}  // namespace

Checker::Checker(Checks checks, uint32_t warps, uint64_t shared_bytes)
    : checks_(checks), clocks_(warps, Clocks(warps)), bytes_(shared_bytes) {
  for (uint32_t i = 0; i < warps; ++i) clocks_[i][i] = 1;
}

void Checker::meet(const std::vector<uint32_t>& warps) {
  Clocks all(clocks_.size());
  for (const uint32_t warp : warps) join(all, clocks_[warp]);
  for (const uint32_t warp : warps) {
    clocks_[warp] = all;
    ++clocks_[warp][warp];
  }
}

void Checker::release(uint32_t warp, uint64_t address) {
  Clocks& there = released_[address];
  there.resize(clocks_.size());
  join(there, clocks_[warp]);
  ++clocks_[warp][warp];
}

void Checker::acquire(uint32_t warp, uint64_t address) {
  const auto there = released_.find(address);
  if (there != released_.end()) join(clocks_[warp], there->second);
}

void Checker::report_race(Warp& warp, const Instr& in, unsigned lane, uint64_t address, bool writes,
                          const Access& other, bool other_writes) {
  const Warp& they = *warp.block->warps[other.warp];
  warp.grid->report(
      warp, in, lane,
      concat(writes ? "writes" : "reads", " shared byte ", address, ", which thread (",
             they.thread_index[0][other.lane], ",", they.thread_index[1][other.lane], ",",
             they.thread_index[2][other.lane], ") ", other_writes ? "wrote" : "read",
             " at PTX line ", other.line, ", and nothing orders the two"));
}

void Checker::access(Warp& warp, const Instr& in, unsigned lane, uint64_t address, uint32_t bytes,
                     bool writes) {
  const Access now{static_cast<uint16_t>(warp.index), static_cast<uint8_t>(lane),
                   clocks_[warp.index][warp.index], in.line};
  bool told = false;
  for (uint64_t at = address; at < address + bytes && at < bytes_.size(); ++at) {
    Byte& byte = bytes_[at];
    const bool known = byte.write.clock != 0;
    if (checks_.memory && !writes && !known && !told) {
      warp.grid->report(warp, in, lane,
                        concat("reads shared byte ", at, ", which nobody has written"));
      told = true;
    }
    const Access* against = nullptr;
    if (!ordered(byte.write, warp.index)) against = &byte.write;
    for (const Access* read : {&byte.read, &byte.other_read}) {
      if (writes && against == nullptr && !ordered(*read, warp.index)) against = read;
    }
    if (checks_.races && against != nullptr && !told) {
      report_race(warp, in, lane, at, writes, *against, against == &byte.write);
      told = true;
    }
    if (writes) {
      byte = {now, {}, {}};
    } else {
      if (byte.read.clock != 0 && byte.read.warp != now.warp) byte.other_read = byte.read;
      byte.read = now;
    }
  }
}

void Checker::accesses(Warp& warp, const Instr& in, Space space, const uint64_t* addresses,
                       uint32_t mask, uint32_t bytes, bool writes) {
  if (space != Space::shared && space != Space::generic) return;
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    uint64_t address = addresses[lane];
    if (space == Space::generic) {
      if (address >> 48 != kSharedWindow >> 48) continue;
      address &= (uint64_t{1} << 48) - 1;
    }
    access(warp, in, lane, address, bytes, writes);
  }
}

}  // namespace sealane::ptx
