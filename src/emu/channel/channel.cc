// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/channel/channel.h"

#include <algorithm>

#include "base/log.h"
#include "base/random.h"
#include "emu/channel/disturbance.h"

namespace sealane::emu {
namespace {

const PathModel& path_of(Direction direction) {
  const Model& model = config()->model;
  return direction == Direction::to_device ? model.to_device : model.to_host;
}

DirectionCounters& counters_of(Direction direction) {
  return direction == Direction::to_device ? counters().to_device : counters().to_host;
}

}  // namespace

std::unique_ptr<SealedChannel> SealedChannel::create(Direction direction, uint64_t channel,
                                                     Server& link) {
  ChannelSeed seed;
  SystemRandom().fill(seed.secret);
  seed.channel = channel;
  std::unique_ptr<SealedChannel> made(new SealedChannel(direction, seed, link));
  return made->sealer_ ? std::move(made) : nullptr;
}

SealedChannel::SealedChannel(Direction direction, const ChannelSeed& seed, Server& link)
    : direction_(direction),
      model_(path_of(direction)),
      counters_(counters_of(direction)),
      link_(link),
      bus_(direction, *config()),
      host_keys_(seed, config()->rotation_bytes),
      device_keys_(seed, config()->rotation_bytes),
      sealer_(Sealer::create(host_keys_.key(), direction == Direction::to_device)),
      device_(make_gcm(device_keys_.key())),
      messages_until_own_(static_cast<uint64_t>(config()->chatter)),
      rotations_followed_(disturbances().rotations.load()) {}

Transfer SealedChannel::plan(uint64_t bytes, bool pageable) {
  Transfer transfer{{}, bytes, pageable};
  const uint64_t limit = config()->message_bytes_max;
  const uint32_t wanted =
      direction_ == Direction::to_device ? disturbances().messages.exchange(0) : 0;
  for (uint32_t i = 0; i < wanted; ++i) {
    transfer.pieces.push_back(own_piece(std::min(limit, bytes)));
  }
  for (uint64_t offset = 0; offset < bytes; offset += limit) {
    if (config()->chatter > 0 && --messages_until_own_ == 0) {
      messages_until_own_ = static_cast<uint64_t>(config()->chatter);
      transfer.pieces.push_back(own_piece(std::min(limit, bytes - offset)));
    }
    transfer.pieces.push_back({offset, std::min(limit, bytes - offset), false});
  }
  const uint32_t rotations = disturbances().rotations.load();
  transfer.pieces.front().rotate = rotations != rotations_followed_;
  rotations_followed_ = rotations;
  bus_.begin(static_cast<uint32_t>(transfer.pieces.size()));
  return transfer;
}

// Nobody can tell it by its length: it is as long as a semaphore, as the copy's message behind it,
// a byte, a page, by turns.
Piece SealedChannel::own_piece(uint64_t next_bytes) {
  const uint64_t lengths[] = {32, next_bytes, 1, std::min<uint64_t>(4096, next_bytes)};
  return {0, lengths[own_made_++ % std::size(lengths)], true};
}

void SealedChannel::write_own(const KeySchedule& keys, std::vector<uint8_t>& out, uint64_t bytes) {
  out.resize(bytes);
  SeededRandom(keys.counter() ^ bytes << 32).fill({out.data(), bytes});
}

bool SealedChannel::is_own(const KeySchedule& keys, const uint8_t* said, uint64_t bytes) {
  std::vector<uint8_t> expected;
  write_own(keys, expected, bytes);
  return std::equal(expected.begin(), expected.end(), said);
}

bool SealedChannel::host_advance(const Piece& piece) {
  if (host_keys_.advance(piece.bytes, piece.rotate)) {
    ++counters_.rotations;
    core_.serve(thread_ns(), ns_from_us(config()->model.key_rotation_us));
    sealer_ = Sealer::create(host_keys_.key(), direction_ == Direction::to_device);
  }
  ++counters_.positions;
  additional_ = additional_data(host_keys_.counter(), piece.bytes);
  return sealer_ != nullptr;
}

void SealedChannel::device_advance(const Piece& piece) {
  if (device_keys_.advance(piece.bytes, piece.rotate)) device_ = make_gcm(device_keys_.key());
}

// Everything of a message but its bytes.
void SealedChannel::fill(sealane_emu_message& message, const BusMessage& slot, uint64_t bytes) {
  const GcmIv iv = host_keys_.iv();
  std::copy(iv.begin(), iv.end(), message.iv);
  std::copy(slot.tag.begin(), slot.tag.end(), message.tag);
  message.additional = additional_.data();
  message.additional_bytes = config()->additional_data ? additional_.size() : 0;
  message.bytes = bytes;
}

bool SealedChannel::refuse() {
  ++counters_.rejected;
  bus_.abort();
  return false;
}

// Sealed as it must be, but it says something else than the driver said.
bool SealedChannel::refuse_own() {
  ++counters_.own_altered;
  return refuse();
}

RealNs SealedChannel::pace_core(const Transfer& transfer, const Piece& piece, RealNs arrival,
                                const Answered& answered) {
  if (!config()->paced) return 0;
  const Model& model = config()->model;
  const auto bytes = static_cast<double>(piece.bytes);
  const bool cold = static_cast<double>(transfer.bytes) > model.host_cache_bytes;
  const uint64_t charged = piece.bytes - std::min(answered.bytes, piece.bytes);
  double cost = ns_at(cold ? model_.cc_aead_cold_gb_per_s : model_.cc_aead_gb_per_s, charged);
  cost += ns_from_us(model_.cc_message_us) * std::min(1.0, bytes / model.message_ramp_bytes);
  if (transfer.pageable) cost += ns_at(model_.cc_staging_gb_per_s, piece.bytes);
  // Whoever answered took the time it took; the rest of the message's work follows.
  if (answered.bytes > 0) arrival = std::max(arrival, answered.at);
  const RealNs end = core_.reserve(arrival, cost);
  finish_by(end);
  arrive(end);
  return end;
}

bool SealedChannel::host_send(const Transfer& transfer, const Strided& from) {
  for (uint32_t i = 0; i < transfer.pieces.size(); ++i) {
    const Piece& piece = transfer.pieces[i];
    BusMessage* slot = bus_.produce(i);
    if (slot == nullptr) return false;
    if (!host_advance(piece)) return refuse();
    sealane_emu_message message{};
    fill(message, *slot, piece.bytes);
    if (piece.own) {
      write_own(host_keys_, staging_, piece.bytes);
      message.in = staging_.data();
    } else if (config()->staged || !from.contiguous()) {
      staging_.resize(piece.bytes);
      from.gather(piece.offset, piece.bytes, staging_.data());
      message.in = staging_.data();
    } else {
      message.in = from.base + piece.offset;
    }
    message.out = slot->data;
    Answered answered;
    if (!sealer_->seal(message, core_.begins(transfer.start), answered)) return refuse();
    std::copy(std::begin(message.tag), std::end(message.tag), slot->tag.begin());
    slot->bytes = piece.bytes;
    const RealNs sealed_at = pace_core(transfer, piece, transfer.start, answered);
    ++counters_.messages;
    counters_.own_messages += piece.own ? 1 : 0;
    counters_.sealed_bytes += piece.own ? 0 : piece.bytes;
    bus_.publish(i, sealed_at);
  }
  return true;
}

bool SealedChannel::device_receive(const Transfer& transfer, const Strided& to) {
  for (uint32_t i = 0; i < transfer.pieces.size(); ++i) {
    const Piece& piece = transfer.pieces[i];
    const BusMessage* slot = bus_.consume(i);
    if (slot == nullptr) return false;
    const RealNs link_end =
        link_.reserve(slot->published_at, ns_at(model_.cc_link_gb_per_s, piece.bytes));
    device_advance(piece);
    const auto additional = additional_data(device_keys_.counter(), piece.bytes);
    const bool in_place = !piece.own && to.contiguous();
    if (!in_place) scratch_.resize(piece.bytes);
    uint8_t* out = in_place ? to.base + piece.offset : scratch_.data();
    const Bytes authenticated = config()->additional_data ? Bytes(additional) : Bytes();
    const GcmTag tag = slot->tag;
    {
      const ClockStop still;
      const bool genuine =
          slot->bytes == piece.bytes &&
          device_->open(device_keys_.iv(), authenticated, {slot->data, piece.bytes}, tag, out);
      if (!genuine) return refuse();
      if (piece.own && !is_own(device_keys_, out, piece.bytes)) return refuse_own();
      if (!in_place && !piece.own) to.scatter(piece.offset, piece.bytes, out);
    }
    counters_.verified_bytes += piece.own ? 0 : piece.bytes;
    bus_.release(i);
    sleep_until(link_end);
  }
  return true;
}

bool SealedChannel::device_send(const Transfer& transfer, const Strided& from) {
  for (uint32_t i = 0; i < transfer.pieces.size(); ++i) {
    const Piece& piece = transfer.pieces[i];
    BusMessage* slot = bus_.produce(i);
    if (slot == nullptr) return false;
    const RealNs link_end =
        link_.reserve(transfer.start, ns_at(model_.cc_link_gb_per_s, piece.bytes));
    device_advance(piece);
    const auto additional = additional_data(device_keys_.counter(), piece.bytes);
    const bool in_place = !piece.own && from.contiguous();
    {
      const ClockStop still;
      if (piece.own) write_own(device_keys_, scratch_, piece.bytes);
      if (!in_place && !piece.own) {
        scratch_.resize(piece.bytes);
        from.gather(piece.offset, piece.bytes, scratch_.data());
      }
      device_->seal(device_keys_.iv(), config()->additional_data ? Bytes(additional) : Bytes(),
                    {in_place ? from.base + piece.offset : scratch_.data(), piece.bytes},
                    slot->data, slot->tag);
    }
    slot->bytes = piece.bytes;
    sleep_until(link_end);
    ++counters_.messages;
    counters_.own_messages += piece.own ? 1 : 0;
    counters_.sealed_bytes += piece.own ? 0 : piece.bytes;
    bus_.publish(i, link_end);
  }
  return true;
}

bool SealedChannel::host_receive(const Transfer& transfer, const Strided& to) {
  for (uint32_t i = 0; i < transfer.pieces.size(); ++i) {
    const Piece& piece = transfer.pieces[i];
    const BusMessage* slot = bus_.consume(i);
    if (slot == nullptr) return false;
    const RealNs arrived_at = slot->published_at;
    if (!host_advance(piece)) return refuse();
    sealane_emu_message message{};
    fill(message, *slot, piece.bytes);
    const bool in_place = !piece.own && !config()->staged && to.contiguous();
    // Only where it is used, and never less than before: memory that comes again is written with
    // zeroes first.
    if (!in_place || config()->staged) staging_.resize(std::max(staging_.size(), 2 * piece.bytes));
    message.in = slot->data;
    message.out = in_place ? to.base + piece.offset : staging_.data();
    if (config()->staged && slot->bytes == piece.bytes) {
      std::copy_n(slot->data, piece.bytes, staging_.data() + piece.bytes);
      message.in = staging_.data() + piece.bytes;
    }
    Answered answered;
    if (slot->bytes != piece.bytes || !sealer_->open(message, core_.begins(arrived_at), answered)) {
      if (config()->wipes) wipe({message.out, piece.bytes});
      return refuse();
    }
    if (piece.own && !is_own(host_keys_, message.out, piece.bytes)) return refuse_own();
    if (!in_place && !piece.own) to.scatter(piece.offset, piece.bytes, message.out);
    counters_.verified_bytes += piece.own ? 0 : piece.bytes;
    pace_core(transfer, piece, arrived_at, answered);
    bus_.release(i);
  }
  return true;
}

}  // namespace sealane::emu
