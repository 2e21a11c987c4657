// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/device/image.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstring>

#include "emu/device/cubin.h"

namespace sealane::emu {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243b1;  // what nvcc registers
constexpr uint32_t kFatbinMagic = 0xba55ed50;
constexpr uint64_t kTextMax = uint64_t{1} << 31;

struct Wrapper {
  uint32_t magic;
  uint32_t version;  // 2: `linked` is there
  const void* fatbin;
  const void* const* linked;  // fat binaries of objects that are linked here; nullptr ends them
};

struct FatbinHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t bytes;  // of the entries
};

struct EntryHeader {
  uint16_t kind;  // 1: PTX, 2: cubin
  uint16_t attributes;
  uint32_t header_bytes;
  uint64_t bytes;  // with padding
  uint32_t compressed_bytes;
  uint32_t options;
  uint16_t minor;
  uint16_t major;
  uint32_t capability;
  uint32_t name_offset;
  uint32_t name_bytes;
  uint64_t flags;
  uint64_t zero;
  uint64_t plain_bytes;
};
constexpr uint64_t kFlagLz4 = 0x2000;
constexpr uint64_t kFlagZstd = 0x8000;

// The compression libraries are the system's, opened when an image needs one: no build needs them.
void* library_function(const char* library, const char* name) {
  void* opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  return opened != nullptr ? dlsym(opened, name) : nullptr;
}

Result<std::string> unpack_lz4(const char* from, uint32_t bytes, uint64_t plain) {
  using Decompress = int (*)(const char*, char*, int, int);
  static const auto decompress =
      reinterpret_cast<Decompress>(library_function("liblz4.so.1", "LZ4_decompress_safe"));
  if (decompress == nullptr) return io_error("device code packed by LZ4: install liblz4-1");
  std::string out(plain, '\0');
  const int got = decompress(from, out.data(), static_cast<int>(bytes), static_cast<int>(plain));
  if (got < 0) return usage_error("device code packed by LZ4 cannot be unpacked");
  out.resize(static_cast<size_t>(got));
  return out;
}

Result<std::string> unpack_zstd(const char* from, uint32_t bytes, uint64_t plain) {
  using Decompress = size_t (*)(void*, size_t, const void*, size_t);
  using IsError = unsigned (*)(size_t);
  static const auto decompress =
      reinterpret_cast<Decompress>(library_function("libzstd.so.1", "ZSTD_decompress"));
  static const auto is_error =
      reinterpret_cast<IsError>(library_function("libzstd.so.1", "ZSTD_isError"));
  if (decompress == nullptr || is_error == nullptr) {
    return io_error("device code packed by zstd: install libzstd1");
  }
  std::string out(plain, '\0');
  const size_t got = decompress(out.data(), out.size(), from, bytes);
  if (is_error(got) != 0) return usage_error("device code packed by zstd cannot be unpacked");
  out.resize(got);
  return out;
}

Result<std::string> entry_text(const EntryHeader& entry, const char* payload) {
  const bool packed = (entry.flags & (kFlagLz4 | kFlagZstd)) != 0;
  if (!packed) return std::string(payload, strnlen(payload, entry.bytes));
  if (entry.compressed_bytes > entry.bytes || entry.plain_bytes > kTextMax) {
    return usage_error("a fat binary's entry is longer than it can be");
  }
  auto out = (entry.flags & kFlagLz4) != 0
                 ? unpack_lz4(payload, entry.compressed_bytes, entry.plain_bytes)
                 : unpack_zstd(payload, entry.compressed_bytes, entry.plain_bytes);
  if (out) out->resize(strnlen(out->c_str(), out->size()));
  return out;
}

// Adds what it has, its PTX as one more part.
Status read_fatbin(const char* bytes, Image& out) {
  FatbinHeader header;
  std::memcpy(&header, bytes, sizeof header);
  out.known = true;
  std::vector<PtxText> part;
  const char* at = bytes + header.header_bytes;
  const char* end = at + header.bytes;
  while (at + sizeof(EntryHeader) <= end) {
    EntryHeader entry;
    std::memcpy(&entry, at, sizeof entry);
    const uint64_t left = static_cast<uint64_t>(end - at);
    if (entry.header_bytes < sizeof entry || entry.header_bytes > left ||
        entry.bytes > left - entry.header_bytes) {
      return usage_error("a fat binary's entry is longer than it can be");
    }
    if (entry.kind == 1) {
      auto text = entry_text(entry, at + entry.header_bytes);
      if (!text) return text.error();
      part.push_back({std::move(*text), static_cast<int>(entry.capability)});
    } else {
      out.machine_code = true;
    }
    at += entry.header_bytes + entry.bytes;
  }
  if (!part.empty()) out.parts.push_back(std::move(part));
  return {};
}

// What nvcc registers: a fat binary, or those of objects that were compiled apart.
Result<Image> read_wrapper(const char* bytes) {
  Wrapper wrapper;
  std::memcpy(&wrapper, bytes, sizeof wrapper);
  Image out;
  out.known = true;
  const auto read = [&](const void* fatbin) -> Status {
    uint32_t magic = 0;
    if (fatbin != nullptr) std::memcpy(&magic, fatbin, 4);
    if (magic != kFatbinMagic) return {};
    return read_fatbin(static_cast<const char*>(fatbin), out);
  };
  if (Status done = read(wrapper.fatbin); !done) return done.error();
  if (wrapper.version < 2 || wrapper.linked == nullptr || !out.parts.empty()) return out;
  for (const void* const* one = wrapper.linked; *one != nullptr; ++one) {
    if (Status done = read(*one); !done) return done.error();
  }
  return out;
}

}  // namespace

Result<Image> read_image(const void* image) {
  const auto* bytes = static_cast<const char*>(image);
  uint32_t magic = 0;
  std::memcpy(&magic, bytes, 4);
  if (magic == kWrapperMagic) return read_wrapper(bytes);
  Image out;
  if (magic == kFatbinMagic) {
    if (Status done = read_fatbin(bytes, out); !done) return done.error();
    return out;
  }
  if (is_cubin(bytes)) {
    out.known = true;
    for (std::string& text : ptx_of_cubin(bytes)) out.parts.push_back({{std::move(text), 0}});
    if (!out.parts.empty()) return out;
    out.names.assign(bytes, cubin_bytes(bytes));
    out.machine_code = true;
    return out;
  }
  if (std::strstr(bytes, ".version") == nullptr) return out;
  out.known = true;
  out.parts.push_back({{bytes, 0}});
  return out;
}

Result<Image> read_object(std::string_view bytes) {
  Image out;
  const std::string_view magic(reinterpret_cast<const char*>(&kFatbinMagic), 4);
  for (size_t at = bytes.find(magic); at != std::string_view::npos;
       at = bytes.find(magic, at + 4)) {
    FatbinHeader header;
    if (bytes.size() - at < sizeof header) break;
    std::memcpy(&header, bytes.data() + at, sizeof header);
    const uint64_t room = bytes.size() - at;
    const bool whole = header.version == 1 && header.header_bytes >= sizeof header &&
                       header.header_bytes <= room && header.bytes <= room - header.header_bytes;
    if (!whole) continue;
    if (Status done = read_fatbin(bytes.data() + at, out); !done) return done.error();
  }
  return out;
}

Result<std::vector<std::string>> choose_ptx(Image image, int capability) {
  std::vector<std::string> out;
  for (std::vector<PtxText>& part : image.parts) {
    PtxText* best = nullptr;
    for (PtxText& one : part) {
      const bool better = best == nullptr || one.capability > best->capability;
      if (one.capability <= capability && better) best = &one;
    }
    if (best != nullptr) out.push_back(std::move(best->text));
  }
  if (out.empty() && !image.parts.empty()) {
    return usage_error("its PTX is for a newer GPU: see --compute-capability");
  }
  return out;
}

}  // namespace sealane::emu
