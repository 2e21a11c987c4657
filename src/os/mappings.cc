// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "os/mappings.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>

#include "base/above_standard.h"

namespace sealane {
namespace {

// Linux 6.11, <linux/fs.h>; the headers of Debian 12 are older.
struct ProcmapQuery {
  uint64_t size;
  uint64_t query_flags;
  uint64_t query_address;
  uint64_t start;
  uint64_t end;
  uint64_t flags;
  uint64_t page_size;
  uint64_t offset;
  uint64_t inode;
  uint32_t device_major;
  uint32_t device_minor;
  uint32_t name_size;
  uint32_t build_id_size;
  uint64_t name_address;
  uint64_t build_id_address;
};
static_assert(sizeof(ProcmapQuery) == 104);
constexpr unsigned long kProcmapQuery = _IOWR('f', 17, ProcmapQuery);
constexpr uint64_t kProcmapShared = 1 << 3;

std::optional<Mapping> parse_line(const std::string& line) {
  // 7f1c2a000000-7f1c2a021000 rw-p 00000000 08:01 131  /path
  std::istringstream words(line);
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t inode = 0;
  char dash = 0;
  std::string permissions, offset, device;
  words >> std::hex >> start >> dash >> end >> permissions >> offset >> device >> std::dec >> inode;
  if (!words || dash != '-' || permissions.size() != 4 || end <= start) return std::nullopt;
  return Mapping{.range = {start, end - start},
                 .shared = permissions[3] == 's',
                 .of_file = inode != 0 || device.find_first_not_of("0:") != std::string::npos};
}

}  // namespace

std::optional<Mapping> find_mapping(std::istream& maps, uint64_t address) {
  for (std::string line; std::getline(maps, line);) {
    const auto mapping = parse_line(line);
    if (mapping && mapping->range.contains({address, 1})) return mapping;
  }
  return std::nullopt;
}

Result<Mappings> Mappings::open() {
  Descriptor maps(above_standard(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)));
  if (!maps.valid()) return io_error("cannot open /proc/self/maps", errno);
  return Mappings(std::move(maps));
}

Result<std::optional<Mapping>> Mappings::find(uint64_t address) const {
  ProcmapQuery query{};
  query.size = sizeof query;
  query.query_address = address;
  if (ioctl(maps_.get(), kProcmapQuery, &query) == 0) {
    const bool of_file = query.inode != 0 || query.device_major != 0 || query.device_minor != 0;
    return std::optional(Mapping{.range = {query.start, query.end - query.start},
                                 .shared = (query.flags & kProcmapShared) != 0,
                                 .of_file = of_file});
  }
  if (errno == ENOENT) return std::optional<Mapping>();
  if (errno != ENOTTY) return io_error("cannot ask for the mapping of an address", errno);
  std::ifstream maps("/proc/self/maps");
  if (!maps) return io_error("cannot read /proc/self/maps");
  return find_mapping(maps, address);
}

}  // namespace sealane
