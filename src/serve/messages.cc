// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/messages.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/range.h"
#include "base/registers.h"
#include "os/pace.h"
#include "seal/stream_copy.h"
#include "serve/process.h"

namespace sealane::serve {
namespace {

// Smaller parts cost more in waking a worker than they save in sealing.
constexpr uint64_t kPartBytesMin = 32_KiB;
constexpr uint64_t kSplitBytesMin = 96_KiB;
constexpr uint64_t kPrivateBytes = 4_KiB;  // on the driver's stack

constexpr uint64_t blocks_of(uint64_t bytes) {
  return (bytes + kGcmBlockBytes - 1) / kGcmBlockBytes;
}

Range range_of(const uint8_t* memory, uint64_t bytes) {
  return {reinterpret_cast<uint64_t>(memory), bytes};
}

// The same memory does not count: there each byte is read before it is written, part by part.
bool is_over_input(const uint8_t* in, const uint8_t* out, uint64_t bytes) {
  return in != out && range_of(in, bytes).overlaps(range_of(out, bytes));
}

}  // namespace

uint64_t Message::part_bytes(uint64_t bytes, const WorkerPool* pool) {
  if (pool == nullptr || bytes < kSplitBytesMin) return bytes;
  const uint64_t parts = std::min<uint64_t>({pool->size(), bytes / kPartBytesMin, kPartsMax});
  const uint64_t even = (bytes + parts - 1) / parts;
  return (even + 4095) & ~uint64_t{4095};
}

bool Message::set_key(std::shared_ptr<const SplitGcm> key, uint64_t number, Direction direction) {
  key_ = std::move(key);
  key_number_ = number;
  direction_ = direction;
  if (key_ == nullptr || (state_ && state_->alive())) return true;
  try {
    state_.emplace();
  } catch (const std::bad_alloc&) {
    key_ = nullptr;
  }
  return key_ != nullptr;
}

void Message::begin(const Iv& iv) {
  finish_turn();
  process().keys.retire_sometimes(SteadyClock().now());
  iv_ = iv;
  if (state_ && !state_->alive()) state_.reset();  // it is the parent process's
  if (state_) state().hash = {};
  additional_bytes_ = 0;
  bytes_ = 0;
  updates_ = 0;
  answer_ = Answer::engine;
  source_ = 0;
  began_ = watched() ? SteadyClock().now() : Instant{};
}

Message::State& Message::state() {
  if (!state_) state_.emplace();
  return **state_;
}

bool Message::add_additional(Bytes bytes) {
  // One piece of it is all a driver has; a second one might begin within a block.
  if (bytes_ != 0 || additional_bytes_ != 0) return false;
  additional_bytes_ = bytes.size();
  for (size_t at = 0; key_ && at < bytes.size(); at += kGcmBlockBytes) {
    GcmBlock block{};
    const size_t here = std::min(kGcmBlockBytes, bytes.size() - at);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), here, block.begin());
    state().hash = key_->join(state().hash, block);
  }
  return true;
}

void Message::note_update(const uint8_t* in, const uint8_t* out, uint64_t bytes) {
  if (bytes == 0) return;
  ++updates_;
  if (bytes_ != 0) return;
  source_ = reinterpret_cast<uint64_t>(direction_ == Direction::to_device ? in : out);
}

void Message::pass(const uint8_t* in, const uint8_t* out, uint64_t bytes) {
  note_update(in, out, bytes);
  bytes_ += bytes;
  answer_ = Answer::real;
}

void Message::update(const uint8_t* in, uint8_t* out, uint64_t bytes, WorkerPool* pool) {
  note_update(in, out, bytes);
  if (bytes != 0 && answer_ahead(in, out, bytes, pool)) return;
  is_over_input(in, out, bytes) ? blocks_over_input(in, out, bytes) : blocks(in, out, bytes, pool);
}

void Message::blocks(const uint8_t* in, uint8_t* out, uint64_t bytes, WorkerPool* pool) {
  const uint64_t begun = bytes_ % kGcmBlockBytes;
  if (begun != 0) {
    const uint64_t head = std::min(bytes, kGcmBlockBytes - begun);
    few_bytes(in, out, head);
    in += head;
    out += head;
    bytes -= head;
  }
  const uint64_t whole = bytes & ~uint64_t{kGcmBlockBytes - 1};
  if (whole != 0) whole_blocks(in, out, whole, pool);
  if (bytes != whole) few_bytes(in + whole, out + whole, bytes - whole);
}

// The last bytes are read before anything is written, the first are written when all is read.
void Message::blocks_over_input(const uint8_t* in, uint8_t* out, uint64_t bytes) {
  const uint64_t begun = bytes_ % kGcmBlockBytes;
  const uint64_t head = begun != 0 ? std::min(bytes, kGcmBlockBytes - begun) : 0;
  const uint64_t tail = (bytes - head) % kGcmBlockBytes;
  const uint64_t whole = bytes - head - tail;
  GcmBlock first;
  GcmBlock last;
  std::copy_n(in + head + whole, tail, last.begin());
  if (head != 0) few_bytes(in, first.data(), head);
  if (whole != 0) whole_blocks(in + head, out + head, whole, nullptr);
  if (tail != 0) few_bytes(last.data(), out + head + whole, tail);
  std::copy_n(first.begin(), head, out);
  wipe(first);
  wipe(last);
}

// A message's parts may be done in any order. So from the side where the output lies, and each from
// private memory: then nothing is written over that is yet to be read, whatever the engine's loop
// does first.
void Message::crypt_over_input(const uint8_t* in, uint8_t* out, uint64_t bytes, GcmHash& hash) {
  const bool below = out < in;
  std::array<uint8_t, kPrivateBytes> text;
  GcmHash& part = state().parts[kPartsMax - 1];
  hash = {};
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t here = std::min(kPrivateBytes, bytes - done);
    const uint64_t offset = below ? done : bytes - done - here;
    std::copy_n(in + offset, here, text.begin());
    part = crypt(offset, text.data(), out + offset, here);
    hash =
        below ? key_->join(hash, part, blocks_of(here)) : key_->join(part, hash, blocks_of(done));
    done += here;
  }
  part = {};
  wipe(text);
}

// At this offset of the update.
GcmHash Message::crypt(uint64_t offset, const uint8_t* in, uint8_t* out, uint64_t bytes) const {
  const uint64_t first = (bytes_ + offset) / kGcmBlockBytes;
  return direction_ == Direction::to_device ? key_->seal_part(iv_, first, in, out, bytes)
                                            : key_->open_part(iv_, first, in, out, bytes);
}

// From a slot, if this message was sealed ahead: a memory copy, spread over the pool.
bool Message::answer_ahead(const uint8_t* in, uint8_t* out, uint64_t bytes, WorkerPool* pool) {
  if (bytes_ == 0) open_slot(in, bytes);
  if (!from_slot_) return false;
  if (!in_slot(in, bytes)) {
    leave_slot();
    return false;
  }
  copy_over(taken_.record + bytes_, out, bytes, pool);
  bytes_ += bytes;
  taken_.used = bytes_;
  // What was written over is not what was sealed ahead: the rest is sealed as it is now.
  const Range rest{source_ + bytes_, taken_.record_bytes - bytes_};
  if (rest.bytes == 0 || rest.overlaps(range_of(out, bytes))) leave_slot();
  return true;
}

void Message::open_slot(const uint8_t* in, uint64_t bytes) {
  if (direction_ != Direction::to_device || updates_ != 1) return;
  LiveSpeculator* const ahead = process().speculators.find(key_number_, iv_, in);
  if (ahead == nullptr) return;
  taken_ = ahead->take(key_number_, key_, iv_, in, bytes);
  if (taken_.ours) ahead_ = ahead;
  from_slot_ = taken_.record != nullptr;
  if (from_slot_) answer_ = taken_.foreseen ? Answer::slot : Answer::worker;
}

// Does this update go on where the last one ended, and does the slot hold it?
bool Message::in_slot(const uint8_t* in, uint64_t bytes) const {
  return reinterpret_cast<uint64_t>(in) == source_ + bytes_ &&
         bytes <= taken_.record_bytes - bytes_;
}

// At its end, or before: then the hash of what was given is still to be made.
void Message::leave_slot() {
  if (!std::exchange(from_slot_, false)) return;
  const uint64_t whole = bytes_ / kGcmBlockBytes;
  if (bytes_ == taken_.record_bytes) {
    state().hash = key_->join(state().hash, **taken_.hash, whole);
  } else {
    answer_ = Answer::engine;
    for (uint64_t i = 0; i < whole; ++i) {
      GcmBlock block;
      std::copy_n(taken_.record + i * kGcmBlockBytes, kGcmBlockBytes, block.begin());
      state().hash = key_->join(state().hash, block);
    }
  }
  const uint64_t tail = bytes_ % kGcmBlockBytes;
  if (tail != 0) begin_block(taken_.record + bytes_ - tail, tail);
}

void Message::begin_block(const uint8_t* ciphertext, uint64_t bytes) {
  key_->keystream(iv_, bytes_ / kGcmBlockBytes, state().keystream);
  block_ = {};
  std::copy_n(ciphertext, bytes, block_.begin());
}

void Message::copy_over(const uint8_t* from, uint8_t* to, uint64_t bytes, WorkerPool* pool) {
  const uint64_t part = part_bytes(bytes, pool);
  const auto one = [&](size_t i) {
    const uint64_t began = pace().begin();
    const uint64_t offset = i * part;
    const uint64_t here = std::min(part, bytes - offset);
    stream_copy({to + offset, here}, {from + offset, here});
    pace().end(Pace::host_copy, here, began);
  };
  if (part >= bytes) {
    one(0);
  } else {
    pool->each((bytes + part - 1) / part, one);
  }
}

void Message::go_on_from(Message& other) {
  other.leave_slot();  // a slot answers one message
  finish_turn();
  key_ = other.key_;
  key_number_ = other.key_number_;
  direction_ = other.direction_;
  iv_ = other.iv_;
  state_.reset();
  if (other.state_ && other.state_->alive()) {
    state() = other.state();
    clear_vector_registers();  // of what it went through
  }
  block_ = other.block_;
  additional_bytes_ = other.additional_bytes_;
  bytes_ = other.bytes_;
  updates_ = other.updates_;
  began_ = other.began_;
  answer_ = other.answer_;
  source_ = other.source_;
}

void Message::finish_turn() {
  if (ahead_ != nullptr) ahead_->give(taken_, bytes_);
  ahead_ = nullptr;
  taken_ = {};
  from_slot_ = false;
}

void Message::whole_blocks(const uint8_t* in, uint8_t* out, uint64_t bytes, WorkerPool* pool) {
  const bool over_input = is_over_input(in, out, bytes);
  const uint64_t part = over_input ? bytes : part_bytes(bytes, pool);
  const uint64_t parts = (bytes + part - 1) / part;
  const auto one = [&](size_t i, GcmHash& hash) {
    const uint64_t began = pace().begin();
    Event event;
    if (watched()) event.begin = SteadyClock().now();
    const uint64_t offset = i * part;
    const uint64_t here = std::min(part, bytes - offset);
    if (over_input) {
      crypt_over_input(in, out, bytes, hash);
    } else {
      hash = crypt(offset, in + offset, out + offset, here);
    }
    pace().end(Pace::aead_fast, here, began);
    if (watched()) tell_part(event, here);
  };
  auto& hashes = state().parts;
  if (parts == 1) {
    one(0, hashes[0]);
  } else {
    answer_ = Answer::parallel;
    pool->each(parts, [&](size_t i) { one(i, hashes[i]); });
  }
  for (uint64_t i = 0; i < parts; ++i) {
    state().hash = key_->join(state().hash, hashes[i], blocks_of(std::min(part, bytes - i * part)));
    hashes[i] = {};
  }
  bytes_ += bytes;
}

// Within one block. Its hash is joined when the block is full, or with the tag.
void Message::few_bytes(const uint8_t* in, uint8_t* out, uint64_t bytes) {
  uint64_t at = bytes_ % kGcmBlockBytes;
  if (at == 0) begin_block(nullptr, 0);
  const GcmBlock& keystream = state().keystream;
  for (uint64_t i = 0; i < bytes; ++i, ++at) {
    const uint8_t byte = in[i];  // once: it may lie where others write
    const auto other = static_cast<uint8_t>(byte ^ keystream[at]);
    out[i] = other;
    block_[at] = direction_ == Direction::to_device ? other : byte;
  }
  bytes_ += bytes;
  if (at == kGcmBlockBytes) state().hash = key_->join(state().hash, block_);
}

Tag Message::tag(bool answered) {
  leave_slot();
  finish_turn();
  if (!answered) {
    if (watched()) tell();
    return {};
  }
  if (bytes_ % kGcmBlockBytes != 0) state().hash = key_->join(state().hash, block_);
  const Tag made = key_->tag(iv_, state().hash, additional_bytes_, bytes_);
  state().hash = {};
  state().keystream = {};
  if (watched()) tell();
  return made;
}

void Message::tell_part(Event& event, uint64_t bytes) const {
  event.kind = EventKind::part;
  event.direction = direction_;
  event.bytes = bytes;
  event.key = key_number_;
  event.end = SteadyClock().now();
  report(event);
}

void Message::tell() const {
  Event event;
  event.kind = EventKind::message;
  event.direction = direction_;
  event.answer = answer_;
  event.id = this_thread().copy;
  event.bytes = bytes_;
  event.host = source_;
  event.key = key_number_;
  std::copy(iv_.begin(), iv_.end(), event.iv);
  event.updates = updates_;
  event.additional_bytes = static_cast<uint16_t>(additional_bytes_);
  event.begin = began_;
  event.end = SteadyClock().now();
  report(event);
}

namespace {

alignas(64) uint8_t refused_place[64];

}  // namespace

RefusedOpening::RefusedOpening() {
  this_thread().refuses = true;
  process().refused_openings.fetch_add(1);
}

RefusedOpening::~RefusedOpening() {
  process().refused_openings.fetch_sub(1);
  this_thread().refuses = false;
}

uint8_t* RefusedOpening::place() { return refused_place; }

bool is_refused(const uint8_t* out) {
  return process().refused_openings.load(std::memory_order_relaxed) != 0 &&
         (this_thread().refuses || out == refused_place);
}

}  // namespace sealane::serve
