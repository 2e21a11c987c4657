// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "report/page.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "report/page_assets.h"
#include "report/summary.h"

namespace sealane::report {
namespace {

using nlohmann::json;

// What the page's script knows how to draw.
bool can_draw(const json& run) {
  if (!run.is_object()) return false;
  const auto has_array = [&](const char* key) {
    const auto found = run.find(key);
    return found != run.end() && found->is_array() && !found->empty();
  };
  const auto policies = run.find("policies");
  const bool estimate = policies != run.end() && policies->is_object() && !policies->empty();
  return estimate || has_array("checks") || has_array("rows") || has_array("results");
}

Result<json> parse(const RunFile& run) {
  try {
    json value = json::parse(run.content);
    if (can_draw(value)) return value;
    return usage_error(concat(run.name, ":1: nothing to draw in it: give files that --json wrote"));
  } catch (const json::parse_error& error) {
    const size_t at = std::min<size_t>(error.byte, run.content.size());
    const auto line = 1 + std::count(run.content.begin(),
                                     run.content.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    return usage_error(concat(run.name, ":", line, ": not JSON"));
  }
}

// Nothing inside a script element may look like its end.
std::string for_script(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos; at += 6) {
    text.replace(at, 1, "\\u003c");
  }
  return text;
}

}  // namespace

Result<Page> make_page(const std::vector<RunFile>& runs, std::string_view version) {
  json all = json::array();
  std::vector<json> values;
  for (const RunFile& run : runs) {
    auto value = parse(run);
    if (!value) return value.error();
    values.push_back(*value);
    all.push_back({{"file", run.name}, {"run", *std::move(value)}});
  }
  const json data{{"version", std::string(version)}, {"runs", std::move(all)}};
  const std::pair<std::string_view, std::string> parts[] = {
      {"{{style}}", std::string(page_style())},
      {"{{chart}}", std::string(page_chart_library())},
      {"{{data}}", for_script(data)},
      {"{{script}}", std::string(page_script())},
  };
  std::string page;
  std::string_view rest = page_template();
  for (const auto& [mark, content] : parts) {  // in the order they come in the template
    const size_t at = rest.find(mark);
    if (at == std::string_view::npos) return internal_error(concat("no ", mark, " in the page"));
    page += rest.substr(0, at);
    page += content;
    rest.remove_prefix(at + mark.size());
  }
  page += rest;
  return Page{std::move(page), summarize(values)};
}

}  // namespace sealane::report
