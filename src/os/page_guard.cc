// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "os/page_guard.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "base/above_standard.h"
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

// Are there mappings everywhere? Asked of the kernel by a call that does nothing else.
bool is_mapped(const Range& whole_pages) {
  return syscall(SYS_msync, whole_pages.address, whole_pages.bytes, MS_ASYNC) == 0;
}

// Stops at the first written page, or at a mapping without a guard.
Result<bool> has_written_pages(const Descriptor& pagemap, const Range& whole_pages) {
  PageRegion dirty{};
  PagemapScan scan{};
  scan.flags = kGuardedOnly;
  scan.regions = reinterpret_cast<uint64_t>(&dirty);
  scan.regions_max = scan.pages_max = 1;
  scan.all_of = scan.returned = kWritten;  // this and nothing else: the kernel's quick way
  const int found = scan_pages(pagemap, whole_pages, scan);
  if (found < 0 && errno != EPERM) return io_error("cannot scan for written pages", errno);
  return found != 0;
}

bool register_pages(const Descriptor& faults, const Range& whole_pages) {
  uffdio_register registration{};
  registration.range = {whole_pages.address, whole_pages.bytes};
  registration.mode = UFFDIO_REGISTER_MODE_WP;
  return ioctl(faults.get(), UFFDIO_REGISTER, &registration) == 0;
}

// Does the quick way tell of memory whose page table is gone? Tried where there never was one.
bool tells_of_lost_tables(const Descriptor& faults, const Descriptor& pagemap) {
  const uint64_t bytes = page_bytes() / sizeof(uint64_t) * page_bytes();  // of one table
  void* const made = mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return false;
  const uint64_t first = (reinterpret_cast<uint64_t>(made) + bytes - 1) / bytes * bytes;
  bool told = false;
  if (register_pages(faults, {first, bytes})) {
    const auto written = has_written_pages(pagemap, {first, bytes});
    told = written.ok() && *written;
  }
  munmap(made, 2 * bytes);
  return told;
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

bool scans_quickly(std::string_view kernel_release) {
  unsigned version = 0;
  unsigned patch = 0;
  const char* const end = kernel_release.data() + kernel_release.size();
  const auto major = std::from_chars(kernel_release.data(), end, version);
  if (major.ec != std::errc{} || major.ptr == end || *major.ptr != '.') return false;
  const auto minor = std::from_chars(major.ptr + 1, end, patch);
  return minor.ec == std::errc{} && (version > 6 || (version == 6 && patch >= 15));
}

PageGuards::PageGuards(Descriptor faults, Descriptor pagemap, Mappings mappings, bool quick)
    : faults_(std::move(faults)),
      pagemap_(std::move(pagemap)),
      mappings_(std::move(mappings)),
      quick_(quick) {}

Result<PageGuards> PageGuards::open() {
  utsname kernel{};
  return open(uname(&kernel) == 0 ? kernel.release : "");
}

Result<PageGuards> PageGuards::open(std::string_view kernel_release) {
  // User mode only is what needs no privilege. It speaks of faults delivered to a handler; in
  // asynchronous mode there are none, so writes by the kernel (read(2)) work and are noticed.
  Descriptor faults(above_standard(
      static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY))));
  if (!faults.valid()) return explain_refused_userfaultfd(errno);
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = kFeatureWriteProtectAsync | kFeatureWriteProtectUnpopulated;
  if (ioctl(faults.get(), UFFDIO_API, &api) != 0) {
    return io_error("this kernel has no asynchronous write protection; Linux 6.7 or later has it");
  }
  Descriptor pagemap(above_standard(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)));
  if (!pagemap.valid()) return io_error("cannot open /proc/self/pagemap", errno);
  auto mappings = Mappings::open();
  if (!mappings) return mappings.error();
  const bool quick = scans_quickly(kernel_release) && tells_of_lost_tables(faults, pagemap);
  return PageGuards(std::move(faults), std::move(pagemap), *std::move(mappings), quick);
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
  if (!register_pages(faults_, whole)) {
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

// To look for writes is quick, but says nothing of memory that is no longer mapped: the kernel
// passes over it in silence. So it is asked first whether all of it is. A kernel that cannot be
// asked so (scans_quickly, tells_of_lost_tables) has to prove every page clean.
Result<bool> PageGuards::written(const Range& range) const {
  const Range whole = pages(range);
  if (whole.bytes == 0) return false;
  if (!quick_) return !is_proved_clean(whole);
  return is_mapped(whole) ? has_written_pages(pagemap_, whole) : true;
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
