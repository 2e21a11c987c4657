// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/lanes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "base/try.h"
#include "comm/call.h"
#include "core/session/identity.h"
#include "seal/stream_copy.h"

namespace sealane {
namespace {

constexpr uint32_t kBroadcastLane = uint32_t{1} << 31;
uint32_t pair_lane(uint32_t from, uint32_t to) { return from * kRanksMax + to; }

std::string describe(const RecordHeader& header) {
  return concat("operation ", header.operation, " phase ", header.phase, " chunk ", header.chunk,
                " type ", static_cast<int>(header.type), " operator ", static_cast<int>(header.op),
                " of ", header.length, " bytes");
}

// A genuine record of another operation means that the ranks do not make the same calls.
Status check_expected(const RecordHeader& got, RecordHeader expected) {
  expected.lane = got.lane;
  expected.epoch = got.epoch;
  expected.position = got.position;
  if (got == expected) return {};
  const auto theirs = Call::of(got);
  const auto own = Call::of(expected);
  if (theirs && own && *theirs != *own) return peer_error(differ(*theirs, *own));
  return peer_error(concat("sent ", describe(got), " where ", describe(expected),
                           " was due: all ranks must make the same calls"));
}

Error of_origin(uint32_t origin, const Error& error) {
  return {error.kind, concat("rank ", origin, ": ", error.message)};
}

class SealedLanes final : public Lanes {
 public:
  SealedLanes(uint32_t rank, std::vector<std::optional<SessionKeys>> keys, Key broadcast,
              const Engine& engine, KeyLimits limits)
      : rank_(rank),
        everyone_(kBroadcastLane | rank, KeyChain(std::move(broadcast), engine), limits) {
    for (uint32_t peer = 0; peer < keys.size(); ++peer) {
      auto& own = peers_.emplace_back();
      if (!keys[peer]) continue;
      own = std::make_unique<Peer>(
          RekeyingSendLane(pair_lane(rank, peer), KeyChain(std::move(keys[peer]->send), engine),
                           limits),
          RekeyingReceiveLane(pair_lane(peer, rank),
                              KeyChain(std::move(keys[peer]->receive), engine)),
          RekeyingReceiveLane(kBroadcastLane | peer,
                              KeyChain(std::move(keys[peer]->peer_broadcast), engine)));
    }
  }

  Result<size_t> write(uint32_t to, const RecordHeader& header, const Delivery& source,
                       MutableBytes slot) override {
    const size_t bytes = record_bytes(source.bytes());
    RekeyingSendLane& lane = to == kEveryone ? everyone_ : peers_[to]->to;
    SEALANE_TRY(lane.seal_exposed(header, source, slot.first(bytes)));
    return bytes;
  }

  Result<Bytes> view(const Step& step, const RecordHeader& expected, Bytes record,
                     MutableBytes scratch, const Delivery& beside) override {
    Peer& peer = *peers_[step.origin];
    RekeyingReceiveLane& lane = step.broadcast_lane ? peer.broadcast : peer.from;
    // There is room for any record of the group's size: one of another call is opened, and named.
    const auto header = lane.open(record, scratch, beside);
    if (!header)
      return other_call(record, expected, scratch, of_origin(step.origin, header.error()));
    const Status fits = check_expected(*header, expected);
    if (fits) return Bytes(scratch.first(expected.length));
    wipe(scratch);
    return of_origin(step.origin, fits.error());
  }

 private:
  struct Peer {
    Peer(RekeyingSendLane to_, RekeyingReceiveLane from_, RekeyingReceiveLane broadcast_)
        : to(std::move(to_)), from(std::move(from_)), broadcast(std::move(broadcast_)) {}
    RekeyingSendLane to;
    RekeyingReceiveLane from;
    RekeyingReceiveLane broadcast;
  };

  // Calls that differ can put records of another lane on a wire. Such a record is never taken; but
  // if its own lane finds it genuine, it tells what the other rank called.
  Error other_call(Bytes record, const RecordHeader& expected, MutableBytes scratch,
                   const Error& refusal) {
    const auto claimed = RecordHeader::parse(record);
    if (!claimed) return refusal;
    for (uint32_t rank = 0; rank < peers_.size(); ++rank) {
      if (peers_[rank] == nullptr) continue;
      const bool broadcast = claimed->lane == (kBroadcastLane | rank);
      if (!broadcast && claimed->lane != pair_lane(rank, rank_)) continue;
      const auto header =
          (broadcast ? peers_[rank]->broadcast : peers_[rank]->from).open(record, scratch);
      wipe(scratch);
      const auto theirs = header ? Call::of(*header) : std::nullopt;
      const auto own = Call::of(expected);
      if (theirs && own && *theirs != *own)
        return of_origin(rank, peer_error(differ(*theirs, *own)));
    }
    return refusal;
  }

  uint32_t rank_;
  RekeyingSendLane everyone_;
  std::vector<std::unique_ptr<Peer>> peers_;  // none for the own rank
};

// The same records with nothing sealed: headers are still compared, to find calls that differ.
class PlainLanes final : public Lanes {
 public:
  Result<size_t> write(uint32_t, const RecordHeader& header, const Delivery& source,
                       MutableBytes slot) override {
    carry_out(source);
    const Bytes payload = source.empty() ? source.first : Bytes(source.to);
    const auto encoded = header.encode();
    std::copy(encoded.begin(), encoded.end(), slot.begin());
    const MutableBytes to = slot.subspan(RecordHeader::kBytes, payload.size());
    if (source.sealed_streamed) {
      stream_copy(to, payload);
    } else if (!payload.empty()) {
      std::memcpy(to.data(), payload.data(), payload.size());
    }
    return record_bytes(payload.size());
  }

  Result<Bytes> view(const Step& step, const RecordHeader& expected, Bytes record, MutableBytes,
                     const Delivery& beside) override {
    carry_out(beside);
    const auto header = RecordHeader::parse(record);
    if (!header) return of_origin(step.origin, header.error());
    if (const Status fits = check_expected(*header, expected); !fits) {
      return of_origin(step.origin, fits.error());
    }
    if (record.size() != record_bytes(header->length)) {
      return of_origin(step.origin, peer_error("record cut short"));
    }
    return record.subspan(RecordHeader::kBytes, header->length);
  }
};

}  // namespace

std::unique_ptr<Lanes> make_sealed_lanes(uint32_t rank,
                                         std::vector<std::optional<SessionKeys>> keys,
                                         Key broadcast, const Engine& engine, KeyLimits limits) {
  return std::make_unique<SealedLanes>(rank, std::move(keys), std::move(broadcast), engine, limits);
}

std::unique_ptr<Lanes> make_plain_lanes() { return std::make_unique<PlainLanes>(); }

}  // namespace sealane
