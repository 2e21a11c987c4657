// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/lane/lane.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace sealane {

SendLane::SendLane(uint32_t id, LaneSecret secret, KeyLimits limits)
    : id_(id), secret_(std::move(secret)), ledger_(limits) {}

Result<Position> SendLane::reserve(size_t payload_bytes) {
  if (payload_bytes > kRecordPayloadBytesMax) {
    return usage_error(
        concat("a record carries at most ", kRecordPayloadBytesMax, " bytes, not ", payload_bytes));
  }
  return ledger_.reserve_next(blocks_of(payload_bytes, RecordHeader::kBytes));
}

SealedRecord SendLane::seal(Position position, RecordHeader header, Bytes plaintext,
                            MutableBytes out) const {
  SEALANE_CHECK(position.live(), "position used before");
  SEALANE_CHECK(position.epoch() == ledger_.epoch(), "position of an earlier key");
  write(position.number(), header, in_place(plaintext), out);
  return SealedRecord(std::move(position), out);
}

void SendLane::write(uint64_t position, RecordHeader header, const Delivery& source,
                     MutableBytes out) const {
  SEALANE_CHECK(out.size() == record_bytes(source.bytes()), "record buffer has another size");
  header.length = static_cast<uint32_t>(source.bytes());
  header.lane = id_;
  header.epoch = ledger_.epoch().number;
  header.position = position;
  const auto encoded = header.encode();

  std::copy(encoded.begin(), encoded.end(), out.begin());
  Tag tag;
  secret_.aead->seal(secret_.iv_law.iv(position), encoded, source,
                     out.subspan(RecordHeader::kBytes, source.bytes()), tag);
  std::copy(tag.begin(), tag.end(), out.end() - kTagBytes);
}

Status SendLane::seal_exposed(const RecordHeader& header, const Delivery& source,
                              MutableBytes exposed) {
  auto position = reserve(source.bytes());
  if (!position) return position.error();
  const uint64_t number = position->number();
  if (Status status = ledger_.publish(std::move(*position)); !status) return status;
  write(number, header, source, exposed);
  return {};
}

bool SendLane::exhausted(size_t payload_bytes) const {
  return ledger_.messages_left() == 0 ||
         ledger_.blocks_left() < blocks_of(payload_bytes, RecordHeader::kBytes);
}

Result<Bytes> SendLane::publish(SealedRecord record) {
  const MutableBytes bytes = record.bytes_;
  if (Status status = ledger_.publish(std::move(record.position_)); !status) {
    wipe(bytes);
    return status.error();
  }
  return Bytes(bytes);
}

void SendLane::rotate(LaneSecret secret) {
  secret_ = std::move(secret);
  ledger_.rotate();
}

ReceiveLane::ReceiveLane(uint32_t id, LaneSecret secret) : id_(id), secret_(std::move(secret)) {}

Result<RecordHeader> ReceiveLane::open(Bytes record, MutableBytes out, const Delivery& beside) {
  if (!failure_) {
    auto header = try_open(record, out, beside);
    if (header) return header;
    failure_ = header.error();
  }
  wipe(out);
  return *failure_;
}

Result<RecordHeader> ReceiveLane::try_open(Bytes record, MutableBytes out, const Delivery& beside) {
  auto header = RecordHeader::parse(record);
  if (!header) return header;
  if (record.size() != record_bytes(header->length)) {
    return crypto_error(concat("lane ", id_, ": record of ", record.size(), " bytes should have ",
                               record_bytes(header->length)));
  }
  if (out.size() < header->length) {
    return crypto_error(concat("lane ", id_, ": ", header->length, " bytes sent where ", out.size(),
                               " were expected"));
  }
  if (Status status = expected(*header); !status) return status.error();

  Tag tag;
  copy_from_shared(record.last(kTagBytes), tag);
  const auto encoded = header->encode();  // the private copy, not the bytes on the bus
  const Status genuine = secret_.aead->open(secret_.iv_law.iv(header->position), encoded,
                                            record.subspan(RecordHeader::kBytes, header->length),
                                            tag, out.first(header->length), beside);
  if (!genuine) return crypto_error(concat("lane ", id_, ": ", genuine.error().message));

  ++next_;
  return header;
}

Status ReceiveLane::expected(const RecordHeader& header) const {
  if (header.lane != id_) {
    return crypto_error(concat("lane ", id_, ": record belongs to lane ", header.lane));
  }
  if (header.epoch != epoch_.number) {
    return crypto_error(concat("lane ", id_, ": record of key epoch ", header.epoch,
                               ", the lane is at ", epoch_.number));
  }
  if (header.position == next_) return {};
  const char* what = header.position < next_ ? " replayed, expected " : " after a gap, expected ";
  return crypto_error(concat("lane ", id_, ": position ", header.position, what, next_));
}

void ReceiveLane::rotate(LaneSecret secret) {
  secret_ = std::move(secret);
  ++epoch_.number;
  next_ = 0;
}

}  // namespace sealane
