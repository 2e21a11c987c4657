// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "support/options.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "support/fail.h"

namespace examples {

namespace {

bool is_one_of(const std::string& word, const std::string& words) {
  return ("|" + words + "|").find("|" + word + "|") != std::string::npos && !word.empty();
}

}  // namespace

void Options::number(const char* name, const char* help, uint64_t* value, uint64_t min,
                     uint64_t max) {
  options_.push_back({name, help, "", value, min, max, nullptr});
}

void Options::text(const char* name, const char* help, std::string* value, const char* words) {
  options_.push_back({name, help, words, nullptr, 0, 0, value});
}

const Options::Option& Options::find(const std::string& name) const {
  for (const Option& option : options_) {
    if (option.name == name) return option;
  }
  fail_usage("unknown option '%s': see --help", name.c_str());
}

void Options::assign(const Option& option, const std::string& value) {
  const char* const name = option.name.c_str();
  if (option.text != nullptr) {
    if (!option.words.empty() && !is_one_of(value, option.words)) {
      fail_usage("%s is one of %s, not '%s'", name, option.words.c_str(), value.c_str());
    }
    *option.text = value;
    return;
  }
  const char* const last = value.data() + value.size();
  const auto [end, error] = std::from_chars(value.data(), last, *option.number);
  if (error != std::errc() || end != last || *option.number < option.min ||
      *option.number > option.max) {
    fail_usage("%s is a number from %llu to %llu, not '%s'", name,
               static_cast<unsigned long long>(option.min),
               static_cast<unsigned long long>(option.max), value.c_str());
  }
}

void Options::parse(int argc, char** argv) {
  set_program_name(argv[0]);
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--help") {
      print_help(argv[0]);
      std::exit(0);
    }
    const size_t equals = word.find('=');
    const Option& option = find(word.substr(0, equals));
    if (equals != std::string::npos) {
      assign(option, word.substr(equals + 1));
    } else if (++i < argc) {
      assign(option, argv[i]);
    } else {
      fail_usage("%s needs a value", word.c_str());
    }
  }
}

void Options::print_help(const char* argv0) const {
  std::printf("%s\nusage: %s [options]\n", summary_, argv0);
  for (const Option& option : options_) {
    const std::string preset =
        option.text != nullptr ? *option.text : std::to_string(*option.number);
    std::printf("  %-18s %s%s%s%s\n", option.name.c_str(), option.help.c_str(),
                preset.empty() ? "" : " [", preset.c_str(), preset.empty() ? "" : "]");
  }
}

}  // namespace examples
