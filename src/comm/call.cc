// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/call.h"

#include <array>
#include <string_view>

#include "base/text.h"

namespace sealane {
namespace {

constexpr uint8_t kLastCollective = static_cast<uint8_t>(Collective::all_to_all);

// Also of types that the library only moves, as sealane/comm.h numbers them.
std::string name(ElementType type) {
  constexpr std::array<std::string_view, 23> names = {"",
                                                      "float32",
                                                      "float64",
                                                      "float16",
                                                      "bfloat16",
                                                      "int32",
                                                      "int64",
                                                      "uint8",
                                                      "bool",
                                                      "int8",
                                                      "int16",
                                                      "uint16",
                                                      "uint32",
                                                      "uint64",
                                                      "complex32",
                                                      "complex64",
                                                      "complex128",
                                                      "float8_e5m2",
                                                      "float8_e4m3fn",
                                                      "float8_e5m2fnuz",
                                                      "float8_e4m3fnuz",
                                                      "float8_e8m0fnu",
                                                      "float4_e2m1fn_x2"};
  const auto number = static_cast<size_t>(type);
  return number < names.size() ? std::string(names[number]) : concat("type ", number);
}

std::string_view name(ReduceOperator op) {
  constexpr std::array<std::string_view, 9> names = {"",        "sum",  "avg", "min", "max",
                                                     "product", "band", "bor", "bxor"};
  static_assert(names.size() == static_cast<size_t>(kLastNamedOperator) + 1);
  return names[static_cast<size_t>(op)];
}

// Their bytes are those of what ranks agree by, and say nothing to anybody.
bool made_of_others(Collective collective) { return collective >= Collective::gather; }

}  // namespace

Call Call::labelled(const Label& label) const {
  Call out = *this;
  out.collective = label.collective.value_or(collective);
  if (label.type != ElementType::none) out.type = label.type;
  if (label.op != ReduceOperator::none) out.op = label.op;
  out.root = label.root.value_or(root);
  return out;
}

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
  if (made_of_others(collective)) {
    text += concat(" of ", name(type));
  } else if (collective != Collective::barrier) {
    text += concat(" of ", bytes, " bytes ", name(type));
    if (op != ReduceOperator::none) text += concat(" ", name(op));
  }
  if (collective == Collective::broadcast || collective == Collective::scatter) {
    text += concat(" from rank ", root);
  }
  if (collective == Collective::reduce || collective == Collective::gather ||
      collective == Collective::send) {
    text += concat(" to rank ", root);
  }
  return text;
}

std::string differ(const Call& theirs, const Call& own) {
  return concat("called ", theirs.describe(), " where this rank called ", own.describe(),
                ": all ranks must make the same calls");
}

}  // namespace sealane
