// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "ptx/text/body.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "base/text.h"
#include "ptx/text/declaration.h"

namespace sealane::ptx {
namespace {

constexpr size_t kStatementsMax = 4'000'000;
constexpr size_t kScopesMax = 1'000'000;

class BodyParser {
 public:
  explicit BodyParser(const FunctionText& function)
      : function_(function), lexer_(function.body, function.line) {}

  Result<Body> parse() {
    open_scope();
    for (const auto* list : {&function_.parameters, &function_.returns}) {
      for (const Variable& variable : *list) add_variable(variable);
    }
    while (lexer_.peek().kind != TokenKind::end) {
      if (Status read = statement(); !read) return read.error();
    }
    if (scopes_.size() != 1) return unexpected("'}'");
    return std::move(body_);
  }

 private:
  struct Named {
    bool is_register = false;
    uint32_t index = 0;
  };
  struct Family {  // .reg .b32 %r<100>
    uint32_t count = 0;
    Type type = Type::none;
  };
  struct Scope {
    uint32_t id = 0;
    std::unordered_map<std::string_view, Named> names;
    std::unordered_map<std::string_view, Family> families;
  };

  Error unexpected(std::string_view what) const {
    const Token& token = lexer_.peek();
    return text_error(token.line,
                      concat("'", printable(token.text, 40), "' where ", what, " belongs"));
  }

  void open_scope() {
    const auto id = static_cast<uint32_t>(body_.scope_parents.size());
    body_.scope_parents.push_back(scopes_.empty() ? id : scopes_.back().id);
    scopes_.push_back({id, {}, {}});
  }

  void add_variable(const Variable& variable) {
    body_.variables.push_back(variable);
    const auto index = static_cast<uint32_t>(body_.variables.size() - 1);
    names_.push_back(std::make_unique<std::string>(variable.name));
    scopes_.back().names[*names_.back()] = {false, index};
  }

  uint32_t add_register(Scope& scope, std::string_view name, Type type) {
    const auto index = static_cast<uint32_t>(body_.registers.size());
    body_.registers.push_back(type);
    scope.names[name] = {true, index};
    return index;
  }

  // %r17 of a family %r<100>: registers appear when they are first named.
  bool find_in_family(Scope& scope, std::string_view name, Named& out) {
    const size_t digits = name.find_last_not_of("0123456789") + 1;
    if (digits == 0 || digits == name.size() || name.size() - digits > 9) return false;
    const auto family = scope.families.find(name.substr(0, digits));
    if (family == scope.families.end()) return false;
    uint32_t number = 0;
    for (const char c : name.substr(digits)) number = number * 10 + static_cast<uint32_t>(c - '0');
    if (number >= family->second.count) return false;
    out = {true, add_register(scope, name, family->second.type)};
    return true;
  }

  bool find(std::string_view name, Named& out) {
    for (size_t i = scopes_.size(); i-- > 0;) {
      const auto found = scopes_[i].names.find(name);
      if (found != scopes_[i].names.end()) {
        out = found->second;
        return true;
      }
      if (find_in_family(scopes_[i], name, out)) return true;
    }
    return false;
  }

  Status declare(Space space) {
    auto declared = read_declaration(lexer_, space);
    if (!declared) return declared.error();
    for (const Declared& one : *declared) {
      if (!one.variable.initial.empty()) {
        return text_error(one.variable.line, "a value for a variable of a function");
      }
      add_variable(one.variable);
    }
    return lexer_.accept(';') ? Status{} : Status{unexpected("';'")};
  }

  Status declare_registers() {
    const uint32_t line = lexer_.peek().line;
    auto declared = read_declaration(lexer_, Space::local);
    if (!declared) return declared.error();
    for (const Declared& one : *declared) {
      names_.push_back(std::make_unique<std::string>(one.variable.name));
      const std::string_view name = *names_.back();
      const unsigned bytes = bytes_of(one.variable.type);
      if (bytes > 8 || one.variable.bytes != bytes) {
        return text_error(line, concat("register ", printable(name, 40),
                                       ": vectors and 128-bit registers are not supported"));
      }
      if (one.count > 0) {
        scopes_.back().families[name] = {one.count, one.variable.type};
      } else {
        add_register(scopes_.back(), name, one.variable.type);
      }
    }
    return lexer_.accept(';') ? Status{} : Status{unexpected("';'")};
  }

  Status directive() {
    const Token word = lexer_.take();
    Space space;
    if (word.text == "reg") return declare_registers();
    if (space_named(word.text, space)) {
      const bool here = space == Space::local || space == Space::shared || space == Space::param;
      if (!here) return text_error(word.line, "a module's variable inside a function");
      return declare(space);
    }
    if (word.text == "loc") {
      // .loc file line column [, function_name ...]: to the end of its line.
      while (lexer_.peek().line == word.line && lexer_.peek().kind != TokenKind::end) lexer_.take();
      return {};
    }
    if (word.text == "pragma") {
      while (!lexer_.accept(';')) {
        if (lexer_.peek().kind == TokenKind::end) return unexpected("';'");
        lexer_.take();
      }
      return {};
    }
    return text_error(word.line, concat(".", printable(word.text, 40), " is not supported here"));
  }

  Status labelled(std::string_view name) {
    const Token& next = lexer_.peek();
    if (next.is_dot("branchtargets")) {
      lexer_.take();
      std::vector<Operand> targets;
      do {
        Operand target;
        if (Status read = operand(target, 0); !read) return read;
        targets.push_back(std::move(target));
      } while (lexer_.accept(','));
      body_.tables.emplace_back(name, std::move(targets));
      return lexer_.accept(';') ? Status{} : Status{unexpected("';'")};
    }
    if (next.is_dot("callprototype") || next.is_dot("calltargets")) {
      while (!lexer_.accept(';')) {
        if (lexer_.peek().kind == TokenKind::end) return unexpected("';'");
        lexer_.take();
      }
      return {};
    }
    body_.labels[{scopes_.back().id, name}] = static_cast<uint32_t>(body_.statements.size());
    return {};
  }

  Status statement() {
    const Token& next = lexer_.peek();
    if (next.kind == TokenKind::dot_word) return directive();
    if (lexer_.accept(';')) return {};
    if (lexer_.accept('{')) {
      if (body_.scope_parents.size() > kScopesMax) return unexpected("an end");
      open_scope();
      return {};
    }
    if (next.is('}')) {
      if (scopes_.size() == 1) return unexpected("a statement");
      lexer_.take();
      scopes_.pop_back();
      return {};
    }
    Statement made;
    made.line = next.line;
    if (lexer_.accept('@')) {
      made.guard_not = lexer_.accept('!');
      const Token name = lexer_.take();
      Named found;
      if (!find(name.text, found) || !found.is_register ||
          body_.registers[found.index] != Type::pred) {
        return text_error(name.line, concat(printable(name.text, 40), " is no predicate"));
      }
      made.guard = static_cast<int32_t>(found.index);
    }
    const Token word = lexer_.take();
    if (word.kind != TokenKind::word) {
      return text_error(word.line, concat("'", printable(word.text, 40), "' is no instruction"));
    }
    if (made.guard < 0 && lexer_.accept(':')) return labelled(word.text);
    made.opcode = word.text;
    return instruction(std::move(made));
  }

  // What is wrong with an operand, said of its instruction: it may be one with operands of a kind
  // of its own.
  static Error error_in(const Statement& made, std::string_view what) {
    std::string name(made.opcode);
    for (const std::string_view modifier : made.modifiers) name += concat(".", modifier);
    const size_t line_ends = what.find(": ");
    if (line_ends != std::string_view::npos) what.remove_prefix(line_ends + 2);
    return text_error(made.line, concat(printable(name, 120), ": ", what));
  }

  Status instruction(Statement made) {
    while (lexer_.peek().kind == TokenKind::dot_word) made.modifiers.push_back(lexer_.take().text);
    while (!lexer_.accept(';')) {
      Operand one;
      if (Status read = operand(one, 0); !read) return error_in(made, read.error().message);
      made.operands.push_back(std::move(one));
      if (made.operands.size() > 64) return unexpected("';'");
      if (!lexer_.accept(',') && !lexer_.peek().is(';')) return unexpected("',' or ';'");
    }
    if (body_.statements.size() >= kStatementsMax)
      return unexpected("an end (too many statements)");
    body_.statements.push_back(std::move(made));
    return {};
  }

  Status parts(Operand& out, char closing, int depth) {
    if (lexer_.accept(closing)) return {};
    do {
      Operand part;
      if (Status read = operand(part, depth + 1); !read) return read;
      out.parts.push_back(std::move(part));
      if (out.parts.size() > 256) return unexpected("fewer operands");
    } while (lexer_.accept(','));
    return lexer_.accept(closing) ? Status{} : Status{unexpected("an end of the list")};
  }

  Status address(Operand& out) {
    out.kind = Operand::Kind::address;
    Operand base;
    if (Status read = operand(base, 1); !read) return read;
    while (lexer_.peek().is('+') || lexer_.peek().is('-')) {
      const bool minus = lexer_.take().is('-') != lexer_.accept('-');
      const Token number = lexer_.take();
      if (number.kind != TokenKind::integer)
        return text_error(number.line, "an offset is a number");
      out.offset = static_cast<int64_t>(static_cast<uint64_t>(out.offset) +
                                        (minus ? 0 - number.bits : number.bits));
    }
    out.parts.push_back(std::move(base));
    return lexer_.accept(']') ? Status{} : Status{unexpected("']'")};
  }

  void number(Operand& out, const Token& token, bool minus) const {
    out.bits = token.bits;
    if (token.kind == TokenKind::integer) {
      out.kind = Operand::Kind::integer;
      if (minus) out.bits = 0 - out.bits;
    } else if (token.kind == TokenKind::single) {
      out.kind = Operand::Kind::single;
      if (minus) out.bits ^= 0x80000000u;
    } else {
      out.kind = Operand::Kind::real;
      if (minus) out.bits ^= uint64_t{1} << 63;
    }
  }

  Status word_operand(Operand& out, const Token& token) {
    out.name = token.text;
    out.scope = scopes_.back().id;
    if (token.text == "_") return {};
    Named found;
    if (find(token.text, found)) {
      out.kind = found.is_register ? Operand::Kind::reg : Operand::Kind::variable;
      out.index = found.index;
    } else if (token.text.starts_with('%') || token.text == "WARP_SZ") {
      out.kind = Operand::Kind::special;
      if (lexer_.peek().kind == TokenKind::dot_word && lexer_.peek().text.size() == 1) {
        out.component = lexer_.take().text[0];
      }
    } else {
      out.kind = Operand::Kind::name;
    }
    if (out.kind != Operand::Kind::name && lexer_.accept('|')) {
      Operand pair;
      pair.kind = Operand::Kind::pair;
      pair.parts.push_back(out);
      Operand second;
      if (Status read = operand(second, 2); !read) return read;
      pair.parts.push_back(std::move(second));
      out = std::move(pair);
    } else if (out.kind == Operand::Kind::name && lexer_.accept('+')) {
      const Token offset = lexer_.take();
      if (offset.kind != TokenKind::integer)
        return text_error(offset.line, "an offset is a number");
      out.offset = static_cast<int64_t>(offset.bits);
    }
    return {};
  }

  Status operand(Operand& out, int depth) {
    if (depth > 4) return unexpected("a simpler operand");
    if (lexer_.accept('[')) return address(out);
    if (lexer_.accept('{')) {
      out.kind = Operand::Kind::vector;
      return parts(out, '}', depth);
    }
    if (lexer_.accept('(')) {
      out.kind = Operand::Kind::group;
      return parts(out, ')', depth);
    }
    const bool minus = lexer_.accept('-');
    const bool negated = lexer_.accept('!');
    const Token token = lexer_.take();
    if (token.kind == TokenKind::word) {
      if (Status read = word_operand(out, token); !read) return read;
      out.negated = minus || negated;
      return {};
    }
    const bool value = token.kind == TokenKind::integer || token.kind == TokenKind::real ||
                       token.kind == TokenKind::single;
    if (!value) {
      return text_error(token.line, concat("'", printable(token.text, 40), "' is no operand"));
    }
    number(out, token, minus);
    return {};
  }

  const FunctionText& function_;
  Lexer lexer_;
  Body body_;
  std::vector<Scope> scopes_;
  std::vector<std::unique_ptr<std::string>> names_;  // what scopes' views of declared names show
};

}  // namespace

bool Statement::has(std::string_view modifier) const {
  return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
}

int64_t Body::label(std::string_view name, uint32_t scope) const {
  for (;;) {
    const auto found = labels.find({scope, name});
    if (found != labels.end()) return found->second;
    if (scope_parents[scope] == scope) return -1;
    scope = scope_parents[scope];
  }
}

const std::vector<Operand>* Body::table(std::string_view name) const {
  for (const auto& [label, targets] : tables) {
    if (label == name) return &targets;
  }
  return nullptr;
}

Result<Body> read_body(const FunctionText& function) { return BodyParser(function).parse(); }

}  // namespace sealane::ptx
