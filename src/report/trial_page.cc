// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "report/trial_page.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <vector>

#include "base/figures.h"
#include "base/text.h"
#include "report/page_assets.h"
#include "report/table.h"

namespace sealane::report {
namespace {

using nlohmann::json;

std::string word(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

double number(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

std::vector<json> list(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return {};
  return {found->begin(), found->end()};
}

// "0.42 (0.40-0.45)"
std::string ratio_of(const json& part) {
  if (number(part, "rounds") == 0) return "";
  std::string out = fixed(number(part, "ratio"), 2);
  if (number(part, "rounds") > 1) {
    out += concat(" (", fixed(number(part, "least"), 2), "-", fixed(number(part, "most"), 2), ")");
  }
  return out;
}

std::string time_of(const json& part) {
  return number(part, "rounds") == 0 ? "" : time_text(number(part, "seconds"));
}

std::string parts_text(const json& trial) {
  Table table({{"part", Align::left}, {"output", Align::left}, {"time"}, {"of plain"}});
  const json plain = trial.value("plain", json::object());
  table.add_row({"plain", "", time_of(plain), ratio_of(plain)});
  for (const json& part : list(trial, "parts")) {
    table.add_row(
        {visible(word(part, "name")), visible(word(part, "state")), time_of(part), ratio_of(part)});
  }
  return table.text(78);  // beside its indentation, in a file too
}

std::string indented_lines(const std::string& text) {
  std::string out = "  ";
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] == '\n' && i + 1 < text.size()) out += "  ";
  }
  return out;
}

std::string section(const std::string& title) { return "\n" + title + "\n"; }

std::string item(const std::string& text) { return "  - " + wrapped(visible(text), 4); }

// --- HTML

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : visible(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string element(const std::string& tag, const std::string& content) {
  return concat("<", tag, ">", content, "</", tag, ">\n");
}

std::string cell(const std::string& text) { return concat("<td>", escaped(text), "</td>"); }
std::string figure(const std::string& text) {
  return concat("<td class=\"number\">", escaped(text), "</td>");
}

// A bar as long as the time is, next to the plain program's.
std::string bar(const json& part, const char* colour) {
  if (number(part, "rounds") == 0) return "<td></td>";
  const double share = std::clamp(number(part, "ratio"), 0.0, 2.0) * 50;
  return concat("<td class=\"bar\"><i style=\"width:", fixed(share, 1), "%;background:var(--",
                colour, ")\"></i></td>");
}

std::string part_row(const json& part, const char* colour) {
  return concat("<tr>", cell(word(part, "name")), cell(word(part, "enable")),
                cell(word(part, "state")), figure(time_of(part)), figure(ratio_of(part)),
                bar(part, colour), "</tr>\n");
}

std::string parts_html(const json& trial) {
  std::string rows =
      "<thead><tr><th>part</th><th>--enable</th><th>output</th><th class=\"number\">time</th>"
      "<th class=\"number\">of plain (least-most)</th><th></th></tr></thead>\n";
  json plain = trial.value("plain", json::object());
  plain["name"] = "plain program";
  rows += part_row(plain, "stock");
  for (const json& part : list(trial, "parts")) rows += part_row(part, "sealane");
  return concat("<div class=\"scroll\">", element("table", rows), "</div>\n");
}

std::string table_html(const std::vector<json>& rows, const std::vector<const char*>& keys) {
  std::string out;
  for (const json& row : rows) {
    std::string cells;
    for (const char* key : keys) cells += cell(word(row, key));
    out += concat("<tr>", cells, "</tr>\n");
  }
  return concat("<div class=\"scroll\">", element("table", out), "</div>\n");
}

std::string items_html(const std::vector<json>& items) {
  std::string out;
  for (const json& one : items) {
    if (one.is_string()) out += element("li", escaped(one.get<std::string>()));
  }
  return out.empty() ? "" : element("ul", out);
}

constexpr const char* kOwnStyle =
    ".bar { width: 30%; min-width: 6rem; } .bar i { display: block; height: .8em; border-radius: "
    ".2em; }\n"
    ".line { font-family: monospace; padding: .6rem .8rem; background: var(--panel);\n"
    "  border: 1px solid var(--line); border-radius: .4rem; overflow-x: auto; white-space: pre; }\n"
    ".verdict { font-size: 1.15rem; font-weight: 600; }\n";

}  // namespace

std::string trial_text(const json& trial) {
  std::string out = "Trial of " + visible(word(trial, "program")) + "\n\n";
  out += wrapped(visible(word(trial, "headline")), 0);
  const auto advice = list(trial, "advice");
  for (const json& one : advice) out += item(one.get<std::string>());
  if (const auto checks = list(trial, "driver"); !checks.empty()) {
    out += section("What was found about the driver");
    for (const json& one : checks) {
      out += concat("  ", padded(visible(word(one, "mark")), 10),
                    wrapped(visible(concat(word(one, "what"), ": ", word(one, "found"))), 12));
    }
  }
  if (!list(trial, "parts").empty()) {
    out += section("What each part brought (MEASURED; time of the plain program = 1)");
    out += indented_lines(parts_text(trial));
  }
  if (const std::string line = word(trial, "production"); !line.empty()) {
    out += section("For production");
    out += concat("  ", visible(line), "\n");
  }
  if (const auto files = list(trial, "bundle"); !files.empty()) {
    out += section(concat("To send us, if you want to: ", visible(word(trial, "bundle_file"))));
    for (const json& one : files) {
      out += item(concat(word(one, "file"), ": ", word(one, "what")));
    }
    out += "  " + wrapped(
                      "No keys, no data, no output of the program; paths, arguments and names "
                      "of hosts and people are masked. Look before you send it.",
                      2);
  }
  return out;
}

std::string trial_html(const json& trial) {
  std::string body = element("h1", "Trial of " + escaped(word(trial, "program")));
  body +=
      concat("<p class=\"verdict\" id=\"verdict\" data-verdict=\"", escaped(word(trial, "verdict")),
             "\">", escaped(word(trial, "headline")), "</p>\n");
  body += items_html(list(trial, "advice"));
  if (const std::string line = word(trial, "production"); !line.empty()) {
    body += element("h2", "For production");
    body += concat("<div class=\"line\">", escaped(line), "</div>\n");
  }
  if (!list(trial, "parts").empty()) {
    body += element("h2", "What each part brought <span class=\"tag measured\">MEASURED</span>");
    body += parts_html(trial);
  }
  if (const auto checks = list(trial, "driver"); !checks.empty()) {
    body += element("h2", "What was found about the driver");
    body += table_html(checks, {"mark", "what", "found"});
    body += element("p", escaped(word(trial, "driver_verdict")));
  }
  if (const auto machine = list(trial, "machine"); !machine.empty()) {
    body += element("h2", "The machine");
    body += table_html(machine, {"status", "name", "detail"});
  }
  if (const auto runs = list(trial, "runs"); !runs.empty()) {
    std::vector<json> rows;
    for (const json& run : runs) {
      rows.push_back({{"name", word(run, "name")},
                      {"ended", word(run, "ended")},
                      {"time", time_text(number(run, "seconds"))},
                      {"difference", word(run, "difference")}});
    }
    body += element("h2", "All runs");
    body += table_html(rows, {"name", "ended", "time", "difference"});
  }
  if (const auto files = list(trial, "bundle"); !files.empty()) {
    body += element("h2", "To send us, if you want to");
    body += element("p", escaped(concat(word(trial, "bundle_file"),
                                        ": no keys, no data, no output of the program; paths, "
                                        "arguments and names of hosts and people are masked.")));
    body += table_html(files, {"file", "what"});
  }
  return concat(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>Sealane "
      "trial</title>\n<style>\n",
      page_style(), kOwnStyle, "</style>\n</head>\n<body>\n", body, "<footer>sealane ",
      escaped(word(trial, "version")), "</footer>\n</body>\n</html>\n");
}

}  // namespace sealane::report
