// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Pieces of PTX text. A word is an identifier (with %, $ or _); a dot word is a directive or a
// modifier, its text without the dot.
//
// Holds views into the text, which must outlive it. One thread at a time.
#pragma once

#include <cstdint>
#include <string_view>

namespace sealane::ptx {

enum class TokenKind : uint8_t { end, word, dot_word, integer, real, single, text, sign, bad };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;
  uint32_t line = 0;
  uint64_t bits = 0;  // of an integer; of a real as double, of a single as float
  bool is(char sign) const { return kind == TokenKind::sign && text[0] == sign; }
  bool is_dot(std::string_view word) const { return kind == TokenKind::dot_word && text == word; }
  bool is_word(std::string_view word) const { return kind == TokenKind::word && text == word; }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text, uint32_t line = 1) : text_(text), line_(line) { advance(); }

  const Token& peek() const { return token_; }
  Token take() {
    const Token taken = token_;
    advance();
    return taken;
  }
  // Takes the sign if it is next.
  bool accept(char sign) {
    if (!token_.is(sign)) return false;
    advance();
    return true;
  }
  // Where the token that peek() shows begins.
  size_t position() const { return start_; }
  // Skips what is between braces, the opening one being next; false: they do not balance.
  bool skip_braces();

 private:
  void advance();
  bool skip_space();
  void read_number();
  void read_text();
  size_t word_end(size_t from) const;

  std::string_view text_;
  size_t at_ = 0;
  size_t start_ = 0;
  uint32_t line_ = 1;
  Token token_;
};

}  // namespace sealane::ptx
