// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Can the pages be read and believed? No line is wider than 120 columns, links lead somewhere, the
// files that pages name exist, and so do the pages and sections that the code names. Every result
// says when and by which command it was taken, and a page links to it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = SEALANE_SOURCE_DIR;

// What is made, fetched or installed is not ours to read.
bool is_left_out(const fs::path& folder) {
  const std::string name = folder.filename();
  return name.starts_with(".") || name.starts_with("build") || name == "__pycache__" ||
         fs::exists(folder / "CMakeCache.txt");
}

// Every file of the tree, relative to its root.
const std::vector<fs::path>& all_files() {
  static const std::vector<fs::path> files = [] {
    std::vector<fs::path> out;
    for (auto at = fs::recursive_directory_iterator(kRoot); at != fs::end(at); ++at) {
      if (at->is_directory() && is_left_out(at->path())) at.disable_recursion_pending();
      if (at->is_regular_file()) out.push_back(at->path().lexically_relative(kRoot));
    }
    return out;
  }();
  return files;
}

std::vector<fs::path> pages() {
  std::vector<fs::path> out;
  for (const fs::path& file : all_files()) {
    if (file.extension() == ".md") out.push_back(file);
  }
  return out;
}

std::string contents(const fs::path& file) {
  std::ifstream in(kRoot / file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<std::string> lines_of(const fs::path& file) {
  std::vector<std::string> out;
  std::istringstream in(contents(file));
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

// The lines of a page that are not code.
std::vector<std::string> prose_of(const fs::path& page) {
  std::vector<std::string> out;
  bool code = false;
  for (const std::string& line : lines_of(page)) {
    if (line.find("```") == line.find_first_not_of(' ') && !line.empty()) {
      code = !code;
    } else if (!code) {
      out.push_back(line);
    }
  }
  return out;
}

// Characters, not bytes.
size_t columns_of(const std::string& line) {
  return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  }));
}

// They point into `text`.
std::vector<std::smatch> matches(const std::string& text, const std::regex& pattern) {
  return {std::sregex_iterator(text.begin(), text.end(), pattern), std::sregex_iterator()};
}

TEST(Pages, AreAtMost120ColumnsWide) {
  constexpr size_t kColumnsMax = 120;
  for (const fs::path& page : pages()) {
    size_t number = 0;
    for (const std::string& line : lines_of(page)) {
      ++number;
      EXPECT_LE(columns_of(line), kColumnsMax) << page.string() << ":" << number;
    }
  }
  EXPECT_GT(pages().size(), 30u) << "looked in the wrong place";
}

// As GitHub makes them from headings.
std::set<std::string> anchors_of(const fs::path& page) {
  std::set<std::string> out;
  for (const std::string& line : prose_of(page)) {
    if (!line.starts_with("#")) continue;
    std::string anchor;
    for (const char byte : line.substr(line.find_first_not_of("# "))) {
      const bool kept = std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '-' ||
                        byte == '_' || (static_cast<unsigned char>(byte) & 0x80) != 0;
      if (kept) anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(byte)));
      if (byte == ' ') anchor += '-';
    }
    out.insert(anchor);
  }
  return out;
}

// Where a page's links lead that stay in the tree: file and anchor, either may be empty.
std::vector<std::pair<std::string, std::string>> links_of(const fs::path& page) {
  static const std::regex code("`[^`]*`");
  static const std::regex link("\\]\\(([^)#\\s]*)(#[^)\\s]*)?\\)");
  std::string text;
  for (const std::string& line : prose_of(page)) text += line + "\n";
  text = std::regex_replace(text, code, "");
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::smatch& match : matches(text, link)) {
    const std::string file = match[1];
    if (file.find(':') != std::string::npos) continue;  // https:, mailto:
    out.emplace_back(file, match[2].length() > 0 ? match[2].str().substr(1) : "");
  }
  return out;
}

TEST(Pages, LinksLeadSomewhere) {
  size_t links = 0;
  for (const fs::path& page : pages()) {
    for (const auto& [file, anchor] : links_of(page)) {
      ++links;
      const fs::path target = file.empty() ? page : (page.parent_path() / file).lexically_normal();
      const bool exists = fs::exists(kRoot / target);
      EXPECT_TRUE(exists) << page.string() << " links to " << file;
      if (!exists || anchor.empty()) continue;
      EXPECT_TRUE(anchors_of(target).contains(anchor))
          << page.string() << " links to a heading that is not there: " << file << "#" << anchor;
    }
  }
  EXPECT_GT(links, 50u);
}

const std::set<std::string>& all_names() {
  static const std::set<std::string> names = [] {
    std::set<std::string> out;
    for (const fs::path& file : all_files()) out.insert(file.filename());
    return out;
  }();
  return names;
}

// Named from the root, from the folder of the page, or as an #include does.
bool exists_for(const fs::path& page, const std::string& name) {
  for (const fs::path& from :
       {fs::path(), page.parent_path(), fs::path("src"), fs::path("include")}) {
    if (fs::exists(kRoot / from / name)) return true;
  }
  return name.find('/') == std::string::npos && all_names().contains(name);
}

// Words in code that name a file of the tree: they begin with one of its folders, or end as its
// sources do. Wildcards, braces and names to be filled in (`x.cc`) are no such words.
std::vector<std::string> named_files(const fs::path& page) {
  static const std::regex code("`([^`]+)`");
  static const std::regex word("[^\\s,;()]+");
  static const std::regex in_tree(
      "(src|adapters|tests|tools|examples|bench|include|platforms|packaging|python|cmake|docs)"
      "/([a-z0-9_.-]+/)*([a-z0-9_.-]+|README\\.md)?");
  static const std::regex source("(?!x[._])([a-z0-9_-]+/)*[a-z0-9_-]+\\.(h|cc|cu|def|S)");
  std::string text;
  for (const std::string& line : prose_of(page)) text += line + "\n";
  std::vector<std::string> out;
  for (const std::smatch& quoted : matches(text, code)) {
    const std::string inside = quoted[1];
    for (const std::smatch& one : matches(inside, word)) {
      const std::string name = one.str();
      if (std::regex_match(name, in_tree) || std::regex_match(name, source)) out.push_back(name);
    }
  }
  return out;
}

TEST(Pages, TheFilesTheyNameExist) {
  size_t named = 0;
  for (const fs::path& page : pages()) {
    for (const std::string& name : named_files(page)) {
      ++named;
      EXPECT_TRUE(exists_for(page, name)) << page.string() << " names " << name;
    }
  }
  EXPECT_GT(named, 100u);
}

// Comments, help texts and messages of programs that send people to a page, or to its section:
// docs/emulator.md, "Time".
TEST(Pages, ThoseThatTheCodeNamesExist) {
  static const std::regex broken("\n\\s*(//|#)?\\s*");
  static const std::regex named("docs/([a-z0-9_/-]+\\.(md|txt))(, \"([^\"]+)\")?");
  size_t found = 0;
  for (const fs::path& file : all_files()) {
    static const std::set<std::string> kKinds = {".h", ".cc", ".c", ".cu", ".py", ".sh", ".txt"};
    const bool is_code = kKinds.contains(file.extension()) || !file.has_extension();
    if (!is_code || file.begin()->string() == "docs") continue;
    std::string text = contents(file);
    if (text.find("docs/") == std::string::npos) continue;
    text = std::regex_replace(text, broken, " ");
    for (const std::smatch& match : matches(text, named)) {
      ++found;
      const fs::path page = fs::path("docs") / match[1].str();
      const bool exists = fs::exists(kRoot / page);
      EXPECT_TRUE(exists) << file.string() << " names " << page.string();
      if (!exists || match[4].length() == 0) continue;
      const auto prose = prose_of(page);
      const bool is_there = std::any_of(prose.begin(), prose.end(), [&](const std::string& line) {
        return line.starts_with("#") && line.ends_with(" " + match[4].str());
      });
      EXPECT_TRUE(is_there) << file.string() << " names " << match[0].str();
    }
  }
  EXPECT_GT(found, 30u);
}

// The emulated GPU's are listed without what all of them begin with.
TEST(Pages, NameEveryVariableThatIsRead) {
  static const std::regex variable("\"(SEALANE_[A-Z_]+)\"");
  constexpr std::string_view kEmulated = "SEALANE_EMU_";
  std::string all;
  for (const fs::path& page : pages()) all += contents(page);
  const std::string known = contents("src/cli/environment.cc");
  const auto names = matches(known, variable);
  EXPECT_GT(names.size(), 50u);
  for (const std::smatch& match : names) {
    const std::string name = match[1];
    const bool emulated = name.starts_with(kEmulated);
    const std::string shown = emulated ? "| `" + name.substr(kEmulated.size()) + "` |" : name;
    EXPECT_NE(all.find(shown), std::string::npos) << name;
  }
}

TEST(Pages, EveryFolderOfTestsHasItsQuestion) {
  const std::string page = contents("tests/README.md");
  for (const auto& entry : fs::directory_iterator(kRoot / "tests")) {
    const std::string name = entry.path().filename();
    if (!entry.is_directory() || is_left_out(entry.path())) continue;
    EXPECT_NE(page.find("\n| `" + name + "` | "), std::string::npos) << name;
  }
}

TEST(Results, SayWhenAndHowTheyWereTakenAndAPageLinksToThem) {
  std::set<fs::path> linked;
  for (const fs::path& page : pages()) {
    for (const auto& link : links_of(page)) {
      linked.insert((page.parent_path() / link.first).lexically_normal());
    }
  }
  static const std::regex date("(^|\n)date: +[0-9]{4}-[0-9]{2}-[0-9]{2}\n");
  static const std::regex command("\n\\$ .");
  for (const fs::path& file : all_files()) {
    if (file.parent_path() != fs::path("docs/results")) continue;
    const std::string text = contents(file);
    EXPECT_TRUE(linked.contains(file)) << "no page links to " << file.string();
    EXPECT_TRUE(std::regex_search(text, date)) << file.string() << " has no 'date: 2026-01-31'";
    EXPECT_TRUE(std::regex_search(text, command)) << file.string() << " has no '$ command'";
  }
}

}  // namespace
