// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/channel/bus.h"

#include <sys/mman.h>

#include "base/check.h"
#include "emu/channel/attacker.h"

namespace sealane::emu {
namespace {

constexpr uint32_t kAborted = UINT32_MAX;

}  // namespace

Bus::Bus(Direction direction, const Config& config)
    : direction_(direction),
      slots_(static_cast<size_t>(config.bounce_slots)),
      memory_bytes_(slots_.size() * config.message_bytes_max) {
  void* memory =
      mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  SEALANE_CHECK(memory != MAP_FAILED, "no memory for a bounce buffer");
  memory_ = static_cast<uint8_t*>(memory);
  for (size_t i = 0; i < slots_.size(); ++i)
    slots_[i].data = memory_ + i * config.message_bytes_max;
}

Bus::~Bus() { munmap(memory_, memory_bytes_); }

void Bus::begin(uint32_t message_count) {
  count_ = message_count;
  published_.set(0);
  consumed_.set(0);
}

bool Bus::await(const WaitWord<uint32_t>& counter, uint32_t least) {
  for (uint32_t now = counter.get(); now < least; now = counter.get()) counter.wait_while(now);
  return !aborted_.load();
}

void Bus::advance(WaitWord<uint32_t>& counter, uint32_t value) {
  uint32_t now = counter.get();
  while (now != kAborted && !counter.set_if(now, value)) {
  }
}

BusMessage* Bus::produce(uint32_t index) {
  const auto slots = static_cast<uint32_t>(slots_.size());
  if (!await(consumed_, index + 1 > slots ? index + 1 - slots : 0)) return nullptr;
  return &slot(index);
}

void Bus::publish(uint32_t index, uint64_t at) {
  slot(index).published_at = at;
  const bool more = index + 1 < count_;
  const bool hold = Attacker::get().strike(direction_, *this, index, more && slots_.size() > 1);
  if (!hold) advance(published_, index + 1);
}

BusMessage* Bus::consume(uint32_t index) {
  if (!await(published_, index + 1)) return nullptr;
  return &slot(index);
}

void Bus::release(uint32_t index) { advance(consumed_, index + 1); }

void Bus::abort() {
  aborted_.store(true);
  advance(published_, kAborted);
  advance(consumed_, kAborted);
}

}  // namespace sealane::emu
