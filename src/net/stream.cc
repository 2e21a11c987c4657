// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "net/stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "net/copy_ascending.h"
#include "net/device_memory.h"

namespace sealane::net {
namespace {

constexpr size_t kLengthBytes = 4;
constexpr size_t kHeadBytes = kLengthBytes + RecordHeader::kBytes;
constexpr size_t kPad = 12;  // so that a record's payload is aligned to a cache line
constexpr uint8_t kMore = 0;
constexpr uint8_t kLast = 1;
constexpr uint8_t kReason = 2;  // a record that says why, backwards
constexpr size_t kReasonMax = 256;
constexpr size_t kReasonFrameMax = kLengthBytes + record_bytes(kReasonMax);

// What one turn moves at most, so that no stream starves its neighbours of the same worker.
constexpr size_t kTurnBytes = 2 << 20;

uint32_t lane_id(uint8_t stream, bool back) { return uint32_t{stream} << 1 | (back ? 1 : 0); }

size_t staging_bytes(uint32_t chunk_bytes) {
  return kPad + kLengthBytes + record_bytes(std::max<size_t>(chunk_bytes, kReasonMax));
}

template <typename Lane>
std::optional<Lane> make_lane(uint8_t stream, bool back, const Engine* engine,
                              std::optional<Key>& key) {
  if (!key) return std::nullopt;
  return std::optional<Lane>(std::in_place, lane_id(stream, back),
                             KeyChain(std::move(*key), *engine));
}

}  // namespace

bool hung_up(const Socket& socket) {
  pollfd entry{socket.descriptor(), POLLRDHUP, 0};
  return poll(&entry, 1, 0) == 1;
}

bool Stream::serve() {
  const std::lock_guard lock(mutex_);
  const auto of = end();
  if (closed_ || of == nullptr) return false;
  const End::Serving serving(*of);
  return serve_open();
}

void Stream::unwatched(const Error& error) {
  if (const auto of = end()) of->fail(error);
}

void Stream::close() {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = true;
    shutdown(socket_.descriptor(), SHUT_RDWR);
  }
  worker_.remove(shared_from_this());
}

// ---- Sending ----

SendStream::SendStream(Socket socket, uint8_t index, Worker& worker,
                       const std::shared_ptr<SendEnd>& end, const Engine* engine,
                       std::optional<Key> send, std::optional<Key> back, uint32_t chunk_bytes,
                       std::vector<uint8_t> prefix)
    : Stream(std::move(socket), index, worker),
      end_(end),
      lane_(make_lane<RekeyingSendLane>(index, false, engine, send)),
      back_(make_lane<RekeyingReceiveLane>(index, true, engine, back)),
      staging_(staging_bytes(chunk_bytes)),
      prefix_(std::move(prefix)) {}

bool SendStream::serve_open() {
  const auto end = end_.lock();
  if (end == nullptr) return false;
  if (end->failed()) {
    shutdown(socket_.descriptor(), SHUT_RDWR);
    return false;
  }
  if (!hear_back()) {
    if (!end->failed()) end->stream_ended(index_, chunk_.has_value());
    return false;
  }
  if (!send_prefix()) return true;
  size_t moved = 0;
  while (chunk_ || load_next()) {
    if (end->failed()) return true;  // it has kicked this stream, too
    if (!send_frame()) return true;
    moved += chunk_->bytes.size();
    end->chunk_sent(*chunk_);
    chunk_.reset();
    if (moved >= kTurnBytes) {
      kick();
      return true;
    }
  }
  return true;
}

bool SendStream::send_here() {
  const ExitHold hold;
  if (!hold) return false;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || closed_ || chunk_ || prefix_sent_ < prefix_.size()) return false;
  const auto end = end_.lock();
  if (end == nullptr) return false;
  const End::Serving serving(*end);
  if (end->failed() || !end->waits_alone(index_) || !load_next()) return false;
  if (end->failed() || !send_frame()) return false;
  end->chunk_sent(*chunk_);
  chunk_.reset();
  return true;
}

// Its bytes; those of GPU memory by a window in private memory.
Bytes SendStream::look_at_chunk() {
  const DeviceMemory* const device = chunk_->request->device.get();
  if (device == nullptr) return chunk_->bytes;
  window_.resize(std::max(window_.size(), chunk_->bytes.size()));
  const MutableBytes window = MutableBytes(window_).first(chunk_->bytes.size());
  if (Status status = device->fetch(chunk_->bytes, window); !status) {
    end_.lock()->fail(status.error());
  }
  return window;
}

bool SendStream::load_next() {
  const auto end = end_.lock();
  chunk_ = end->next_chunk(index_);
  if (!chunk_) return false;
  RecordHeader header;
  header.operation = chunk_->message;
  header.chunk = chunk_->index;
  header.phase = chunk_->last ? kLast : kMore;
  header.length = static_cast<uint32_t>(chunk_->bytes.size());
  const Bytes bytes = look_at_chunk();
  if (end->failed()) return true;
  const size_t record = record_bytes(bytes.size());
  store_le(&staging_[kPad], static_cast<uint32_t>(record));
  const MutableBytes out = MutableBytes(staging_).subspan(kPad + kLengthBytes, record);
  sent_bytes_ = 0;
  plain_ = {};
  if (lane_) {
    frame_bytes_ = kLengthBytes + record;
    const Status sealed = lane_->seal_exposed(header, in_place(bytes), out);
    if (!sealed) end->fail(sealed.error());
    return true;
  }
  const auto encoded = header.encode();
  std::copy(encoded.begin(), encoded.end(), out.begin());
  frame_bytes_ = kHeadBytes;
  plain_ = bytes;  // straight from the caller's memory, and no tag
  store_le(&staging_[kPad], static_cast<uint32_t>(RecordHeader::kBytes + bytes.size()));
  return true;
}

bool SendStream::send_prefix() {
  if (prefix_sent_ == prefix_.size()) return true;
  while (prefix_sent_ < prefix_.size()) {
    const ptrdiff_t count = socket_.send(Bytes(prefix_).subspan(prefix_sent_));
    if (count < 0) end_.lock()->fail(peer_gone());
    if (count <= 0) return false;
    prefix_sent_ += static_cast<size_t>(count);
  }
  end_.lock()->stream_joined();
  return true;
}

bool SendStream::send_frame() {
  while (sent_bytes_ < frame_bytes_ + plain_.size()) {
    const Bytes frame =
        Bytes(staging_).subspan(kPad, frame_bytes_).subspan(std::min(sent_bytes_, frame_bytes_));
    const ptrdiff_t count =
        plain_.empty()
            ? socket_.send(frame)
            : socket_.send_both(frame, plain_.subspan(sent_bytes_ + frame.size() - frame_bytes_));
    if (count < 0) end_.lock()->fail(peer_gone());
    if (count <= 0) return false;
    sent_bytes_ += static_cast<size_t>(count);
  }
  return true;
}

bool SendStream::hear_back() {
  std::array<uint8_t, 512> piece;
  while (true) {
    const ptrdiff_t count = socket_.receive(piece);
    if (count == 0) return true;
    if (count < 0) return false;
    heard_.insert(heard_.end(), piece.begin(), piece.begin() + count);
    if (heard_.size() < kLengthBytes) continue;
    const size_t length = load_le<uint32_t>(heard_.data());
    const auto end = end_.lock();
    if (!back_ || length > kReasonFrameMax || length < record_bytes(0)) {
      end->fail(crypto_error("sent what no receiver sends"));
      return false;
    }
    if (heard_.size() < kLengthBytes + length) continue;
    std::vector<uint8_t> text(length - record_bytes(0));
    const auto header = back_->open(Bytes(heard_).subspan(kLengthBytes, length), text);
    end->fail(!header ? header.error()
                      : peer_error("gave up: " + printable(as_text(text), kReasonMax)));
    return false;
  }
}

// ---- Receiving ----

ReceiveStream::ReceiveStream(Socket socket, uint8_t index, Worker& worker,
                             const std::shared_ptr<ReceiveEnd>& end, const Engine* engine,
                             std::optional<Key> receive, std::optional<Key> back,
                             uint32_t chunk_bytes)
    : Stream(std::move(socket), index, worker),
      end_(end),
      lane_(make_lane<RekeyingReceiveLane>(index, false, engine, receive)),
      back_(make_lane<RekeyingSendLane>(index, true, engine, back)),
      chunk_bytes_(chunk_bytes),
      buffer_(staging_bytes(chunk_bytes) + kHeadBytes) {}

bool ReceiveStream::serve_open() {
  const auto end = end_.lock();
  if (end == nullptr) return false;
  size_t moved = 0;
  while (!end->failed()) {
    const size_t before = header_ ? header_->length : 0;
    switch (step(*end)) {
      case Progress::ended:
        break;
      case Progress::later:
        return true;
      case Progress::more:
        if (!header_) moved += before;
        if (moved >= kTurnBytes) {
          kick();
          return true;
        }
        continue;
    }
    break;
  }
  if (end->failed()) tell_why(*end);
  shutdown(socket_.descriptor(), SHUT_RDWR);
  return false;
}

// Nothing of a header is acted upon before its tag is verified, but how long the record is: a wrong
// message's number would otherwise be waited for. Without sealing there is nothing to verify, and
// the payload is read to where it belongs.
ReceiveStream::Progress ReceiveStream::step(ReceiveEnd& end) {
  if (!header_) return read_head(end);
  if (!lane_ && !place_) return find_place(end);
  if (!whole_) return read_payload(end);
  return place_ ? deliver(end) : find_place(end);
}

ReceiveStream::Progress ReceiveStream::give_up(ReceiveEnd& end, const Error& error) {
  end.fail(error);
  return Progress::ended;
}

ptrdiff_t ReceiveStream::read_some(ReceiveEnd& end, MutableBytes room, MutableBytes behind) {
  const ptrdiff_t count =
      behind.empty() ? socket_.receive(room) : socket_.receive_both(room, behind);
  if (count < 0 && filled_ == 0) end.stream_ended(index_);
  if (count < 0 && filled_ != 0) end.fail(peer_gone());
  return count;
}

ReceiveStream::Progress ReceiveStream::read_head(ReceiveEnd& end) {
  if (filled_ < kHeadBytes) {
    const MutableBytes room = MutableBytes(buffer_).subspan(kPad + filled_, kHeadBytes - filled_);
    const ptrdiff_t count = read_some(end, room);
    if (count < 0) return Progress::ended;
    filled_ += static_cast<size_t>(count);
    if (filled_ < kHeadBytes) return count == 0 ? Progress::later : Progress::more;
  }
  const auto header = RecordHeader::parse(Bytes(buffer_).subspan(kPad + kLengthBytes));
  const size_t length = load_le<uint32_t>(&buffer_[kPad]);
  if (!header) return give_up(end, header.error());
  header_ = *header;
  if (header->length > chunk_bytes_ || kLengthBytes + length != whole_bytes() ||
      header->phase > kLast) {
    return give_up(end, crypto_error("sent a record of an impossible size or kind"));
  }
  return Progress::more;
}

size_t ReceiveStream::whole_bytes() const {
  return kHeadBytes + header_->length + (lane_ ? kTagBytes : 0);
}

ReceiveStream::Progress ReceiveStream::read_payload(ReceiveEnd& end) {
  const size_t whole = whole_bytes();
  const bool direct = !lane_ && place_->device == nullptr;
  while (filled_ < whole) {
    const size_t rest = whole - filled_;
    // With the head of the next record, which saves a call.
    const ptrdiff_t count =
        direct ? read_some(end, place_->bytes.subspan(filled_ - kHeadBytes, rest),
                           MutableBytes(buffer_).subspan(kPad + whole, kHeadBytes))
               : read_some(end, MutableBytes(buffer_).subspan(kPad + filled_, rest + kHeadBytes));
    if (count < 0) return Progress::ended;
    if (count == 0) return Progress::later;
    filled_ += static_cast<size_t>(count);
  }
  if (lane_) {
    const MutableBytes record =
        MutableBytes(buffer_).subspan(kPad + kLengthBytes, record_bytes(header_->length));
    const auto verified =
        lane_->open(record, record.subspan(RecordHeader::kBytes, header_->length));
    if (!verified) return give_up(end, verified.error());
    header_ = *verified;
  }
  whole_ = true;
  return Progress::more;
}

ReceiveStream::Progress ReceiveStream::find_place(ReceiveEnd& end) {
  // Before anybody else could post it: whoever posts after this looks at the flag.
  stalled_.store(true, std::memory_order_seq_cst);
  const auto place = end.place(header_->operation, header_->chunk, header_->length);
  if (place && !*place) {
    if (hung_up(socket_)) end.stream_brings_from(index_, header_->operation);
    return Progress::later;
  }
  stalled_.store(false, std::memory_order_release);
  if (!place) return give_up(end, place.error());
  place_ = **place;
  return Progress::more;
}

ReceiveStream::Progress ReceiveStream::deliver(ReceiveEnd& end) {
  const Bytes payload = Bytes(buffer_).subspan(kPad + kHeadBytes, header_->length);
  if (place_->device != nullptr) {
    const Status stored = place_->device->store(place_->bytes, payload);
    if (!stored) return give_up(end, stored.error());
  } else if (lane_) {
    copy_ascending(payload, place_->bytes.data());
  }
  const Status fits = end.chunk_received(header_->operation, header_->chunk, header_->length,
                                         header_->phase == kLast);
  if (!fits) return give_up(end, fits.error());
  const size_t whole = whole_bytes();
  filled_ -= whole;
  std::memmove(&buffer_[kPad], &buffer_[kPad + whole], filled_);
  header_.reset();
  place_.reset();
  whole_ = false;
  return Progress::more;
}

// As far as the socket takes it at once: it has carried nothing in this direction yet.
void ReceiveStream::tell_why(const ReceiveEnd& end) {
  if (index_ != 0 || !back_) return;
  const std::string why = end.failure().message.substr(0, kReasonMax);
  std::vector<uint8_t> frame(kLengthBytes + record_bytes(why.size()));
  store_le(frame.data(), static_cast<uint32_t>(frame.size() - kLengthBytes));
  RecordHeader header;
  header.phase = kReason;
  header.length = static_cast<uint32_t>(why.size());
  if (!back_->seal_exposed(header, in_place(as_bytes(why)),
                           MutableBytes(frame).subspan(kLengthBytes))) {
    return;
  }
  static_cast<void>(socket_.send(frame));
}

}  // namespace sealane::net
