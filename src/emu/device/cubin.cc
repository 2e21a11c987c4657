// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/device/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace sealane::emu {
namespace {

constexpr std::string_view kPtxSection = ".nv_debug_ptx_txt";
constexpr uint16_t kMachineCuda = 190;
constexpr uint16_t kSectionsMax = 4096;

template <typename T>
T read_at(const char* bytes, uint64_t offset) {
  T out;
  std::memcpy(&out, bytes + offset, sizeof out);
  return out;
}

template <typename T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

bool is_cubin(const char* bytes) { return std::memcmp(bytes, ELFMAG, SELFMAG) == 0; }

uint64_t cubin_bytes(const char* bytes) {
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  return header.e_shoff + uint64_t{header.e_shentsize} * header.e_shnum;
}

std::vector<std::string> ptx_of_cubin(const char* bytes) {
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  const uint64_t end = cubin_bytes(bytes);
  std::vector<std::string> out;
  const bool usual = header.e_shentsize == sizeof(Elf64_Shdr) && header.e_shnum <= kSectionsMax &&
                     header.e_shstrndx < header.e_shnum;
  if (!usual) return out;
  const auto section = [&](uint64_t i) {
    return read_at<Elf64_Shdr>(bytes, header.e_shoff + i * sizeof(Elf64_Shdr));
  };
  const auto inside = [&](const Elf64_Shdr& one) {
    return one.sh_offset <= end && one.sh_size <= end - one.sh_offset;
  };
  const Elf64_Shdr names = section(header.e_shstrndx);
  if (!inside(names)) return out;
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr one = section(i);
    if (one.sh_name >= names.sh_size || !inside(one)) continue;
    const char* name = bytes + names.sh_offset + one.sh_name;
    const std::string_view named(name, strnlen(name, names.sh_size - one.sh_name));
    if (!named.starts_with(kPtxSection)) continue;
    // Its lines end with zeros.
    std::string text(bytes + one.sh_offset, one.sh_size);
    std::replace(text.begin(), text.end(), '\0', '\n');
    out.push_back(std::move(text));
  }
  return out;
}

std::string make_cubin(const std::vector<std::string>& texts) {
  std::string names(1, '\0');
  const auto names_name = static_cast<uint32_t>(names.size());
  names.append(".shstrtab").push_back('\0');
  const auto ptx_name = static_cast<uint32_t>(names.size());
  names.append(kPtxSection).push_back('\0');
  std::string body;
  std::vector<Elf64_Shdr> sections(1);
  const auto add = [&](uint32_t name, uint32_t type, const std::string& content) {
    Elf64_Shdr one{};
    one.sh_name = name;
    one.sh_type = type;
    one.sh_offset = sizeof(Elf64_Ehdr) + body.size();
    one.sh_size = content.size();
    one.sh_addralign = 1;
    sections.push_back(one);
    body += content;
  };
  add(names_name, SHT_STRTAB, names);
  for (const std::string& text : texts) add(ptx_name, SHT_PROGBITS, text);
  body.resize((body.size() + 7) & ~size_t{7});
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_EXEC;
  header.e_machine = kMachineCuda;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_shoff = sizeof header + body.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<uint16_t>(sections.size());
  header.e_shstrndx = 1;
  std::string out;
  append(out, header);
  out += body;
  for (const Elf64_Shdr& one : sections) append(out, one);
  return out;
}

}  // namespace sealane::emu
