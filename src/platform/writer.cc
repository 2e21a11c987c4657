// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "platform/writer.h"

#include <fmt/core.h>

#include <algorithm>

#include "platform/fields.h"

namespace sealane {
namespace {

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return result + '"';
}

// A whole number is a number for the reader, so ten is not 10.0.
std::string value_of(const Target& target) {
  if (const auto* number = std::get_if<Number>(&target)) return fmt::format("{}", *number->to);
  if (const auto* count = std::get_if<Count>(&target)) return fmt::format("{}", *count->to);
  if (const auto* flag = std::get_if<bool*>(&target)) return **flag ? "true" : "false";
  return in_quotes(*std::get<std::string*>(target));
}

}  // namespace

std::string platform_text(const Platform& platform) {
  Platform copy = platform;
  std::string text = fmt::format(
      "# Every parameter is [value, \"source\", spread]: four times out of five the truth is "
      "within "
      "a\n# factor of 1 + spread. What the numbers mean: docs/estimate.md.\nname = {}\n"
      "description = {}\n",
      in_quotes(platform.name), in_quotes(platform.description));
  std::string section;
  for (const Field& field : fields_of(copy)) {
    const size_t dot = field.key.rfind('.');
    if (field.key.substr(0, dot) != section) {
      section = field.key.substr(0, dot);
      text += fmt::format("\n[{}]\n", section);
    }
    const auto known = std::find_if(platform.parameters.begin(), platform.parameters.end(),
                                    [&](const Parameter& each) { return each.key == field.key; });
    const bool found = known != platform.parameters.end();
    const bool varies = std::holds_alternative<Number>(field.target);
    text += fmt::format("{} = [{}, {}{}]\n", field.key.substr(dot + 1), value_of(field.target),
                        in_quotes(found ? known->source : "assumed: not said"),
                        varies && found ? fmt::format(", {}", known->spread) : "");
  }
  return text;
}

}  // namespace sealane
