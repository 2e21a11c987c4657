// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests: is a secret anywhere in this process's memory? What is looked for is kept inverted, so
// that the search does not find itself.
#pragma once

#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/registers.h"

namespace sealane {

// A sanitizer's own memory is too large to be searched.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsSearchable = false;
#else
constexpr bool kMemoryIsSearchable = true;
#endif

// What was called before this left its frames below.
template <size_t bytes>
[[gnu::noinline]] void wipe_stack() {
  std::array<uint8_t, bytes> below;
  wipe(below);
}

class Needle {
 public:
  // `secret` itself is the caller's to wipe.
  explicit Needle(Bytes secret) : inverted_(secret.begin(), secret.end()) {
    for (uint8_t& byte : inverted_) byte = static_cast<uint8_t>(~byte);
    // Most memory is zero: the first byte that is not leads to fewer places.
    const auto not_zero = [](uint8_t byte) { return byte != 0xff; };
    const auto found = std::find_if(inverted_.begin(), inverted_.end(), not_zero);
    if (found != inverted_.end()) lead_ = static_cast<size_t>(found - inverted_.begin());
    clear_vector_registers();  // of what was copied just now
  }

  // In which mappings it is, one line for each place; empty if nowhere.
  std::string places() {
    std::string found;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      unsigned long long begin = 0;
      unsigned long long end = 0;
      char readable = '-';
      if (std::sscanf(line.c_str(), "%llx-%llx %c", &begin, &end, &readable) != 3) continue;
      if (readable == 'r') search(begin, end, line, found);
    }
    wipe(window_);
    clear_vector_registers();
    return found;
  }

 private:
  // Read by a call that fails where touching the memory would be a signal, into a window that is
  // not looked at itself. Windows overlap, so that nothing is missed between two.
  void search(uint64_t begin, uint64_t end, const std::string& line, std::string& found) {
    while (begin + inverted_.size() <= end) {
      const size_t count = std::min<uint64_t>(end - begin, window_.size());
      const iovec to = {window_.data(), count};
      const iovec from = {reinterpret_cast<void*>(begin), count};
      const ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
      search_window(static_cast<size_t>(std::max<ssize_t>(got, 0)), begin, line, found);
      if (count < window_.size()) return;
      begin += count - inverted_.size() + 1;
    }
  }

  // `begin` is where the window's bytes are in memory.
  void search_window(size_t bytes, uint64_t begin, const std::string& line, std::string& found) {
    if (bytes < inverted_.size()) return;
    const uint8_t* at = window_.data();
    const uint8_t* const end = at + (bytes - inverted_.size() + 1);
    const uint8_t wanted = static_cast<uint8_t>(~inverted_[lead_]);
    for (; at < end; ++at) {
      const auto left = static_cast<size_t>(end - at);
      const void* const lead = std::memchr(at + lead_, wanted, left);
      if (lead == nullptr) return;
      at = static_cast<const uint8_t*>(lead) - lead_;
      const auto offset = static_cast<uint64_t>(at - window_.data());
      const uint64_t address = begin + offset - reinterpret_cast<uint64_t>(window_.data());
      if (matches(at) && address >= window_.size()) found += line + "\n";
    }
  }

  bool matches(const uint8_t* at) const {
    size_t same = 0;
    while (same < inverted_.size() && at[same] == static_cast<uint8_t>(~inverted_[same])) ++same;
    return same == inverted_.size();
  }

  std::vector<uint8_t> window_ = std::vector<uint8_t>(64 << 10);
  std::vector<uint8_t> inverted_;
  size_t lead_ = 0;
};

// What the kernel says of the mapping that holds an address: "lo" locked, "dd" not dumped, "wf"
// wiped on fork.
inline std::set<std::string> flags_of(const void* address) {
  const auto wanted = reinterpret_cast<unsigned long long>(address);
  std::ifstream maps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0;
    unsigned long long end = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx ", &begin, &end) == 2) {
      here = wanted >= begin && wanted < end;
    }
    if (!here || !line.starts_with("VmFlags:")) continue;
    std::istringstream words(line.substr(8));
    std::set<std::string> flags;
    for (std::string word; words >> word;) flags.insert(word);
    return flags;
  }
  return {};
}

// How often it is where secrets are; it should be nowhere else.
inline int places_among_secrets(Needle& needle) {
  std::istringstream places(needle.places());
  int found = 0;
  for (std::string line; std::getline(places, line); ++found) {
    unsigned long long begin = 0;
    EXPECT_EQ(std::sscanf(line.c_str(), "%llx-", &begin), 1);
    EXPECT_TRUE(flags_of(reinterpret_cast<const void*>(begin)).contains("wf")) << line;
  }
  return found;
}

}  // namespace sealane
