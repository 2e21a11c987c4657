// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "ptx/text/declaration.h"

#include <bit>
#include <cstring>

#include "base/text.h"

namespace sealane::ptx {
namespace {

Error unexpected(const Token& token, std::string_view what) {
  return text_error(token.line,
                    concat("'", printable(token.text, 40), "' where ", what, " belongs"));
}

// [n][m]...; the first may be empty.
Status read_dimensions(Lexer& lexer, Variable& variable) {
  uint64_t count = 1;
  bool first = true;
  while (lexer.accept('[')) {
    if (first && lexer.accept(']')) {
      variable.unsized = true;
      first = false;
      continue;
    }
    first = false;
    const Token size = lexer.take();
    if (size.kind != TokenKind::integer) return unexpected(size, "an array's size");
    if (size.bits != 0 && count > kVariableBytesMax / size.bits) {
      return text_error(size.line, "the array is too large");
    }
    count *= size.bits;
    if (!lexer.accept(']')) return unexpected(lexer.peek(), "']'");
  }
  if (count > kVariableBytesMax / 16) return text_error(variable.line, "the array is too large");
  variable.bytes *= variable.unsized ? 0 : count;
  return {};
}

struct Initialiser {
  Lexer& lexer;
  Variable& variable;
  unsigned element;
  uint64_t at = 0;

  Status put(uint64_t bits) {
    if (at + element > kVariableBytesMax / 64) return text_error(variable.line, "too large");
    if (variable.initial.size() < at + element) variable.initial.resize(at + element);
    std::memcpy(variable.initial.data() + at, &bits, std::min(element, 8u));
    at += element;
    return {};
  }

  Status put_symbol(std::string_view name, unsigned shift) {
    Relocation relocation{at, std::string(name), 0, std::min(element, 8u), shift};
    if (lexer.accept('+')) {
      const Token addend = lexer.take();
      if (addend.kind != TokenKind::integer) return unexpected(addend, "an offset");
      relocation.addend = static_cast<int64_t>(addend.bits);
    }
    variable.relocations.push_back(std::move(relocation));
    return put(0);
  }

  uint64_t number(const Token& token, bool negative) const {
    if (token.kind == TokenKind::integer) return negative ? 0 - token.bits : token.bits;
    double value = 0;
    if (token.kind == TokenKind::single) {
      value = std::bit_cast<float>(static_cast<uint32_t>(token.bits));
      if (variable.type == Type::f32) return token.bits ^ (negative ? 0x80000000u : 0);
    } else {
      value = std::bit_cast<double>(token.bits);
    }
    if (negative) value = -value;
    if (element == 4) return std::bit_cast<uint32_t>(static_cast<float>(value));
    return std::bit_cast<uint64_t>(value);
  }

  Status one() {
    if (lexer.accept('{')) {
      if (lexer.accept('}')) return {};
      do {
        if (Status read = one(); !read) return read;
      } while (lexer.accept(','));
      return lexer.accept('}') ? Status{} : Status{unexpected(lexer.peek(), "'}'")};
    }
    const bool negative = lexer.accept('-');
    const Token token = lexer.take();
    if (token.kind == TokenKind::word) {
      if (token.text == "generic" && lexer.accept('(')) {
        const Token symbol = lexer.take();
        if (!lexer.accept(')')) return unexpected(lexer.peek(), "')'");
        return put_symbol(symbol.text, 0);
      }
      return put_symbol(token.text, 0);
    }
    const bool value = token.kind == TokenKind::integer || token.kind == TokenKind::real ||
                       token.kind == TokenKind::single;
    if (!value) return unexpected(token, "a value");
    if (token.kind == TokenKind::integer && lexer.accept('(')) {  // 0xFF00(symbol)
      if (token.bits == 0) return unexpected(token, "a mask");
      Token symbol = lexer.take();
      const bool generic = symbol.text == "generic" && lexer.accept('(');
      if (generic) symbol = lexer.take();
      if (generic && !lexer.accept(')')) return unexpected(lexer.peek(), "')'");
      const auto shift = static_cast<unsigned>(std::countr_zero(token.bits));
      if (Status read = put_symbol(symbol.text, shift); !read) return read;
      return lexer.accept(')') ? Status{} : Status{unexpected(lexer.peek(), "')'")};
    }
    return put(number(token, negative));
  }
};

// .align, .ptr and the type before a name.
Status read_prefix(Lexer& lexer, Variable& variable) {
  unsigned vector = 1;
  while (lexer.peek().kind == TokenKind::dot_word) {
    const Token word = lexer.take();
    Space ignored;
    if (word.text == "align") {
      const Token align = lexer.take();
      const bool sane = align.kind == TokenKind::integer && align.bits <= 65536 &&
                        std::has_single_bit(align.bits);
      if (!sane) return unexpected(align, "an alignment");
      variable.align = align.bits;
    } else if (word.text == "ptr" || space_named(word.text, ignored)) {
      // what a pointer points to: an optimiser's hint
    } else if (word.text == "v2" || word.text == "v4") {
      vector = word.text == "v2" ? 2 : 4;
    } else if (word.text == "texref" || word.text == "samplerref" || word.text == "surfref") {
      variable.opaque = true;
      variable.type = Type::b64;
    } else if (word.text == "attribute") {
      if (!lexer.accept('(')) return unexpected(lexer.peek(), "'('");
      while (!lexer.accept(')')) {
        const Token attribute = lexer.take();
        if (attribute.kind == TokenKind::end) return unexpected(attribute, "')'");
        if (attribute.is_dot("managed")) variable.managed = true;
      }
    } else {
      variable.type = type_named(word.text);
      if (variable.type == Type::none) return unexpected(word, "a type");
    }
  }
  if (variable.type == Type::none) return unexpected(lexer.peek(), "a type");
  variable.bytes = uint64_t{bytes_of(variable.type)} * vector;
  if (variable.align < variable.bytes && variable.bytes <= 16) variable.align = variable.bytes;
  return {};
}

}  // namespace

bool space_named(std::string_view name, Space& out) {
  if (const size_t detail = name.find("::"); detail != std::string_view::npos) {
    const std::string_view kind = name.substr(detail + 2);
    if (kind != "cta" && kind != "entry" && kind != "func") return false;
    name = name.substr(0, detail);
  }
  if (name == "global")
    out = Space::global;
  else if (name == "shared")
    out = Space::shared;
  else if (name == "local")
    out = Space::local;
  else if (name == "param")
    out = Space::param;
  else if (name == "const")
    out = Space::constant;
  else
    return false;
  return true;
}

Result<std::vector<Declared>> read_declaration(Lexer& lexer, Space space) {
  Variable common;
  common.space = space;
  common.line = lexer.peek().line;
  if (Status prefix = read_prefix(lexer, common); !prefix) return prefix.error();
  std::vector<Declared> out;
  do {
    Declared declared{common, 0};
    const Token name = lexer.take();
    if (name.kind != TokenKind::word) return unexpected(name, "a name");
    declared.variable.name = name.text;
    if (lexer.accept('<')) {
      const Token count = lexer.take();
      if (count.kind != TokenKind::integer || !lexer.accept('>'))
        return unexpected(count, "a count");
      declared.count = static_cast<uint32_t>(std::min<uint64_t>(count.bits, UINT32_MAX));
    }
    if (Status sized = read_dimensions(lexer, declared.variable); !sized) return sized.error();
    if (lexer.accept('=')) {
      const unsigned element = bytes_of(common.type);
      Initialiser initialiser{lexer, declared.variable, element};
      if (Status read = initialiser.one(); !read) return read.error();
      if (declared.variable.unsized) {
        declared.variable.unsized = false;
        declared.variable.bytes = initialiser.at;
      }
      if (initialiser.at > declared.variable.bytes) {
        return text_error(name.line, concat("too many values for ", name.text));
      }
    }
    out.push_back(std::move(declared));
  } while (lexer.accept(','));
  return out;
}

}  // namespace sealane::ptx
