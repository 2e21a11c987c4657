// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "base/json_writer.h"

#include <cstddef>

namespace sealane {
namespace {

// Bytes of the UTF-8 character at the front of `text`, 0 if there is none: overlong forms,
// surrogates and numbers beyond Unicode are not characters.
size_t character_bytes(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return 1;
  const size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if ((at(i) & 0xC0) != 0x80) return 0;
  }
  if (lead == 0xE0 && at(1) < 0xA0) return 0;
  if (lead == 0xED && at(1) > 0x9F) return 0;
  if (lead == 0xF0 && at(1) < 0x90) return 0;
  if (lead == 0xF4 && at(1) > 0x8F) return 0;
  return bytes;
}

void append_escaped(std::string& out, unsigned char c) {
  constexpr char kHex[] = "0123456789abcdef";
  if (c == '"' || c == '\\') {
    out += '\\';
    out += static_cast<char>(c);
  } else if (c == '\n') {
    out += "\\n";
  } else if (c < 0x20) {
    out += "\\u00";
    out += kHex[c >> 4];
    out += kHex[c & 15];
  } else {
    out += static_cast<char>(c);
  }
}

}  // namespace

JsonWriter& JsonWriter::string(std::string_view value) {
  out_ += '"';
  while (!value.empty()) {
    const size_t bytes = character_bytes(value);
    if (bytes == 1) {
      append_escaped(out_, static_cast<unsigned char>(value[0]));
    } else if (bytes == 0) {
      out_ += "\xEF\xBF\xBD";
    } else {
      out_ += value.substr(0, bytes);
    }
    value.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  out_ += '"';
  return *this;
}

}  // namespace sealane
