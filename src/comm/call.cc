// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/call.h"

#include <array>
#include <string_view>

#include "base/text.h"

namespace sealane {
namespace {

constexpr uint8_t kLastCollective = static_cast<uint8_t>(Collective::receive);

std::string_view name(ElementType type) {
  constexpr std::array<std::string_view, 8> names = {"",         "float32", "float64", "float16",
                                                     "bfloat16", "int32",   "int64",   "uint8"};
  return names[static_cast<size_t>(type)];
}

std::string_view name(ReduceOperator op) {
  constexpr std::array<std::string_view, 5> names = {"", "sum", "avg", "min", "max"};
  return names[static_cast<size_t>(op)];
}

}  // namespace

void Call::write(RecordHeader& header) const {
  header.operation = number;
  header.collective = static_cast<uint8_t>(static_cast<uint8_t>(collective) + 1);
  header.type = type;
  header.op = op;
  header.root = static_cast<uint16_t>(root);
  header.call_bytes = bytes;
}

std::optional<Call> Call::of(const RecordHeader& header) {
  if (header.collective == 0 || header.collective > kLastCollective + 1) return std::nullopt;
  return Call{header.operation, static_cast<Collective>(header.collective - 1),
              header.type,      header.op,
              header.root,      header.call_bytes};
}

// As a header that says nothing else: one encoding, checked in one place.
std::vector<uint8_t> Call::encode() const {
  RecordHeader header;
  write(header);
  const auto encoded = header.encode();
  return {encoded.begin(), encoded.end()};
}

std::optional<Call> Call::decode(Bytes bytes) {
  const auto header = RecordHeader::parse(bytes);
  return header ? of(*header) : std::nullopt;
}

std::string Call::describe() const {
  std::string text = concat(to_string(collective), " ", number);
  if (collective != Collective::barrier) {
    text += concat(" of ", bytes, " bytes ", name(type));
    if (op != ReduceOperator::none) text += concat(" ", name(op));
  }
  if (collective == Collective::broadcast) text += concat(" from rank ", root);
  if (collective == Collective::reduce || collective == Collective::send) {
    text += concat(" to rank ", root);
  }
  return text;
}

std::string differ(const Call& theirs, const Call& own) {
  return concat("called ", theirs.describe(), " where this rank called ", own.describe(),
                ": all ranks must make the same calls");
}

}  // namespace sealane
