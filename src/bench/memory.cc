// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/memory.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "base/byte_count.h"

namespace sealane::bench {
namespace {

// First line of a file; empty if there is none.
std::string read_line(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

}  // namespace

CacheSizes cache_sizes() {
  CacheSizes sizes{256_KiB, 32_MiB};
  int last_level = 2;
  for (int index = 0;; ++index) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    const std::string type = read_line(folder + "type");
    if (type.empty()) return sizes;
    const auto bytes = parse_byte_count(read_line(folder + "size"), 1_GiB << 4);
    if (type == "Instruction" || !bytes) continue;
    const std::string level = read_line(folder + "level");
    if (level == "2") sizes.l2_bytes = *bytes;
    if (level.size() == 1 && level[0] - '0' >= last_level) {
      last_level = level[0] - '0';
      sizes.last_level_bytes = *bytes;
    }
  }
}

uint64_t available_memory_bytes() {
  std::ifstream info("/proc/meminfo");
  std::string name;
  uint64_t kib = 0;
  for (std::string rest; info >> name >> kib; std::getline(info, rest)) {
    if (name == "MemAvailable:") return kib * 1_KiB;
  }
  return 1_GiB;
}

Result<Buffer> Buffer::make(uint64_t bytes) {
  const auto refuse = [&](const char* why) {
    return usage_error(fmt::format("no memory for a buffer of {} ({}); choose smaller records",
                                   format_byte_count(bytes), why));
  };
  // Asking first is kinder than the out-of-memory killer, who comes when the pages are touched.
  if (bytes > available_memory_bytes() / 10 * 9) return refuse("not available");
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return refuse(std::strerror(errno));
  madvise(data, bytes, MADV_HUGEPAGE);  // a kernel without them is measured without them
  std::memset(data, 0x5a, bytes);
  return Buffer(static_cast<uint8_t*>(data), bytes);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Buffer::~Buffer() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace sealane::bench
