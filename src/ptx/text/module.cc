// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "ptx/text/module.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "ptx/text/declaration.h"

namespace sealane::ptx {
namespace {

// What stands before a variable or a function.
struct Linkage {
  bool known = false;  // to other texts
  bool weak = false;
  bool external = false;
};

class ModuleParser {
 public:
  explicit ModuleParser(Module& module) : module_(module), lexer_(module.text) {}

  Status parse() {
    while (lexer_.peek().kind != TokenKind::end) {
      if (Status read = item(); !read) return read;
    }
    if (module_.version == 0) return text_error(1, "no .version: this is not PTX");
    return {};
  }

 private:
  Error unexpected(std::string_view what) const {
    const Token& token = lexer_.peek();
    return text_error(token.line,
                      concat("'", printable(token.text, 40), "' where ", what, " belongs"));
  }

  Status skip_to_semicolon() {
    while (!lexer_.accept(';')) {
      if (lexer_.peek().kind == TokenKind::end) return unexpected("';'");
      lexer_.take();
    }
    return {};
  }

  Status item() {
    const Token word = lexer_.take();
    if (word.is(';')) return {};
    if (word.kind != TokenKind::dot_word) {
      return text_error(word.line, concat("'", printable(word.text, 40), "' is no directive"));
    }
    if (word.text == "version") return version();
    if (word.text == "target") return target();
    if (word.text == "address_size") return address_size();
    if (word.text == "file") return file();
    if (word.text == "section") return section();
    if (word.text == "pragma") return skip_to_semicolon();
    if (word.text == "alias") return alias();
    if (word.text == "func" || word.text == "entry") return function(word.text == "entry");
    if (word.text == "visible" || word.text == "weak" || word.text == "common" ||
        word.text == "extern") {
      linkage_ = {true, word.text == "weak" || word.text == "common", word.text == "extern"};
      return {};
    }
    Space space;
    if (space_named(word.text, space)) return variables(space);
    return text_error(word.line, concat("unknown directive .", printable(word.text, 40)));
  }

  Status version() {
    const Token number = lexer_.take();
    if (number.kind != TokenKind::real) return text_error(number.line, ".version has no number");
    double value = 0;
    std::memcpy(&value, &number.bits, 8);
    module_.version = static_cast<int>(std::lround(std::min(std::max(value, 0.0), 99.0) * 10));
    return {};
  }

  Status target() {
    for (;;) {
      const Token name = lexer_.take();
      if (name.kind != TokenKind::word) return text_error(name.line, ".target has no name");
      if (name.text.starts_with("sm_")) {
        int number = 0;
        for (const char c : name.text.substr(3, 4)) {
          if (c >= '0' && c <= '9') number = number * 10 + (c - '0');
        }
        module_.target = number;
      }
      if (!lexer_.accept(',')) return {};
    }
  }

  Status address_size() {
    const Token number = lexer_.take();
    if (number.kind != TokenKind::integer || number.bits != 64) {
      return text_error(number.line, ".address_size: only 64 bits are there");
    }
    return {};
  }

  // .file 1 "name"[, time, size]
  Status file() {
    lexer_.take();
    lexer_.take();
    while (lexer_.accept(',')) lexer_.take();
    return {};
  }

  Status section() {
    while (!lexer_.peek().is('{')) {
      if (lexer_.peek().kind == TokenKind::end) return unexpected("'{'");
      lexer_.take();
    }
    return lexer_.skip_braces() ? Status{} : Status{unexpected("'}'")};
  }

  Status alias() {
    const Token name = lexer_.take();
    if (!lexer_.accept(',')) return unexpected("','");
    const Token of = lexer_.take();
    module_.aliases[std::string(name.text)] = of.text;
    return skip_to_semicolon();
  }

  Status variables(Space space) {
    const Linkage linkage = std::exchange(linkage_, {});
    auto declared = read_declaration(lexer_, space);
    if (!declared) return declared.error();
    for (Declared& one : *declared) {
      one.variable.external = linkage.external;
      one.variable.weak = linkage.weak;
      one.variable.local = !linkage.known;
      const auto known = module_.variable_named.find(one.variable.name);
      if (known != module_.variable_named.end()) {
        // Declared, then defined.
        if (!linkage.external) module_.variables[known->second] = std::move(one.variable);
        continue;
      }
      module_.variable_named[one.variable.name] = module_.variables.size();
      module_.variables.push_back(std::move(one.variable));
    }
    return lexer_.accept(';') ? Status{} : Status{unexpected("';'")};
  }

  Status parameters(std::vector<Variable>& out) {
    if (!lexer_.accept('(')) return unexpected("'('");
    if (lexer_.accept(')')) return {};
    do {
      const Token word = lexer_.take();
      const bool param = word.is_dot("param");
      if (!param && !word.is_dot("reg")) {
        return text_error(word.line, "a parameter begins with .param");
      }
      if (!param) return text_error(word.line, "parameters in registers are not supported");
      auto declared = read_declaration_of_one();
      if (!declared) return declared.error();
      if (declared->unsized) return text_error(word.line, "variable arguments are not supported");
      out.push_back(std::move(*declared));
    } while (lexer_.accept(','));
    return lexer_.accept(')') ? Status{} : Status{unexpected("')'")};
  }

  // A parameter list's commas are not a declaration's.
  Result<Variable> read_declaration_of_one() {
    const size_t from = lexer_.position();
    const uint32_t line = lexer_.peek().line;
    int brackets = 0;
    while (!(brackets == 0 && (lexer_.peek().is(',') || lexer_.peek().is(')')))) {
      if (lexer_.peek().kind == TokenKind::end) return unexpected("')'");
      brackets += lexer_.peek().is('[') ? 1 : lexer_.peek().is(']') ? -1 : 0;
      lexer_.take();
    }
    const std::string_view text =
        std::string_view(module_.text).substr(from, lexer_.position() - from);
    Lexer one(text, line);
    auto declared = read_declaration(one, Space::param);
    if (!declared) return declared.error();
    return std::move((*declared)[0].variable);
  }

  Status bounds(FunctionText& function) {
    while (lexer_.peek().kind == TokenKind::dot_word) {
      const Token word = lexer_.take();
      if (word.text == "noreturn" || word.text == "unique" || word.text == "blocksareclusters") {
        continue;
      }
      if (word.text == "pragma") {
        if (Status skipped = skip_to_semicolon(); !skipped) return skipped;
        continue;
      }
      unsigned values[3] = {1, 1, 1};
      int count = 0;
      do {
        const Token number = lexer_.take();
        if (number.kind != TokenKind::integer) {
          return text_error(number.line, concat("a number belongs behind .", word.text));
        }
        if (count < 3) values[count++] = static_cast<unsigned>(number.bits);
      } while (lexer_.accept(','));
      if (word.text == "maxntid") {
        function.threads_max = values[0] * values[1] * values[2];
      } else if (word.text == "reqntid") {
        std::memcpy(function.threads_required, values, sizeof values);
        function.threads_max = values[0] * values[1] * values[2];
      } else if (word.text == "minnctapersm") {
        function.blocks_min = values[0];
      } else if (word.text != "maxnreg" && word.text != "maxnctapersm") {
        return text_error(word.line, concat(".", printable(word.text, 40), " is not supported"));
      }
    }
    return {};
  }

  Status function(bool entry) {
    const Linkage linkage = std::exchange(linkage_, {});
    FunctionText made;
    made.entry = entry;
    made.weak = linkage.weak;
    made.local = !linkage.known;
    if (lexer_.peek().is('(')) {
      if (Status read = parameters(made.returns); !read) return read;
    }
    const Token name = lexer_.take();
    if (name.kind != TokenKind::word) return text_error(name.line, "a function without a name");
    made.name = name.text;
    if (lexer_.peek().is('(')) {
      if (Status read = parameters(made.parameters); !read) return read;
    }
    if (Status read = bounds(made); !read) return read;
    if (lexer_.peek().is('{')) {
      const size_t from = lexer_.position() + 1;
      made.line = lexer_.peek().line;
      if (!lexer_.skip_braces()) return unexpected("'}'");
      const std::string_view rest = std::string_view(module_.text).substr(from);
      const size_t length = module_.text.rfind('}', lexer_.position() - 1) - from;
      made.body = rest.substr(0, length);
      made.defined = true;
    } else if (!lexer_.accept(';')) {
      return unexpected("';'");
    }
    add(std::move(made));
    return {};
  }

  void add(FunctionText made) {
    const auto known = module_.function_named.find(made.name);
    if (known == module_.function_named.end()) {
      module_.function_named[made.name] = module_.functions.size();
      module_.functions.push_back(std::move(made));
    } else if (made.defined) {
      module_.functions[known->second] = std::move(made);
    }
  }

  Module& module_;
  Lexer lexer_;
  Linkage linkage_;
};

}  // namespace

Error text_error(uint32_t line, std::string message) {
  return usage_error(concat("line ", line, ": ", message));
}

const FunctionText* Module::function(std::string_view name) const {
  if (const auto alias = aliases.find(name); alias != aliases.end()) name = alias->second;
  const auto found = function_named.find(name);
  return found == function_named.end() ? nullptr : &functions[found->second];
}

const Variable* Module::variable(std::string_view name) const {
  const auto found = variable_named.find(name);
  return found == variable_named.end() ? nullptr : &variables[found->second];
}

Result<std::shared_ptr<const Module>> parse_module(std::string text) {
  auto module = std::make_shared<Module>();
  module->text = std::move(text);
  if (Status parsed = ModuleParser(*module).parse(); !parsed) return parsed.error();
  return std::shared_ptr<const Module>(std::move(module));
}

}  // namespace sealane::ptx
