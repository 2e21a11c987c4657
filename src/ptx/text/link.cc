// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "ptx/text/link.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "ptx/text/lexer.h"

namespace sealane::ptx {
namespace {

using Names = std::set<std::string, std::less<>>;

Names locals_of(const Module& module) {
  Names out;
  for (const Variable& one : module.variables) {
    if (one.local) out.insert(one.name);
  }
  for (const FunctionText& one : module.functions) {
    if (one.local) out.insert(one.name);
  }
  return out;
}

bool knows(const Module& module, const std::string& name) {
  return module.variable_named.contains(name) || module.function_named.contains(name);
}

// The text with other names for these; lines stay what they are.
std::string renamed(const std::string& text, const Names& names, size_t number) {
  std::string out;
  size_t copied = 0;
  Lexer lexer(text);
  while (lexer.peek().kind != TokenKind::end) {
    const size_t at = lexer.position();
    const Token token = lexer.take();
    if (token.kind != TokenKind::word || !names.contains(token.text)) continue;
    out.append(text, copied, at - copied);
    out += concat(token.text, "$of", number);
    copied = at + token.text.size();
  }
  return out.append(text, copied);
}

class Linker {
 public:
  Status add(const std::shared_ptr<const Module>& part) {
    whole_->version = std::max(whole_->version, part->version);
    whole_->target = std::max(whole_->target, part->target);
    whole_->parts.push_back(part);
    whole_->aliases.insert(part->aliases.begin(), part->aliases.end());
    for (const Variable& one : part->variables) {
      const Status added = place(one, !one.external, whole_->variables, whole_->variable_named,
                                 [](const Variable& known) { return !known.external; });
      if (!added) return added;
    }
    for (const FunctionText& one : part->functions) {
      const Status added = place(one, one.defined, whole_->functions, whole_->function_named,
                                 [](const FunctionText& known) { return known.defined; });
      if (!added) return added;
    }
    return {};
  }
  std::shared_ptr<const Module> result() { return std::move(whole_); }

 private:
  // The first definition stands, but a weak one gives way.
  template <typename Item, typename Index, typename Defined>
  static Status place(const Item& item, bool defined, std::vector<Item>& items, Index& index,
                      Defined is_defined) {
    const auto [known, added] = index.emplace(item.name, items.size());
    if (added) {
      items.push_back(item);
      return {};
    }
    Item& there = items[known->second];
    if (!defined) return {};
    if (is_defined(there) && !item.weak && !there.weak) {
      return text_error(item.line, concat(printable(item.name, 200), " is defined twice"));
    }
    if (!is_defined(there) || (there.weak && !item.weak)) there = item;
    return {};
  }

  std::shared_ptr<Module> whole_ = std::make_shared<Module>();
};

}  // namespace

Result<std::shared_ptr<const Module>> link_modules(std::vector<std::string> texts) {
  std::vector<std::shared_ptr<const Module>> parts;
  for (std::string& text : texts) {
    auto parsed = parse_module(std::move(text));
    if (!parsed || texts.size() == 1) return parsed;
    parts.push_back(std::move(*parsed));
  }
  Linker linker;
  for (size_t i = 0; i < parts.size(); ++i) {
    Names clashing;
    for (const std::string& name : locals_of(*parts[i])) {
      const auto others = std::count_if(parts.begin(), parts.end(),
                                        [&](const auto& part) { return knows(*part, name); });
      if (others > 1) clashing.insert(name);
    }
    if (!clashing.empty()) {
      auto again = parse_module(renamed(parts[i]->text, clashing, i));
      if (!again) return again;
      parts[i] = std::move(*again);
    }
    if (Status added = linker.add(parts[i]); !added) return added.error();
  }
  return linker.result();
}

}  // namespace sealane::ptx
