// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "base/output_file.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "base/above_standard.h"
#include "base/random.h"
#include "base/text.h"

namespace sealane {
namespace {

constexpr int kLinksMax = 40;  // as the kernel's
constexpr int kTriesMax = 16;

// Where a name leads once its links are followed.
struct Place {
  int error = 0;        // an errno: it cannot be written
  std::string path;     // not a link
  int descriptor = -1;  // of this process: the name was /dev/stdout or the like
  bool exists = false;
  struct stat status {};

  bool is_ordinary() const { return descriptor < 0 && (!exists || S_ISREG(status.st_mode)); }
};

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The kernel's names for descriptors of the process that asks.
int descriptor_named(std::string_view path) {
  if (path == "/dev/stdin") return STDIN_FILENO;
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  const std::string own = concat("/proc/", ::getpid(), "/fd/");
  for (const std::string_view prefix :
       {std::string_view("/dev/fd/"), std::string_view("/proc/self/fd/"), std::string_view(own)}) {
    if (!path.starts_with(prefix)) continue;
    int number = -1;
    const char* end = path.data() + path.size();
    const auto read = std::from_chars(path.data() + prefix.size(), end, number);
    if (read.ec == std::errc() && read.ptr == end && number >= 0) return number;
  }
  return -1;
}

// The kernel's rule (protected_symlinks), which a program that reads links itself would get round.
bool may_follow(const std::string& link, const struct stat& status) {
  struct stat directory {};
  if (::stat(directory_of(link).c_str(), &directory) != 0) return false;
  const bool shared = (directory.st_mode & S_ISVTX) != 0 && (directory.st_mode & S_IWOTH) != 0;
  return !shared || status.st_uid == ::geteuid() || status.st_uid == directory.st_uid;
}

Place find_place(std::string path) {
  Place out;
  if (path.empty()) {
    out.error = ENOENT;
    return out;
  }
  for (int links = 0; links <= kLinksMax; ++links) {
    out.path = path;
    out.descriptor = descriptor_named(path);
    if (out.descriptor >= 0) {
      out.exists = ::fstat(out.descriptor, &out.status) == 0;
      out.error = out.exists ? 0 : EBADF;
      return out;
    }
    out.exists = ::lstat(path.c_str(), &out.status) == 0;
    if (!out.exists) {
      out.error = errno == ENOENT ? 0 : errno;
      return out;
    }
    if (!S_ISLNK(out.status.st_mode)) {
      const mode_t mode = out.status.st_mode;
      if (S_ISDIR(mode)) out.error = EISDIR;
      if (S_ISBLK(mode) || S_ISSOCK(mode)) out.error = ENOTSUP;
      return out;
    }
    if (!may_follow(path, out.status)) {
      out.error = EACCES;
      return out;
    }
    std::array<char, PATH_MAX> target;
    const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
    if (length <= 0) {
      out.error = length == 0 ? ENOENT : errno;
      return out;
    }
    const std::string next(target.data(), static_cast<size_t>(length));
    path = next.front() == '/' ? next : concat(directory_of(path), "/", next);
  }
  out.error = ELOOP;
  return out;
}

// Whatever its name: nothing of ours begins as a program, a script or a library does. One that
// may be run but not read is taken for a program.
bool is_program(const Place& place) {
  if (place.error != 0 || !place.exists || !place.is_ordinary()) return false;
  const int file = ::open(place.path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return (place.status.st_mode & 0111) != 0;
  std::array<char, 4> start{};
  const ssize_t got = ::read(file, start.data(), start.size());
  ::close(file);
  const std::string_view text(start.data(), static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return text.starts_with("\177ELF") || text.starts_with("#!");
}

// Where an output goes. A program is never one, and what the kernel says of writing to one that
// runs is said of all.
Place find_output(const std::string& path) {
  Place place = find_place(path);
  if (is_program(place)) place.error = ETXTBSY;
  return place;
}

// While one lives, writing to a pipe that nobody reads is an error code in this thread.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t waiting;
    was_waiting_ = sigpending(&waiting) == 0 && sigismember(&waiting, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;
  ~NoPipeSignal() {
    const int number = errno;
    constexpr timespec kNow{};
    if (!was_waiting_) {
      while (sigtimedwait(&pipe_, nullptr, &kNow) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = number;
  }

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_waiting_;
};

// `path` with room for an ending in its last part, which file systems keep to NAME_MAX bytes.
std::string with_room(const std::string& path, size_t ending) {
  const size_t begin = path.rfind('/') + 1;  // 0 if there is none
  return path.substr(0, std::min(path.size(), begin + NAME_MAX - ending));
}

constexpr size_t kEnding = 17;  // of a name beside another: a dot and 16 digits
constexpr const char* kDigits = "0123456789abcdef";

// A name beside `path` that nobody had before. -1 and errno if there is none to be had.
int make_beside(const std::string& path, std::string& name) {
  if (path.size() - (path.rfind('/') + 1) > NAME_MAX) {
    errno = ENAMETOOLONG;
    return -1;
  }
  for (int tries = 0; tries < kTriesMax; ++tries) {
    std::array<uint8_t, 8> bytes;
    SystemRandom().fill(bytes);
    name = with_room(path, kEnding) + ".";
    for (const uint8_t byte : bytes) {
      name += kDigits[byte >> 4];
      name += kDigits[byte & 15];
    }
    const int file = above_standard(
        ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

// Of what can be written, but not replaced: nothing can be made beside it, or it is a mount. With
// O_CREAT the kernel applies its rule for files of others (protected_regular). Whatever took the
// file's place meanwhile is neither waited for nor written. -1 and errno.
int open_in_place(const std::string& path) {
  const int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const int file = above_standard(::open(path.c_str(), flags, 0666));
  if (file < 0) return -1;
  struct stat own {};
  int error = ::fstat(file, &own) == 0 ? 0 : errno;
  if (error == 0 && !S_ISREG(own.st_mode)) error = ENOTSUP;
  if (error == 0 && ::ftruncate(file, 0) != 0) error = errno;
  if (error == 0) return file;
  ::close(file);
  errno = error;
  return -1;
}

int write_in_place(const std::string& path, std::string_view content) {
  const int file = open_in_place(path);
  if (file < 0) return errno;
  int error = write_descriptor(file, content);
  if (::close(file) != 0 && error == 0) error = errno;
  return error;
}

// A mount (of one file into a container) cannot be replaced.
int replace(const Place& place, std::string_view content) {
  std::string beside;
  const int file = make_beside(place.path, beside);
  if (file < 0) return errno;
  int error = 0;
  // What somebody made private stays so, from its first byte.
  if (place.exists && ::fchmod(file, place.status.st_mode & 0777) != 0) error = errno;
  if (error == 0) error = write_descriptor(file, content);
  if (::close(file) != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(beside.c_str(), place.path.c_str()) != 0) error = errno;
  if (error != 0) ::unlink(beside.c_str());
  return error == EBUSY ? write_in_place(place.path, content) : error;
}

// A descriptor to write through, or -1 and errno. A pipe without a reader is ENXIO.
int open_through(const Place& place) {
  if (place.descriptor >= 0) return ::fcntl(place.descriptor, F_DUPFD_CLOEXEC, 3);
  const int file = above_standard(
      ::open(place.path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC));
  if (file >= 0) ::fcntl(file, F_SETFL, ::fcntl(file, F_GETFL) & ~O_NONBLOCK);
  return file;
}

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// What `file` is called now, wherever it was moved to; "" if it cannot be told, or is called
// nothing any more.
std::string name_of(int file) {
  std::array<char, PATH_MAX> text;
  const ssize_t length =
      ::readlink(concat("/proc/self/fd/", file).c_str(), text.data(), text.size());
  std::string name(text.data(), static_cast<size_t>(std::max<ssize_t>(length, 0)));
  struct stat named {};
  struct stat own {};
  const bool found = ::lstat(name.c_str(), &named) == 0 && ::fstat(file, &own) == 0;
  return found && is_same(named, own) ? name : "";
}

// A stream holds its file's lock until it ends. False: this one cannot be opened, so nobody knows.
bool remove_unless_written(const std::string& path) {
  const int flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  int file = ::open(path.c_str(), O_WRONLY | flags);  // a lock on NFS wants a file one can write
  if (file < 0) file = ::open(path.c_str(), O_RDONLY | flags);
  if (file < 0) return false;
  struct stat named {};
  struct stat own {};
  const bool locked = ::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  // It may have taken its name back before it ended: then another one is here.
  const bool there = ::lstat(path.c_str(), &named) == 0 && ::fstat(file, &own) == 0 &&
                     is_same(named, own) && S_ISREG(own.st_mode);
  if (!locked && there) ::unlink(path.c_str());
  ::close(file);
  return true;
}

// Gives the file at `beside` the name `path`. Another stream's that is still written goes where it
// was, from where that stream takes it back. An errno.
int take_name(const std::string& beside, const std::string& path) {
  const auto rename_by = [&](unsigned rule) {
    return ::renameat2(AT_FDCWD, beside.c_str(), AT_FDCWD, path.c_str(), rule) == 0;
  };
  for (int tries = 0; tries < kTriesMax; ++tries) {
    if (rename_by(RENAME_EXCHANGE)) {
      remove_unless_written(beside);
      return 0;
    }
    if (errno != ENOENT) break;  // the file system cannot, or it is not ours to move
    if (rename_by(RENAME_NOREPLACE)) return 0;
    if (errno != EEXIST) break;  // else another stream came first
  }
  return ::rename(beside.c_str(), path.c_str()) == 0 ? 0 : errno;
}

// A file of its own in the place of what is there. -1 and errno. `whole`: its name from the root,
// asked for before another stream can move it; "" if it cannot be told.
int make_own(const Place& place, std::string& whole) {
  std::string beside;
  const int file = make_beside(place.path, beside);
  if (file < 0) return -1;
  if (place.exists) ::fchmod(file, place.status.st_mode & 0777);  // what is private stays so
  ::flock(file, LOCK_EX | LOCK_NB);  // nobody else's, but nothing here ever waits
  const std::string made = name_of(file);
  const std::string last = place.path.substr(place.path.rfind('/') + 1);
  whole = made.empty() ? "" : made.substr(0, made.rfind('/') + 1) + last;
  const int error = take_name(beside, place.path);
  if (error == 0) return file;
  whole.clear();
  ::unlink(beside.c_str());
  ::close(file);
  errno = error;
  return -1;
}

}  // namespace

int write_descriptor(int descriptor, std::string_view text) {
  const NoPipeSignal quiet;
  while (!text.empty()) {
    const ssize_t done = ::write(descriptor, text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    text.remove_prefix(static_cast<size_t>(done));
  }
  return 0;
}

int write_output(const std::string& path, std::string_view content) {
  const Place place = find_output(path);
  if (place.error != 0) return place.error;
  if (place.is_ordinary()) return replace(place, content);
  const int file = open_through(place);
  if (file < 0) return errno;
  int error = write_descriptor(file, content);
  if (::close(file) != 0 && error == 0) error = errno;
  return error;
}

int check_output(const std::string& path) {
  const Place place = find_output(path);
  if (place.error != 0) return place.error;
  if (place.descriptor >= 0) {
    const int flags = ::fcntl(place.descriptor, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY ? 0 : EBADF;
  }
  const bool there = place.exists || !place.is_ordinary();
  if (there && ::faccessat(AT_FDCWD, place.path.c_str(), W_OK, AT_EACCESS) != 0) return errno;
  if (!place.is_ordinary()) return 0;
  std::string beside;
  const int file = make_beside(place.path, beside);
  if (file < 0) return errno;
  ::close(file);
  ::unlink(beside.c_str());
  return 0;
}

void remove_output(const std::string& path) {
  const Place place = find_output(path);
  if (place.error != 0 || !place.exists || !place.is_ordinary()) return;
  if (!remove_unless_written(place.path)) ::unlink(place.path.c_str());
}

bool is_same_file(const std::string& a, const std::string& b) {
  const Place one = find_place(a);
  const Place other = find_place(b);
  if (one.exists && other.exists) {
    return S_ISREG(one.status.st_mode) && one.status.st_dev == other.status.st_dev &&
           one.status.st_ino == other.status.st_ino;
  }
  if (one.exists || other.exists || one.path.empty() || other.path.empty()) return false;
  // Neither is there: the same name in the same directory.
  struct stat here {};
  struct stat there {};
  if (::stat(directory_of(one.path).c_str(), &here) != 0) return false;
  if (::stat(directory_of(other.path).c_str(), &there) != 0) return false;
  const auto name = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  return here.st_dev == there.st_dev && here.st_ino == there.st_ino &&
         name(one.path) == name(other.path);
}

int output_descriptor(const std::string& path) { return find_place(path).descriptor; }

OutputStream::~OutputStream() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int OutputStream::open(const std::string& path) {
  const Place place = find_output(path);
  if (place.error != 0) return place.error;
  path_.clear();
  descriptor_ = place.is_ordinary() ? make_own(place, path_) : open_through(place);
  if (descriptor_ < 0 && place.is_ordinary() && place.exists) {
    descriptor_ = open_in_place(place.path);
  }
  if (descriptor_ < 0) return errno;
  // A descriptor of the program's own may be a file that has something in it already.
  can_seek_ = place.is_ordinary();
  return 0;
}

void OutputStream::keep_name() const {
  struct stat there {};
  struct stat own {};
  if (path_.empty() || ::lstat(path_.c_str(), &there) != 0 || !S_ISREG(there.st_mode)) return;
  if (::fstat(descriptor_, &own) != 0 || is_same(there, own)) return;
  // Only another stream leaves it there; whoever renames or removes it himself has his reasons.
  const std::string name = name_of(descriptor_);
  const std::string beside = with_room(path_, kEnding) + ".";
  if (name.size() != beside.size() + kEnding - 1 || !name.starts_with(beside)) return;
  if (name.find_first_not_of(kDigits, beside.size()) != std::string::npos) return;
  (void)take_name(name, path_);  // what is written is kept in either case
}

int OutputStream::write_at(std::string_view text, uint64_t offset) {
  if (!can_seek_) return write_descriptor(descriptor_, text);
  keep_name();
  while (!text.empty()) {
    const ssize_t done =
        ::pwrite(descriptor_, text.data(), text.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    text.remove_prefix(static_cast<size_t>(done));
    offset += static_cast<uint64_t>(done);
  }
  return 0;
}

}  // namespace sealane
