// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "live/read_trap.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "base/text.h"
#include "live/page_guard.h"

namespace sealane {
namespace {

// Newer than the headers of Debian 12: <linux/userfaultfd.h> of Linux 6.8.
constexpr uint64_t kFeatureMove = 1 << 16;
struct MovePages {
  uint64_t to;
  uint64_t from;
  uint64_t bytes;
  uint64_t mode;
  int64_t moved;
};
constexpr unsigned long kMovePages = _IOWR(UFFDIO, 0x05, MovePages);
constexpr unsigned long kNewDescriptor = _IO(0xAA, 0x00);  // of /dev/userfaultfd, Linux 6.1

uint64_t page_bytes() {
  static const auto bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// Faults in system calls are to be trapped too, and that takes a privilege.
Descriptor open_userfaultfd() {
  constexpr int kFlags = O_CLOEXEC | O_NONBLOCK;
  Descriptor faults(static_cast<int>(syscall(SYS_userfaultfd, kFlags)));
  if (faults.valid()) return faults;
  const int refused = errno;
  const Descriptor device(::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC));
  if (device.valid()) return Descriptor(ioctl(device.get(), kNewDescriptor, kFlags));
  errno = refused;
  return faults;
}

Error explain_refusal(int error_number) {
  if (error_number == ENOSYS) return io_error("this kernel is built without userfaultfd");
  if (error_number == EPERM) {
    return io_error(
        "trapping reads needs CAP_SYS_PTRACE or access to /dev/userfaultfd, and no seccomp profile "
        "that forbids it");
  }
  return io_error("cannot open a userfaultfd", error_number);
}

bool enable(int faults, uint64_t features) {
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = features;
  return ioctl(faults, UFFDIO_API, &api) == 0;
}

// The process is short of memory: as a page fault would, until there is some.
void wait_for_memory() {
  const timespec pause{0, 1'000'000};
  nanosleep(&pause, nullptr);
}

// Calls give(done) -> bytes given or -errno until all are. EEXIST: a page has its bytes already.
template <typename Give>
int give_all(uint64_t bytes, Give&& give) {
  for (uint64_t done = 0; done < bytes;) {
    const int64_t given = give(done);
    if (given > 0) {
      done += static_cast<uint64_t>(given);
    } else if (given == -ENOMEM) {
      wait_for_memory();
    } else if (given != -EAGAIN) {  // EAGAIN: another thread changes mappings
      return static_cast<int>(-given);
    }
  }
  return 0;
}

// These calls tell in a field how far they came, also when they fail.
int64_t outcome(int result, int64_t progress) {
  if (progress > 0) return progress;
  return result == 0 ? -EAGAIN : -errno;
}

int move_pages(int faults, const Range& to, uint64_t from, uint64_t& moved) {
  return give_all(to.bytes, [&](uint64_t done) {
    MovePages pages{to.address + done, from + done, to.bytes - done, 0, 0};
    const int result = ioctl(faults, kMovePages, &pages);
    const int64_t given = outcome(result, pages.moved);
    if (given > 0) moved += static_cast<uint64_t>(given);
    return given;
  });
}

int copy_pages(int faults, const Range& to, uint64_t from) {
  return give_all(to.bytes, [&](uint64_t done) {
    uffdio_copy copy{};
    copy.dst = to.address + done;
    copy.src = from + done;
    copy.len = to.bytes - done;
    const int result = ioctl(faults, UFFDIO_COPY, &copy);
    return outcome(result, copy.copy);
  });
}

int clear_pages(int faults, const Range& to) {
  return give_all(to.bytes, [&](uint64_t done) {
    uffdio_zeropage zeros{};
    zeros.range = {to.address + done, to.bytes - done};
    const int result = ioctl(faults, UFFDIO_ZEROPAGE, &zeros);
    return outcome(result, zeros.zeropage);
  });
}

// Memory whose pages were moved does not grow together with its neighbours again, and the calls
// above refuse a range of several mappings: then its halves are tried. 0, or why not.
template <typename Give>
int in_halves(const Range& pages, const Give& give) {
  const uint64_t half = pages.bytes / 2 & ~(page_bytes() - 1);
  const int refused = give({pages.address, half});
  return refused != 0 ? refused : give({pages.address + half, pages.bytes - half});
}

int give_pages(int faults, bool moves, const Range& to, uint64_t from) {
  const auto give = [&](const Range& part) {
    return give_pages(faults, moves, part, from + (part.address - to.address));
  };
  const bool divisible = to.bytes > page_bytes();
  uint64_t moved = 0;
  const int stays = moves ? move_pages(faults, to, from, moved) : ENOTTY;
  if (stays == 0) return 0;
  if (moved > 0) return give({to.address + moved, to.bytes - moved});
  if (stays == EINVAL && divisible) return in_halves(to, give);
  // What will not move (pages that are pinned, or never were there) is copied.
  const int refused = copy_pages(faults, to, from);
  return refused == ENOENT && divisible ? in_halves(to, give) : refused;
}

int give_zeros(int faults, const Range& to) {
  const int refused = clear_pages(faults, to);
  const auto give = [&](const Range& part) { return give_zeros(faults, part); };
  return refused == ENOENT && to.bytes > page_bytes() ? in_halves(to, give) : refused;
}

// To `keep`, or nowhere.
int take_pages(bool moves, const Range& from, uint8_t* keep) {
  constexpr int kLeaveEmpty = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  void* const memory = reinterpret_cast<void*>(from.address);
  if (moves && mremap(memory, from.bytes, from.bytes, kLeaveEmpty, keep) != MAP_FAILED) return 0;
  if (moves && errno == EFAULT && from.bytes > page_bytes()) {
    return in_halves(from, [&](const Range& part) {
      return take_pages(moves, part, keep + (part.address - from.address));
    });
  }
  return madvise(memory, from.bytes, MADV_DONTNEED) == 0 ? 0 : errno;
}

// Emptying a mapping would take its lock away.
bool is_locked(const Range& pages) {
  return madvise(reinterpret_cast<void*>(pages.address), page_bytes(), MADV_COLD) != 0;
}

}  // namespace

Range pages_within(const Range& range) {
  const uint64_t mask = page_bytes() - 1;
  const uint64_t start = (range.address + mask) & ~mask;
  const uint64_t end = range.end() & ~mask;
  return start < end ? Range{start, end - start} : Range{};
}

Result<ReadTrap> ReadTrap::open() {
  Descriptor faults = open_userfaultfd();
  if (!faults.valid()) return explain_refusal(errno);
  // A kernel that does not know a feature refuses, and the descriptor may be asked again.
  const bool moves = enable(faults.get(), kFeatureMove);
  if (!moves && !enable(faults.get(), 0)) {
    return io_error("this kernel's userfaultfd is too old to trap reads", errno);
  }
  return ReadTrap(std::move(faults), moves);
}

// Registered first, emptied then: there is no moment at which a page reads as zero.
Status ReadTrap::arm(const Range& pages, void* keep) const {
  if (is_locked(pages)) return usage_error("reads of locked memory are not trapped");
  uffdio_register registration{};
  registration.range = {pages.address, pages.bytes};
  registration.mode = UFFDIO_REGISTER_MODE_MISSING;
  if (ioctl(faults_.get(), UFFDIO_REGISTER, &registration) != 0) {
    return io_error(concat("cannot trap reads of ", pages.bytes, " bytes"), errno);
  }
  const int refused = take_pages(moves_, pages, static_cast<uint8_t*>(keep));
  if (refused == 0) return {};
  static_cast<void>(disarm(pages));
  return io_error(concat("cannot empty ", pages.bytes, " bytes"), refused);
}

Status ReadTrap::deliver(const Range& pages, void* from) const {
  const int refused = give_pages(faults_.get(), moves_, pages, reinterpret_cast<uint64_t>(from));
  if (refused == 0) return {};
  return io_error(concat("cannot deliver ", pages.bytes, " bytes"), refused);
}

Status ReadTrap::deliver_zeros(const Range& pages) const {
  const int refused = give_zeros(faults_.get(), pages);
  if (refused == 0) return {};
  return io_error(concat("cannot clear ", pages.bytes, " bytes"), refused);
}

Status ReadTrap::disarm(const Range& pages) const {
  uffdio_range unregistration{pages.address, pages.bytes};
  if (ioctl(faults_.get(), UFFDIO_UNREGISTER, &unregistration) == 0) return {};
  return io_error(concat("cannot stop trapping reads of ", pages.bytes, " bytes"), errno);
}

std::optional<uint64_t> ReadTrap::wait_for_access(int timeout_ms) const {
  for (;;) {
    pollfd faults{faults_.get(), POLLIN, 0};
    const int ready = poll(&faults, 1, timeout_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0 || (faults.revents & POLLIN) == 0) return std::nullopt;
    uffd_msg message;
    if (read(faults_.get(), &message, sizeof message) != sizeof message) continue;
    if (message.event == UFFD_EVENT_PAGEFAULT) {
      return pages({message.arg.pagefault.address, 1}).address;
    }
  }
}

void ReadTrap::wake(const Range& pages) const {
  uffdio_range range{pages.address, pages.bytes};
  ioctl(faults_.get(), UFFDIO_WAKE, &range);
}

}  // namespace sealane
