// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "platform/reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/try.h"
#include "platform/fields.h"
#include "platform/spread.h"
#include "platform/toml_text.h"

namespace sealane {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file), fields_(fields_of(platform_)) {}

  Result<Platform> read(const toml::table& root) {
    for (const auto& [key, node] : root) {
      SEALANE_TRY(top_level(std::string(key.str()), node));
    }
    if (platform_.name.empty()) return missing("name");
    if (platform_.description.empty()) return missing("description");
    for (const Field& field : fields_) {
      if (!seen_.contains(field.key)) return missing(field.key);
    }
    std::stable_sort(lines_.begin(), lines_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [line, parameter] : lines_) platform_.parameters.push_back(std::move(parameter));
    return std::move(platform_);
  }

 private:
  Status top_level(const std::string& key, const toml::node& node) {
    if (key == "name") return plain_text(key, node, platform_.name);
    if (key == "description") return plain_text(key, node, platform_.description);
    return descend(key, node);
  }

  Status plain_text(const std::string& key, const toml::node& node, std::string& to) {
    const auto* text = node.as_string();
    if (text == nullptr || text->get().empty() || has_newline(text->get())) {
      return error(node, key + ": must be a line of text in quotes");
    }
    to = text->get();
    return {};
  }

  Status descend(const std::string& key, const toml::node& node) {
    const auto field =
        std::find_if(fields_.begin(), fields_.end(), [&](const Field& f) { return f.key == key; });
    if (field != fields_.end()) return parameter(*field, node);
    const toml::table* table = node.as_table();
    const bool section = std::any_of(fields_.begin(), fields_.end(),
                                     [&](const Field& f) { return f.key.starts_with(key + "."); });
    if (table == nullptr || !section) return error(node, fmt::format("unknown key '{}'", key));
    for (const auto& [name, child] : *table) {
      SEALANE_TRY(descend(fmt::format("{}.{}", key, name.str()), child));
    }
    return {};
  }

  Status parameter(const Field& field, const toml::node& node) {
    const toml::array* entry = node.as_array();
    if (entry == nullptr || entry->size() < 2 || entry->size() > 3 || !(*entry)[1].is_string()) {
      return error(
          node,
          fmt::format("{}: must be [value, \"source\"] or [value, \"source\", spread]", field.key));
    }
    const std::string& source = (*entry)[1].as_string()->get();
    if (source.find_first_not_of(" \t") == std::string::npos || has_newline(source)) {
      return error(node, field.key + ": the source must be a line of text");
    }
    Status status =
        std::visit([&](auto& target) { return assign(field, (*entry)[0], target); }, field.target);
    if (!status) return status;
    const bool varies = std::holds_alternative<Number>(field.target);
    Parameter made{field.key, value_text(field.target), source, kind_of(source), 0};
    if (varies) made.spread = usual_spread(made.kind);
    if (entry->size() == 3) {
      const auto given = (*entry)[2].value<double>();
      if (!varies) return error(node, field.key + ": only a rate, a time or a share has a spread");
      if (!given || !std::isfinite(*given) || *given < 0 || *given > kSpreadMost) {
        return error(node,
                     fmt::format("{}: the spread must be from 0 to {}", field.key, kSpreadMost));
      }
      made.spread = *given;
    }
    seen_.insert(field.key);
    lines_.emplace_back(node.source().begin.line, std::move(made));
    return {};
  }

  Status assign(const Field& field, const toml::node& node, const Number& target) {
    const auto value = node.value<double>();  // an integer will do
    if (!value || !node.is_number()) return error(node, field.key + ": must be a number");
    if (!std::isfinite(*value) || *value < target.least || *value > target.most) {
      return error(node, fmt::format("{}: must be from {} to {}, not {}", field.key, target.least,
                                     target.most, *value));
    }
    *target.to = *value;
    return {};
  }

  Status assign(const Field& field, const toml::node& node, const Count& target) {
    const auto* value = node.as_integer();
    if (value == nullptr) return error(node, field.key + ": must be a whole number");
    const int64_t number = value->get();
    if (number < 0 || static_cast<uint64_t>(number) < target.least ||
        static_cast<uint64_t>(number) > target.most) {
      return error(node, fmt::format("{}: must be from {} to {}, not {}", field.key, target.least,
                                     target.most, number));
    }
    *target.to = static_cast<uint64_t>(number);
    return {};
  }

  Status assign(const Field& field, const toml::node& node, bool* target) {
    const auto* value = node.as_boolean();
    if (value == nullptr) return error(node, field.key + ": must be true or false");
    *target = value->get();
    return {};
  }

  Status assign(const Field& field, const toml::node& node, std::string* target) {
    return plain_text(field.key, node, *target);
  }

  static std::string value_text(const Target& target) {
    if (const auto* number = std::get_if<Number>(&target)) return fmt::format("{}", *number->to);
    if (const auto* count = std::get_if<Count>(&target)) return fmt::format("{}", *count->to);
    if (const auto* flag = std::get_if<bool*>(&target)) return **flag ? "true" : "false";
    return *std::get<std::string*>(target);
  }

  static bool has_newline(std::string_view text) {
    return text.find_first_of("\r\n") != std::string_view::npos;
  }

  Error error(const toml::node& node, const std::string& what) const {
    return usage_error(fmt::format("{}:{}: {}", file_, node.source().begin.line, what));
  }

  // There is no line for what is not there.
  Error missing(const std::string& key) const {
    return usage_error(fmt::format("{}:1: missing key '{}'", file_, key));
  }

  std::string file_;
  Platform platform_;
  std::vector<Field> fields_;
  std::set<std::string> seen_;
  std::vector<std::pair<uint32_t, Parameter>> lines_;
};

}  // namespace

Result<Platform> parse_platform(std::string_view text, std::string_view file) {
  SEALANE_LET(const auto table, parse_toml(text, file));
  return Reader(file).read(table);
}

Result<Platform> load_platform(const std::string& path) {
  SEALANE_LET(const auto text, read_toml(path, "a platform file"));
  return parse_platform(text, path);
}

}  // namespace sealane
