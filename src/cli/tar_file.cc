// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/tar_file.h"

#include <fmt/core.h>

namespace sealane::cli {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kNameMax = 100;

// Fields of a header, by their place in it.
constexpr size_t kMode = 100;
constexpr size_t kOwner = 108;
constexpr size_t kGroup = 116;
constexpr size_t kSize = 124;
constexpr size_t kTime = 136;
constexpr size_t kChecksum = 148;
constexpr size_t kType = 156;
constexpr size_t kMagic = 257;

std::string header_of(const TarMember& member) {
  std::string header(kBlock, '\0');
  const auto put = [&](size_t at, const std::string& text) {
    header.replace(at, text.size(), text);
  };
  put(0, member.name.substr(0, kNameMax));
  put(kMode, "0000644");
  put(kOwner, "0000000");
  put(kGroup, "0000000");
  put(kSize, fmt::format("{:011o}", member.content.size()));
  put(kTime, fmt::format("{:011o}", 0));
  put(kChecksum, "        ");
  put(kType, "0");
  put(kMagic, std::string("ustar\0"
                          "00",
                          8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(kChecksum, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return header;
}

}  // namespace

std::string tar_of(const std::vector<TarMember>& members) {
  std::string out;
  for (const TarMember& member : members) {
    out += header_of(member) + member.content;
    out.resize((out.size() + kBlock - 1) / kBlock * kBlock, '\0');
  }
  return out + std::string(2 * kBlock, '\0');
}

}  // namespace sealane::cli
