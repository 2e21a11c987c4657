// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "report/page.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "report/page_assets.h"
#include "report/shape.h"
#include "report/summary.h"

namespace sealane::report {
namespace {

using nlohmann::json;

constexpr int kDepthMax = 64;  // of lists in lists; what reads and writes JSON recurses

struct TooDeep {};

Result<json> parse(const RunFile& run) {
  const auto bounded = [](int depth, json::parse_event_t, json&) {
    if (depth > kDepthMax) throw TooDeep();
    return true;
  };
  try {
    json value = json::parse(run.content, bounded);
    const std::string problem = problem_of(value);
    if (problem.empty()) return value;
    return usage_error(concat(run.name, ": ", problem));
  } catch (const json::parse_error& error) {
    const size_t at = std::min<size_t>(error.byte, run.content.size());
    const auto line = 1 + std::count(run.content.begin(),
                                     run.content.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    return usage_error(concat(run.name, ":", line, ": not JSON"));
  } catch (const json::out_of_range&) {
    return usage_error(concat(run.name, ": a number in it is too large"));
  } catch (const TooDeep&) {
    return usage_error(concat(run.name, ": too many lists in lists"));
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
    SEALANE_LET(auto value, parse(run));
    values.push_back(value);
    const char* kind = to_string(kind_of(value));
    all.push_back({{"file", run.name}, {"kind", kind}, {"run", std::move(value)}});
  }
  const json data{{"version", std::string(version)}, {"runs", std::move(all)}};
  const std::pair<std::string_view, std::string> parts[] = {
      {"{{style}}", std::string(page_style())},
      {"{{chart}}", std::string(page_chart_library())},
      {"{{data}}", for_script(data)},
      {"{{study}}", std::string(page_study_script())},
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
