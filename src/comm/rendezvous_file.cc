// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <map>
#include <thread>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "comm/endpoint.h"
#include "comm/meeting_places.h"
#include "os/descriptor.h"
#include "transport/socket.h"

namespace sealane {
std::optional<Identity> identity_in_name(std::string_view name) {
  Identity found;
  for (uint32_t* part : {&found.rank, &found.size}) {
    const size_t dot = name.rfind('.');
    if (dot == std::string_view::npos) return std::nullopt;
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + dot + 1, end, *part);
    if (error != std::errc() || stop != end) return std::nullopt;
    name = name.substr(0, dot);
  }
  found.group = name;
  if (!check_identity(found)) return std::nullopt;
  return found;
}

namespace {

// Somebody on this host listens there, so it is no leftover.
bool is_alive(const std::string& text, const std::string& own) {
  const auto there = Endpoint::decode(text);
  const auto here = Endpoint::decode(own);
  return there && here && there->host == here->host && Socket::connect_unix(there->unix_name).ok();
}

// One file per rank in a directory all ranks see. Only this user may write there: others could put
// links to his files in the way, or addresses of their own.
class FileRendezvous final : public Rendezvous {
 public:
  explicit FileRendezvous(std::string path) : path_(std::move(path)) {}
  ~FileRendezvous() override { finish(); }

  Result<std::vector<std::string>> exchange(const Identity& self, const std::string& own,
                                            Instant deadline) override {
    self_ = self;
    own_ = own;
    SEALANE_TRY(enter(own, deadline));
    std::vector<std::string> all;
    for (uint64_t pass = 1; all.size() < self.size;) {
      const auto rank = static_cast<uint32_t>(all.size());
      if (auto text = again(rank)) {
        all.push_back(std::move(*text));
        continue;
      }
      if (const auto told = word()) return peer_error(*told);
      if (pass++ % kPassesPerLook == 0) {
        SEALANE_TRY(look_around());
      }
      if (meeting_over(deadline)) return nobody_came(rank, path_, hint_);
      std::this_thread::sleep_for(kMeetingPause);
    }
    return all;
  }

  std::optional<std::string> again(uint32_t rank) override { return line_of(name(rank), 0); }

  void tell(const Identity& whom, const std::string& text, const std::string& reason) override {
    const std::string note =
        concat(text, "\n", described(self_), " gave up: ", printable(reason, kReasonMax), "\n");
    static_cast<void>(place(name(whom) + kNote, note));
  }

  // A note that was meant for an earlier process with this rank's name counts for nothing.
  std::optional<std::string> word() override {
    const std::string note = name(self_) + kNote;
    const auto meant_for = line_of(note, 0);
    if (!meant_for || *meant_for != own_) return std::nullopt;
    auto reason = line_of(note, 1);
    if (reason) *reason = printable(*reason, 2 * kReasonMax);
    return reason;
  }

  void leave_word() override { left_ = false; }

  void finish() override {
    if (!left_) return;
    unlinkat(directory_.get(), name(self_.rank).c_str(), 0);
    unlinkat(directory_.get(), (name(self_) + kNote).c_str(), 0);
    rmdir(path_.c_str());  // succeeds for the last one
    left_ = false;
  }

 private:
  Status enter(const std::string& own, Instant deadline) {
    while (true) {
      const bool there = mkdir(path_.c_str(), 0700) == 0 || errno == EEXIST;
      directory_ = Descriptor(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (directory_.valid() && !only_ours()) {
        return usage_error(concat("others than this user can write to the rendezvous directory ",
                                  path_, ": take a fresh one, or fix it with: chmod go-w ", path_));
      }
      if (directory_.valid() && leave(own)) return {};
      // The last rank of another group may have removed the directory in between.
      if (errno == ENOENT && there && SteadyClock().now() < deadline) continue;
      return io_error("cannot write to the rendezvous directory " + path_, errno);
    }
  }

  bool only_ours() const {
    struct stat status {};
    return fstat(directory_.get(), &status) == 0 && status.st_uid == geteuid() &&
           (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  }

  bool leave(const std::string& own) {
    left_ = place(name(self_), own + '\n');
    return left_;
  }

  // Written aside and renamed, so that nobody reads half of it. A file of that name is left from a
  // job that crashed.
  bool place(const std::string& name_of_file, const std::string& text) {
    const std::string aside = concat(name_of_file, ".", self_.rank, ".new");
    unlinkat(directory_.get(), aside.c_str(), 0);
    const Descriptor file(openat(directory_.get(), aside.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    return file.valid() &&
           write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
           renameat(directory_.get(), aside.c_str(), directory_.get(), name_of_file.c_str()) == 0;
  }

  // That line of a file somebody left, if it is whole.
  std::optional<std::string> line_of(const std::string& name_of_file, size_t number) const {
    const Descriptor file(openat(directory_.get(), name_of_file.c_str(),
                                 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status {};
    if (!file.valid() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
      return std::nullopt;
    }
    std::string text(kMeetingTextMax, '\0');
    const ssize_t count = read(file.get(), text.data(), text.size());
    text.resize(count > 0 ? static_cast<size_t>(count) : 0);
    size_t begin = 0;
    for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      if (number-- == 0) return text.substr(begin, end - begin);
    }
    return std::nullopt;
  }

  // Who else waits here. Another size of the same group is a mistake, at once; another group may
  // be one that lives beside this one, unless for a while its ranks are just those missing here.
  Status look_around() {
    std::map<std::pair<std::string, uint32_t>, std::vector<Identity>> others;
    std::vector<bool> here(self_.size);
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(path_, ignored)) {
      const auto found = identity_in_name(entry.path().filename().string());
      if (!found) continue;
      if (found->group == self_.group && found->size == self_.size) {
        here[found->rank] = true;
        continue;
      }
      const auto text = line_of(name(*found), 0);
      if (!text || !is_alive(*text, own_)) continue;
      hint_ = concat(" (", described(*found), " waits there)");
      if (found->group == self_.group) return part_from({*found});
      if (found->size == self_.size) others[{found->group, found->size}].push_back(*found);
    }
    for (const auto& [group, ranks] : others) {
      const auto elsewhere = [&](const Identity& one) { return !here[one.rank]; };
      const auto present = static_cast<size_t>(std::count(here.begin(), here.end(), true));
      const bool just_those = std::all_of(ranks.begin(), ranks.end(), elsewhere) &&
                              present + ranks.size() == self_.size;
      if (just_those && ++looks_at_[group.first] >= kLooksAtAnotherGroup) return part_from(ranks);
      if (!just_those) looks_at_[group.first] = 0;
    }
    return {};
  }

  Status part_from(const std::vector<Identity>& others) {
    const Error error = groups_differ(others.front(), self_, path_);
    for (const Identity& other : others) {
      if (const auto text = line_of(name(other), 0)) tell(other, *text, error.message);
    }
    return error;
  }

  static std::string name(const Identity& whose) {
    return concat(whose.group, ".", whose.size, ".", whose.rank);
  }
  std::string name(uint32_t rank) const { return name({self_.group, self_.size, rank}); }

  static constexpr const char* kNote = ".note";
  static constexpr size_t kReasonMax = 256;
  static constexpr uint64_t kPassesPerLook = 50;  // a tenth of a second
  static constexpr int kLooksAtAnotherGroup = 30;

  std::string path_;
  Descriptor directory_{-1};
  Identity self_;
  std::string own_;
  std::string hint_;
  std::map<std::string, int> looks_at_;
  bool left_ = false;  // the own file is there, and ours to remove
};

}  // namespace

std::unique_ptr<Rendezvous> meet_in_directory(std::string path) {
  return std::make_unique<FileRendezvous>(std::move(path));
}

}  // namespace sealane
