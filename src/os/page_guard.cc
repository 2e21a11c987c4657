// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "os/page_guard.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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
constexpr uint64_t kGuardedOnly = 1 << 1;  // a flag: any other mapping is an error
constexpr uint64_t kGuarded = 1 << 0;      // the mapping is registered for asynchronous protection
constexpr uint64_t kWritten = 1 << 1;
constexpr uint64_t kPresent = 1 << 3;
constexpr uint64_t kSwapped = 1 << 4;  // also a page that was never touched but is protected

uint64_t page_bytes() {
  static const auto bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

int scan_pages(const Descriptor& pagemap, const Range& range, PagemapScan& scan) {
  scan.size = sizeof scan;
  scan.start = range.address;
  scan.end = range.end();
  return ioctl(pagemap.get(), kPagemapScan, &scan);
}

// Every page has memory now.
bool is_resident(const Range& whole_pages) {
  std::array<unsigned char, 1024> resident;
  const uint64_t most = resident.size() * page_bytes();
  for (uint64_t done = 0; done < whole_pages.bytes; done += most) {
    const uint64_t bytes = std::min(most, whole_pages.bytes - done);
    if (mincore(reinterpret_cast<void*>(whole_pages.address + done), bytes, resident.data()) != 0) {
      return false;
    }
    const auto end = resident.begin() + static_cast<ptrdiff_t>(bytes / page_bytes());
    if (!std::all_of(resident.begin(), end, [](unsigned char page) { return (page & 1) != 0; })) {
      return false;
    }
  }
  return true;
}

Error explain_refused_userfaultfd(int error_number) {
  if (error_number == ENOSYS) return io_error("this kernel is built without userfaultfd");
  if (error_number == EPERM)
    return io_error("userfaultfd is forbidden here (by a seccomp profile?)");
  return io_error("cannot open a userfaultfd", error_number);
}

}  // namespace

Range pages(const Range& range) {
  if (range.bytes == 0) return {};
  const uint64_t start = range.address & ~(page_bytes() - 1);
  const uint64_t end = (range.end() + page_bytes() - 1) & ~(page_bytes() - 1);
  return {start, end - start};
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

// To look for writes is quick, but says nothing of memory that is no longer mapped, or of which
// even the page tables are gone: those the kernel passes over in silence. So it is asked first
// whether all of it is there. What is not (it was swapped out, or never touched) needs the slow
// proof.
Result<bool> PageGuards::written(const Range& range) const {
  const Range whole = pages(range);
  if (whole.bytes == 0) return false;
  if (is_resident(whole)) return has_written_pages(whole);
  return !is_proved_clean(whole);
}

// Stops at the first such page, or at a mapping without a guard.
Result<bool> PageGuards::has_written_pages(const Range& whole_pages) const {
  PageRegion dirty{};
  PagemapScan scan{};
  scan.flags = kGuardedOnly;
  scan.regions = reinterpret_cast<uint64_t>(&dirty);
  scan.regions_max = scan.pages_max = 1;
  scan.all_of = scan.returned = kWritten;  // this and nothing else: the kernel's quick way
  const int found = scan_pages(pagemap_, whole_pages, scan);
  if (found < 0 && errno != EPERM) return io_error("cannot scan for written pages", errno);
  return found != 0;
}

// Regions of guarded, unwritten pages cover the range without a hole.
bool PageGuards::is_proved_clean(const Range& whole_pages) const {
  PageRegion clean{};
  for (uint64_t at = whole_pages.address; at < whole_pages.end(); at = clean.end) {
    PagemapScan scan{};
    scan.regions = reinterpret_cast<uint64_t>(&clean);
    scan.regions_max = 1;
    scan.inverted = kWritten;
    scan.all_of = kGuarded | kWritten;
    scan.any_of = kPresent | kSwapped;  // a discarded page is neither
    scan.returned = kGuarded;
    const int found = scan_pages(pagemap_, {at, whole_pages.end() - at}, scan);
    if (found <= 0 || clean.start != at) return false;
  }
  return true;
}

Status PageGuards::disarm(const Range& range) const {
  const Range whole = pages(range);
  if (whole.bytes == 0) return {};
  uffdio_range unregistration{whole.address, whole.bytes};
  if (ioctl(faults_.get(), UFFDIO_UNREGISTER, &unregistration) == 0) return {};
  return io_error(concat("cannot stop guarding ", whole.bytes, " bytes"), errno);
}

}  // namespace sealane
