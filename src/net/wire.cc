// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "net/wire.h"

#include <arpa/inet.h>

#include <algorithm>

#include "base/text.h"

namespace sealane::net {
namespace {

constexpr std::array<uint8_t, 8> kHandleMagic = {'S', 'e', 'a', 'l', 'n', 'e', 't', 'H'};
constexpr std::array<uint8_t, 8> kHelloMagic = {'S', 'e', 'a', 'l', 'n', 'e', 't', 'C'};
constexpr uint32_t kNoRank = ~uint32_t{0};

// Fixed fields one after the other.
class Writer {
 public:
  explicit Writer(MutableBytes out) : out_(out) {}
  template <size_t N>
  void put(const std::array<uint8_t, N>& bytes) {
    std::copy(bytes.begin(), bytes.end(), out_.begin() + static_cast<ptrdiff_t>(at_));
    at_ += N;
  }
  template <typename Int>
  void put_int(Int value) {
    store_le(&out_[at_], value);
    at_ += sizeof value;
  }
  void put_job(const std::optional<JobRank>& job) {
    put_int(job ? job->rank : kNoRank);
    put_int(job ? job->size : 0);
  }

 private:
  MutableBytes out_;
  size_t at_ = 0;
};

class Reader {
 public:
  explicit Reader(Bytes in) : in_(in) {}
  template <size_t N>
  std::array<uint8_t, N> take() {
    std::array<uint8_t, N> out;
    std::copy_n(in_.begin() + static_cast<ptrdiff_t>(at_), N, out.begin());
    at_ += N;
    return out;
  }
  template <typename Int>
  Int take_int() {
    const Int value = load_le<Int>(&in_[at_]);
    at_ += sizeof value;
    return value;
  }
  std::optional<JobRank> take_job() {
    JobRank job;
    job.rank = take_int<uint32_t>();
    job.size = take_int<uint32_t>();
    if (job.rank == kNoRank) return std::nullopt;
    return job;
  }

 private:
  Bytes in_;
  size_t at_ = 0;
};

Error other_version(uint8_t version) {
  return peer_error(concat("speaks version ", version,
                           " of the connection protocol, this one version ", kProtocolVersion,
                           ": install the same Sealane on all hosts"));
}

template <size_t N>
bool is_encoding(const std::array<uint8_t, N>& encoded, Bytes bytes) {
  return std::equal(encoded.begin(), encoded.end(), bytes.begin());
}

bool plausible(const std::optional<JobRank>& job) { return !job || job->rank < job->size; }

}  // namespace

std::string Address::text() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const bool v4 = std::equal(kMapped.begin(), kMapped.end(), ip.begin());
  const void* from = v4 ? ip.data() + kMapped.size() : ip.data();
  if (inet_ntop(v4 ? AF_INET : AF_INET6, from, text.data(), text.size()) == nullptr) return "?";
  std::string out = text.data();
  return scope == 0 ? out : concat(out, "%", scope);
}

void Handle::encode(MutableBytes out) const {
  std::fill(out.begin(), out.end(), uint8_t{0});
  Writer writer(out);
  writer.put(kHandleMagic);
  writer.put_int(version);
  writer.put_int(uint8_t{0});
  writer.put_int(address.port);
  writer.put_int(address.scope);
  writer.put(address.ip);
  writer.put(listener);
  writer.put(process);
}

Result<Handle> Handle::parse(Bytes bytes) {
  if (bytes.size() < kBytes) return peer_error("a connection handle cut short");
  std::array<uint8_t, kBytes> copy;
  copy_from_shared(bytes.first(kBytes), copy);
  Reader reader(copy);
  if (reader.take<8>() != kHandleMagic) {
    return peer_error(
        "a connection handle that is not Sealane's: do all ranks use the same network plugin?");
  }
  Handle handle;
  handle.version = reader.take_int<uint8_t>();
  reader.take_int<uint8_t>();
  handle.address.port = reader.take_int<uint16_t>();
  handle.address.scope = reader.take_int<uint32_t>();
  handle.address.ip = reader.take<16>();
  handle.listener = reader.take<16>();
  handle.process = reader.take<16>();
  std::array<uint8_t, kBytes> encoded;
  handle.encode(encoded);
  const bool contradicts = handle.version == kProtocolVersion && !is_encoding(encoded, copy);
  if (handle.address.port == 0 || contradicts) {
    return peer_error("a connection handle that was changed or cut on the way");
  }
  return handle;
}

Status Handle::check_version() const {
  return version == kProtocolVersion ? Status() : Status(other_version(version));
}

std::array<uint8_t, Hello::kBytes> Hello::encode() const {
  std::array<uint8_t, kBytes> out{};
  Writer writer(out);
  writer.put(kHelloMagic);
  writer.put_int(kProtocolVersion);
  writer.put_int(stream);
  writer.put_int(streams);
  writer.put_int(static_cast<uint8_t>(sealed ? 1 : 0));
  writer.put_int(chunk_bytes);
  writer.put_job(job);
  writer.put(listener);
  writer.put(connection);
  writer.put(process);
  writer.put(pair);
  writer.put_int(communicator);
  return out;
}

Result<Hello> Hello::parse(Bytes bytes) {
  if (bytes.size() < kBytes) return peer_error("a greeting cut short");
  Reader reader(bytes);
  if (reader.take<8>() != kHelloMagic) return peer_error("a stranger connected");
  if (const auto version = reader.take_int<uint8_t>(); version != kProtocolVersion) {
    return other_version(version);
  }
  Hello hello;
  hello.stream = reader.take_int<uint8_t>();
  hello.streams = reader.take_int<uint8_t>();
  hello.sealed = reader.take_int<uint8_t>() != 0;
  hello.chunk_bytes = reader.take_int<uint32_t>();
  hello.job = reader.take_job();
  hello.listener = reader.take<16>();
  hello.connection = reader.take<16>();
  hello.process = reader.take<16>();
  hello.pair = reader.take<16>();
  hello.communicator = reader.take_int<uint64_t>();
  // One meaning, one encoding: what is not looked at here would not be in the connection's key.
  if (!is_encoding(hello.encode(), bytes) || hello.stream >= hello.streams ||
      !plausible(hello.job)) {
    return peer_error("a greeting that contradicts itself");
  }
  return hello;
}

std::optional<Nonce> Hello::listener_of(Bytes bytes) {
  constexpr size_t kListenerAt = 24;
  if (bytes.size() < kBytes || !is_encoding(kHelloMagic, bytes)) return std::nullopt;
  return Reader(bytes.subspan(kListenerAt)).take<16>();
}

std::array<uint8_t, Answer::kBytes> Answer::encode() const {
  std::array<uint8_t, kBytes> out{};
  Writer writer(out);
  writer.put_int(static_cast<uint8_t>(resume ? 1 : 0));
  writer.put(std::array<uint8_t, 7>{});
  writer.put_job(job);
  writer.put(nonce);
  writer.put(process);
  return out;
}

Result<Answer> Answer::parse(Bytes bytes) {
  if (bytes.size() != kBytes) return peer_error("an answer of the wrong length");
  Reader reader(bytes);
  Answer answer;
  answer.resume = reader.take_int<uint8_t>() != 0;
  reader.take<7>();
  answer.job = reader.take_job();
  answer.nonce = reader.take<16>();
  answer.process = reader.take<16>();
  if (!is_encoding(answer.encode(), bytes) || !plausible(answer.job)) {
    return peer_error("an answer that contradicts itself");
  }
  return answer;
}

void append_frame(std::vector<uint8_t>& out, FrameKind kind, Bytes payload) {
  const size_t at = out.size();
  out.resize(at + kFrameHeadBytes);
  store_le(&out[at], static_cast<uint32_t>(payload.size()));
  out[at + 4] = static_cast<uint8_t>(kind);
  out.insert(out.end(), payload.begin(), payload.end());
}

Result<std::optional<Frame>> take_frame(std::vector<uint8_t>& bytes) {
  if (bytes.size() < kFrameHeadBytes) return std::optional<Frame>();
  const size_t length = load_le<uint32_t>(bytes.data());
  const uint8_t kind = bytes[4];
  if (length > kFramePayloadMax || kind < static_cast<uint8_t>(FrameKind::answer) ||
      kind > static_cast<uint8_t>(FrameKind::refusal)) {
    return peer_error("the other side sent what is no part of a greeting");
  }
  if (bytes.size() - kFrameHeadBytes < length) return std::optional<Frame>();
  const auto from = bytes.begin() + kFrameHeadBytes;
  Frame frame{static_cast<FrameKind>(kind), {from, from + static_cast<ptrdiff_t>(length)}};
  bytes.erase(bytes.begin(), from + static_cast<ptrdiff_t>(length));
  return std::optional<Frame>(std::move(frame));
}

}  // namespace sealane::net
