// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What travels before a connection has keys, all of it in the clear and none of it trusted:
//
//   Handle   where a listener is; carried to the other side by somebody else's bootstrap
//   Hello    the first bytes of every TCP connection, from whoever connects
//   frames   length (4 bytes), kind (1), payload: the rest of the greeting (greeting.h)
//
// Every field goes into the connection's key (greeting.h), so a changed byte ends in a refusal and
// never in a connection somebody else chose. Parsers copy, check and return; they are fuzzed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace sealane::net {

constexpr uint8_t kProtocolVersion = 2;

using Nonce = std::array<uint8_t, 16>;

// Who a process is, for as long as it lives. Random; says nothing about trust.
using ProcessId = std::array<uint8_t, 16>;

// Names a secret two processes share; derived from it.
using PairId = std::array<uint8_t, 16>;

// An IPv4 address is stored as IPv6 does (::ffff:a.b.c.d).
struct Address {
  std::array<uint8_t, 16> ip{};
  uint32_t scope = 0;  // of a link-local address
  uint16_t port = 0;

  std::string text() const;  // without the port
  bool operator==(const Address&) const = default;
};

struct Handle {
  static constexpr size_t kBytes = 128;  // what NCCL carries

  uint8_t version = kProtocolVersion;
  Address address;
  Nonce listener{};
  ProcessId process{};

  void encode(MutableBytes out) const;  // kBytes
  // A peer error if it is no handle of ours. One of another version is given, with its address and
  // listener, so that who waits there can be told; check_version() says whether it can be used.
  static Result<Handle> parse(Bytes bytes);
  Status check_version() const;
};

// Ranks are a job's, not a communicator's. Unknown where no launcher said.
struct JobRank {
  uint32_t rank = 0;
  uint32_t size = 0;
  bool operator==(const JobRank&) const = default;
};

struct Hello {
  static constexpr size_t kBytes = 96;  // in every version

  uint8_t stream = 0;   // 0 greets; the others only join it
  uint8_t streams = 1;  // of this connection
  bool sealed = true;
  uint32_t chunk_bytes = 0;
  Nonce listener{};    // from the handle: whom this is for
  Nonce connection{};  // of the connecting side, fresh
  ProcessId process{};
  PairId pair{};  // a secret that may still be known, or zeros; of who joins: join_proof()
  uint64_t communicator = 0;  // for which the connection is; 0 where nobody says
  std::optional<JobRank> job;

  std::array<uint8_t, kBytes> encode() const;
  static Result<Hello> parse(Bytes bytes);
  // For whom it is, in every version; nothing if it is no greeting.
  static std::optional<Nonce> listener_of(Bytes bytes);
};

// The reply to a Hello of stream 0.
struct Answer {
  static constexpr size_t kBytes = 48;

  bool resume = false;  // the pair's secret is known: no session is needed
  Nonce nonce{};        // of the accepting side, fresh
  ProcessId process{};
  std::optional<JobRank> job;

  std::array<uint8_t, kBytes> encode() const;
  static Result<Answer> parse(Bytes bytes);
};

enum class FrameKind : uint8_t {
  answer = 1,
  session,  // a piece of a TLS session
  confirm,  // proof of the connection's key
  refusal,  // why this end gives up, as text; the last frame
};

struct Frame {
  FrameKind kind;
  std::vector<uint8_t> payload;
};

constexpr size_t kFrameHeadBytes = 5;
constexpr size_t kFramePayloadMax = 64 << 10;

void append_frame(std::vector<uint8_t>& out, FrameKind kind, Bytes payload);

// Takes the first whole frame off `bytes`; nothing if none is whole yet. A peer error if what is
// there can never be one.
Result<std::optional<Frame>> take_frame(std::vector<uint8_t>& bytes);

}  // namespace sealane::net
