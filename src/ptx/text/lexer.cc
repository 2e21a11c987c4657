// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "ptx/text/lexer.h"

#include <charconv>
#include <cstring>
#include <string>

#include "ptx/types.h"

namespace sealane::ptx {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_char(char c) { return is_letter(c) || is_digit(c); }

bool read_integer(std::string_view digits, int base, uint64_t& out) {
  if (digits.ends_with('U') || digits.ends_with('u')) digits.remove_suffix(1);
  if (digits.empty()) return false;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), out, base);
  return end.ec == std::errc() && end.ptr == digits.data() + digits.size();
}

}  // namespace

size_t Lexer::word_end(size_t from) const {
  while (from < text_.size() && is_word_char(text_[from])) ++from;
  return from;
}

bool Lexer::skip_space() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') ++line_;
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\0') {
      ++at_;
    } else if (text_.substr(at_, 2) == "//") {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (text_.substr(at_, 2) == "/*") {
      const size_t end = std::min(text_.find("*/", at_ + 2), text_.size());
      for (; at_ < end; ++at_) line_ += text_[at_] == '\n' ? 1 : 0;
      at_ = std::min(end + 2, text_.size());
    } else {
      return true;
    }
  }
  return false;
}

void Lexer::read_number() {
  size_t end = word_end(at_);
  std::string_view word = text_.substr(at_, end - at_);
  token_.kind = TokenKind::integer;
  const char second = word.size() > 1 ? word[1] : ' ';
  bool good = true;
  if (word[0] == '0' && (second == 'x' || second == 'X')) {
    good = read_integer(word.substr(2), 16, token_.bits);
  } else if (word[0] == '0' && (second == 'f' || second == 'F') && word.size() == 10) {
    token_.kind = TokenKind::single;
    good = read_integer(word.substr(2), 16, token_.bits);
  } else if (word[0] == '0' && (second == 'd' || second == 'D') && word.size() == 18) {
    token_.kind = TokenKind::real;
    good = read_integer(word.substr(2), 16, token_.bits);
  } else if (word[0] == '0' && (second == 'b' || second == 'B')) {
    good = read_integer(word.substr(2), 2, token_.bits);
  } else {
    const bool point = end < text_.size() && text_[end] == '.' && end + 1 < text_.size() &&
                       is_digit(text_[end + 1]);
    const bool exponent = word.find_first_of("eE") != std::string_view::npos;
    if (point || exponent) {
      token_.kind = TokenKind::real;
      if (point) end = word_end(end + 1);
      if ((text_[end - 1] == 'e' || text_[end - 1] == 'E') && end < text_.size() &&
          (text_[end] == '-' || text_[end] == '+')) {
        end = word_end(end + 1);
      }
      word = text_.substr(at_, end - at_);
      double value = 0;
      const auto read = std::from_chars(word.data(), word.data() + word.size(), value);
      good = read.ec == std::errc() && read.ptr == word.data() + word.size();
      std::memcpy(&token_.bits, &value, 8);
    } else {
      const bool octal = word.size() > 1 && word[0] == '0' && is_digit(word[1]);
      good = read_integer(word, octal ? 8 : 10, token_.bits);
    }
  }
  if (!good) token_.kind = TokenKind::bad;
  token_.text = text_.substr(at_, end - at_);
  at_ = end;
}

void Lexer::read_text() {
  const size_t end = text_.find('"', at_ + 1);
  if (end == std::string_view::npos) {
    token_.kind = TokenKind::bad;
    token_.text = "\"";
    at_ = text_.size();
    return;
  }
  token_.kind = TokenKind::text;
  token_.text = text_.substr(at_ + 1, end - at_ - 1);
  at_ = end + 1;
}

void Lexer::advance() {
  token_ = {};
  const bool more = skip_space();
  token_.line = line_;
  start_ = at_;
  if (!more) return;
  const char c = text_[at_];
  if (is_digit(c)) return read_number();
  if (c == '"') return read_text();
  if (is_letter(c)) {
    const size_t end = word_end(at_);
    token_.kind = TokenKind::word;
    token_.text = text_.substr(at_, end - at_);
    at_ = end;
    return;
  }
  if (c == '.' && at_ + 1 < text_.size() && is_word_char(text_[at_ + 1])) {
    size_t end = word_end(at_ + 1);
    while (text_.substr(end, 2) == "::") end = word_end(end + 2);
    token_.kind = TokenKind::dot_word;
    token_.text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end;
    return;
  }
  token_.kind = TokenKind::sign;
  token_.text = text_.substr(at_++, 1);
}

bool Lexer::skip_braces() {
  int depth = 0;
  do {
    if (token_.kind == TokenKind::end) return false;
    if (token_.is('{')) ++depth;
    if (token_.is('}')) --depth;
    advance();
  } while (depth > 0);
  return true;
}

Type type_named(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "",      "pred", "b8",     "b16",  "b32",    "b64",    "b128",  "u8",    "u16",
      "u32",   "u64",  "s8",     "s16",  "s32",    "s64",    "u16x2", "s16x2", "f16",
      "f16x2", "bf16", "bf16x2", "tf32", "e4m3x2", "e5m2x2", "f32",   "f64",   "f32x2"};
  for (unsigned i = 1; i < std::size(kNames); ++i) {
    if (kNames[i] == name) return static_cast<Type>(i);
  }
  return Type::none;
}

unsigned bytes_of(Type type) {
  static constexpr uint8_t kBytes[] = {0, 4, 1, 2, 4, 8, 16, 1, 2, 4, 8, 1, 2, 4,
                                       8, 4, 4, 2, 4, 2, 4,  4, 2, 2, 4, 8, 8};
  return kBytes[static_cast<unsigned>(type)];
}

}  // namespace sealane::ptx
