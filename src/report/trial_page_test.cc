// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Does the page of a trial say what was found, fit a terminal, and take nothing as markup?

#include "report/trial_page.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sstream>

namespace sealane::report {
namespace {

nlohmann::json a_trial() {
  return {{"program", "serve<b>.py"},
          {"version", "1.2.3"},
          {"verdict", "fine"},
          {"headline", "Everything works, & the default takes 0.42 of the time."},
          {"advice", {"Put the line below into production."}},
          {"production", "sealane run -- python3 'serve<b>.py'"},
          {"plain", {{"rounds", 3}, {"seconds", 10}, {"ratio", 1}, {"least", 0.98}, {"most", 1.1}}},
          {"parts",
           {{{"name", "engine"},
             {"enable", "engine"},
             {"state", "same"},
             {"rounds", 3},
             {"seconds", 4.2},
             {"ratio", 0.42},
             {"least", 0.4},
             {"most", 0.45}},
            {{"name", "async"}, {"enable", "engine,async"}, {"state", "not tried"}}}},
          {"driver", {{{"mark", "yes"}, {"what", "bytes pass"}, {"found", "100 %"}}}},
          {"bundle_file", "bundle.tar"},
          {"bundle", {{{"file", "trial.json"}, {"what", "this page"}}}}};
}

TEST(TrialPage, TextSaysItAllIn80Columns) {
  const std::string text = trial_text(a_trial());
  for (const char* part : {"Everything works", "0.42 (0.40-0.45)", "not tried", "bytes pass: 100 %",
                           "sealane run -- python3", "bundle.tar", "trial.json: this page"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(TrialPage, HtmlNeedsNothingAndTakesNothingAsMarkup) {
  const std::string html = trial_html(a_trial());
  EXPECT_NE(html.find("serve&lt;b&gt;.py"), std::string::npos);
  EXPECT_EQ(html.find("serve<b>"), std::string::npos);
  EXPECT_EQ(html.find("http://"), std::string::npos);
  EXPECT_EQ(html.find("https://"), std::string::npos);
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_NE(html.find("data-verdict=\"fine\""), std::string::npos);
}

TEST(TrialPage, CopesWithNothing) {
  EXPECT_NE(trial_text(nlohmann::json::object()), "");
  EXPECT_NE(trial_html(nlohmann::json::object()), "");
}

}  // namespace
}  // namespace sealane::report
