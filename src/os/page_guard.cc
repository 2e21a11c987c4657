// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "os/page_guard.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.h"

namespace sealane {
namespace {

// Newer than the headers of Debian 12: <linux/userfaultfd.h> of Linux 6.7 …
constexpr uint64_t kFeatureWriteProtectUnpopulated = 1 << 13;
constexpr uint64_t kFeatureWriteProtectAsync = 1 << 15;

// … and <linux/fs.h>.
struct PageRegion {
  uint64_t start;
  uint64_t end;
  uint64_t categories;
};

struct PagemapScan {
  uint64_t size;
  uint64_t flags;
  uint64_t start;
  uint64_t end;
  uint64_t walk_end;
  uint64_t regions;
  uint64_t regions_max;
  uint64_t pages_max;
  uint64_t inverted;
  uint64_t all_of;
  uint64_t any_of;
  uint64_t returned;
};
static_assert(sizeof(PagemapScan) == 96);
constexpr unsigned long kPagemapScan = _IOWR('f', 16, PagemapScan);
constexpr uint64_t kGuarded = 1 << 0;  // the mapping is registered for asynchronous protection
constexpr uint64_t kWritten = 1 << 1;
constexpr uint64_t kPresent = 1 << 3;
constexpr uint64_t kSwapped = 1 << 4;  // also a page that was never touched but is protected

Range page_aligned(const Range& range, uint64_t page_bytes) {
  const uint64_t start = range.address & ~(page_bytes - 1);
  const uint64_t end = (range.end() + page_bytes - 1) & ~(page_bytes - 1);
  return {start, end - start};
}

Error explain_refused_userfaultfd(int error_number) {
  if (error_number == ENOSYS) return io_error("this kernel is built without userfaultfd");
  if (error_number == EPERM)
    return io_error("userfaultfd is forbidden here (by a seccomp profile?)");
  return io_error("cannot open a userfaultfd", error_number);
}

}  // namespace

Range pages(const Range& range) {
  static const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return range.bytes == 0 ? Range{} : page_aligned(range, page_bytes);
}

PageGuards::PageGuards(Descriptor faults, Descriptor pagemap, Mappings mappings)
    : faults_(std::move(faults)), pagemap_(std::move(pagemap)), mappings_(std::move(mappings)) {}

Result<PageGuards> PageGuards::open() {
  // User mode only is what needs no privilege. It speaks of faults delivered to a handler; in
  // asynchronous mode there are none, so writes by the kernel (read(2)) work and are noticed.
  Descriptor faults(
      static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY)));
  if (!faults.valid()) return explain_refused_userfaultfd(errno);
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = kFeatureWriteProtectAsync | kFeatureWriteProtectUnpopulated;
  if (ioctl(faults.get(), UFFDIO_API, &api) != 0) {
    return io_error("this kernel has no asynchronous write protection; Linux 6.7 or later has it");
  }
  Descriptor pagemap(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  if (!pagemap.valid()) return io_error("cannot open /proc/self/pagemap", errno);
  auto mappings = Mappings::open();
  if (!mappings) return mappings.error();
  return PageGuards(std::move(faults), std::move(pagemap), *std::move(mappings));
}

// The kernel would take any mapping in this mode, also those whose writes it cannot see.
Status PageGuards::check_guardable(const Range& whole_pages) const {
  for (uint64_t address = whole_pages.address; address < whole_pages.end();) {
    const auto mapping = mappings_.find(address);
    if (!mapping) return mapping.error();
    if (!mapping->has_value()) return usage_error("cannot guard memory that is not mapped");
    if ((*mapping)->shared) {
      return usage_error("cannot guard a shared mapping: writes through another one are not seen");
    }
    if ((*mapping)->of_file) {
      return usage_error("cannot guard a mapping of a file: writes to the file are not seen");
    }
    address = (*mapping)->range.end();
  }
  return {};
}

Status PageGuards::arm(const Range& range) const {
  const Range whole = pages(range);
  if (whole.bytes == 0) return {};
  if (Status status = check_guardable(whole); !status) return status;
  uffdio_register registration{};
  registration.range = {whole.address, whole.bytes};
  registration.mode = UFFDIO_REGISTER_MODE_WP;
  if (ioctl(faults_.get(), UFFDIO_REGISTER, &registration) != 0) {
    return io_error(concat("cannot guard ", whole.bytes, " bytes"), errno);
  }
  uffdio_writeprotect protection{};
  protection.range = {whole.address, whole.bytes};
  protection.mode = UFFDIO_WRITEPROTECT_MODE_WP;
  if (ioctl(faults_.get(), UFFDIO_WRITEPROTECT, &protection) != 0) {
    return io_error(concat("cannot write-protect ", whole.bytes, " bytes"), errno);
  }
  return {};
}

// Looks for proof that nothing was written, not for writes: the scan passes over memory that is no
// longer mapped in silence, and a new mapping in its place has no guard. So the regions of guarded,
// unwritten pages must cover the range without a hole.
Result<bool> PageGuards::written(const Range& range) const {
  const Range whole = pages(range);
  for (uint64_t address = whole.address; address < whole.end();) {
    PageRegion clean{};
    PagemapScan scan{};
    scan.size = sizeof scan;
    scan.start = address;
    scan.end = whole.end();
    scan.regions = reinterpret_cast<uint64_t>(&clean);
    scan.regions_max = 1;
    scan.inverted = kWritten;
    scan.all_of = kGuarded | kWritten;
    scan.any_of = kPresent | kSwapped;  // a discarded page is neither
    scan.returned = kGuarded;
    const int found = ioctl(pagemap_.get(), kPagemapScan, &scan);
    if (found < 0) return io_error("cannot scan for written pages", errno);
    if (found == 0 || clean.start != address) return true;
    address = clean.end;
  }
  return false;
}

Status PageGuards::disarm(const Range& range) const {
  const Range whole = pages(range);
  if (whole.bytes == 0) return {};
  uffdio_range unregistration{whole.address, whole.bytes};
  if (ioctl(faults_.get(), UFFDIO_UNREGISTER, &unregistration) == 0) return {};
  return io_error(concat("cannot stop guarding ", whole.bytes, " bytes"), errno);
}

}  // namespace sealane
