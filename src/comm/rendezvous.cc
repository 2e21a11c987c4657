// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/rendezvous.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <map>
#include <thread>
#include <utility>

#include "base/text.h"
#include "comm/endpoint.h"
#include "comm/exit_hold.h"
#include "os/descriptor.h"
#include "transport/socket.h"

namespace sealane {
namespace {

constexpr Duration kPause = std::chrono::milliseconds(2);
constexpr size_t kTextBytesMax = 64_KiB;
constexpr size_t kHeadBytes = 8;  // rank, length

Error nobody_came(uint32_t rank, const std::string& where, const std::string& hint = {}) {
  return peer_error(concat("rank ", rank, " did not come to ", where,
                           " in time: was it started, and with the same rendezvous?", hint));
}

std::string described(const Identity& self) {
  return concat("rank ", self.rank, " of ", self.size, " of group '", self.group, "'");
}

Error differ(const Identity& theirs, const Identity& own, const std::string& where) {
  return usage_error(concat(described(theirs), " and ", described(own), " wait at ", where,
                            ": give all ranks the same group name and size"));
}

// "group.size.rank", as files are named.
std::optional<Identity> identity_of(std::string_view name) {
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

// Nobody waits any longer, or the process does not.
bool is_over(Instant deadline) { return process_exits() || SteadyClock().now() > deadline; }

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
    if (Status status = enter(own, deadline); !status) return status.error();
    std::vector<std::string> all;
    for (uint64_t pass = 1; all.size() < self.size;) {
      const auto rank = static_cast<uint32_t>(all.size());
      if (auto text = again(rank)) {
        all.push_back(std::move(*text));
        continue;
      }
      if (const auto told = word()) return peer_error(*told);
      if (pass++ % kPassesPerLook == 0) {
        if (Status status = look_around(); !status) return status.error();
      }
      if (is_over(deadline)) return nobody_came(rank, path_, hint_);
      std::this_thread::sleep_for(kPause);
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
    std::string text(kTextBytesMax, '\0');
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
      const auto found = identity_of(entry.path().filename().string());
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
    const Error error = differ(others.front(), self_, path_);
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

// Moves a whole buffer over a non-blocking socket.
bool move_all(const Socket& socket, MutableBytes bytes, bool sending, Instant deadline) {
  while (!bytes.empty()) {
    const ptrdiff_t count = sending ? socket.send(bytes) : socket.receive(bytes);
    if (count < 0 || is_over(deadline)) return false;
    if (count == 0) wait_for_sockets({{socket.descriptor(), sending}}, kPause * 10);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return true;
}

bool send_text(const Socket& socket, uint32_t rank, std::string text, Instant deadline) {
  std::vector<uint8_t> frame(kHeadBytes + text.size());
  store_le(frame.data(), rank);
  store_le(frame.data() + 4, static_cast<uint32_t>(text.size()));
  std::copy(text.begin(), text.end(), frame.begin() + kHeadBytes);
  return move_all(socket, frame, true, deadline);
}

bool receive_text(const Socket& socket, uint32_t& rank, std::string& text, Instant deadline) {
  std::array<uint8_t, kHeadBytes> head;
  if (!move_all(socket, head, false, deadline)) return false;
  rank = load_le<uint32_t>(head.data());
  const uint32_t length = load_le<uint32_t>(head.data() + 4);
  if (length > kTextBytesMax) return false;
  text.resize(length);
  return move_all(socket, {reinterpret_cast<uint8_t*>(text.data()), text.size()}, false, deadline);
}

// Rank 0 listens at an address all know, hears everyone and tells everyone.
class TcpRendezvous final : public Rendezvous {
 public:
  TcpRendezvous(std::string host, uint16_t port) : host_(std::move(host)), port_(port) {}

  Result<std::vector<std::string>> exchange(const Identity& self, const std::string& own,
                                            Instant deadline) override {
    return self.rank == 0 ? serve(self, own, deadline) : ask(self, own, deadline);
  }

 private:
  std::string where() const { return concat(host_, ":", port_); }

  Result<std::vector<std::string>> serve(const Identity& self, const std::string& own,
                                         Instant deadline) {
    auto listener = Socket::listen_tcp("", port_);
    if (!listener) return listener.error();
    std::vector<std::string> all(self.size);
    std::vector<Socket> guests(self.size);
    all[0] = own;
    for (uint32_t heard = 1; heard < self.size;) {
      auto guest = listener->accept();
      if (!guest) {
        if (const auto rank = who_left(guests)) {
          return refuse_all(guests, peer_error(concat("rank ", *rank, " left while joining")));
        }
        if (is_over(deadline)) return nobody_came(missing(all), where());
        wait_for_sockets({{listener->descriptor(), false}}, kPause * 10);
        continue;
      }
      uint32_t rank = 0;
      std::string text;
      // A stranger that connects and says nothing must not hold up the others for long.
      const Instant soon = std::min(deadline, SteadyClock().now() + std::chrono::seconds(2));
      if (!receive_text(*guest, rank, text, soon)) continue;
      const auto theirs = take_identity(text, rank);
      if (theirs && (theirs->group != self.group || theirs->size != self.size)) {
        const Error error = differ(*theirs, self, where());
        send_text(*guest, kRefused, error.message, soon);
        return refuse_all(guests, error);
      }
      if (!theirs || rank == 0 || rank >= self.size || guests[rank].valid()) continue;
      all[rank] = std::move(text);
      guests[rank] = std::move(*guest);
      ++heard;
    }
    for (uint32_t rank = 1; rank < self.size; ++rank) {
      for (uint32_t about = 0; about < self.size; ++about) {
        if (!send_text(guests[rank], about, all[about], deadline))
          return nobody_came(rank, where());
      }
    }
    return all;
  }

  // A guest says of which group it is before its address.
  static std::string with_identity(const Identity& self, const std::string& text) {
    return concat(self.group, " ", self.size, "\n", text);
  }
  static std::optional<Identity> take_identity(std::string& text, uint32_t rank) {
    const size_t line = text.find('\n');
    const size_t space = text.rfind(' ', line);
    if (line == std::string::npos || space == std::string::npos) return std::nullopt;
    Identity found;
    found.group = text.substr(0, space);
    found.rank = rank;
    const char* end = text.data() + line;
    const auto [stop, error] = std::from_chars(text.data() + space + 1, end, found.size);
    if (error != std::errc() || stop != end || !check_identity(found)) return std::nullopt;
    text.erase(0, line + 1);
    return found;
  }

  // A guest waits for the answer; one that does not is gone.
  static std::optional<uint32_t> who_left(const std::vector<Socket>& guests) {
    for (uint32_t rank = 0; rank < guests.size(); ++rank) {
      uint8_t byte = 0;
      if (guests[rank].valid() && guests[rank].receive({&byte, 1}) < 0) return rank;
    }
    return std::nullopt;
  }

  static Error refuse_all(const std::vector<Socket>& guests, const Error& error) {
    const Instant soon = SteadyClock().now() + std::chrono::seconds(1);
    for (const Socket& guest : guests) {
      if (guest.valid()) send_text(guest, kRefused, error.message, soon);
    }
    return error;
  }

  Result<std::vector<std::string>> ask(const Identity& self, const std::string& own,
                                       Instant deadline) {
    while (!is_over(deadline)) {
      auto host = Socket::connect_tcp(host_, port_);
      if (!host) return host.error();
      wait_for_sockets({{host->descriptor(), true}}, kPause * 50);
      if (host->connect_error() == 0 &&
          send_text(*host, self.rank, with_identity(self, own), deadline)) {
        return hear(*host, self, deadline);
      }
      std::this_thread::sleep_for(kPause * 10);  // rank 0 is not there yet
    }
    return nobody_came(0, where());
  }

  Result<std::vector<std::string>> hear(const Socket& host, const Identity& self,
                                        Instant deadline) const {
    std::vector<std::string> all(self.size);
    for (uint32_t expected = 0; expected < self.size; ++expected) {
      uint32_t rank = 0;
      const bool heard = receive_text(host, rank, all[expected], deadline);
      if (heard && rank == kRefused) return usage_error(printable(all[expected], kTextShown));
      if (!heard || rank != expected) {
        return peer_error(concat("the rendezvous at ", where(), " ended before all ranks met"));
      }
    }
    return all;
  }

  static uint32_t missing(const std::vector<std::string>& all) {
    uint32_t rank = 0;
    while (rank + 1 < all.size() && !all[rank].empty()) ++rank;
    return rank;
  }

  static constexpr uint32_t kRefused = ~uint32_t{0};  // in the place of a rank: why
  static constexpr size_t kTextShown = 512;
  std::string host_;
  uint16_t port_;
};

class StoreRendezvous final : public Rendezvous {
 public:
  StoreRendezvous(ExternalStore store, std::function<bool()> given_up)
      : store_(std::move(store)), given_up_(std::move(given_up)) {}

  Result<std::vector<std::string>> exchange(const Identity& self, const std::string& own,
                                            Instant deadline) override {
    self_ = self;
    if (Status status = store_.set(key(self, self.rank), sized(self, own)); !status) {
      return status.error();
    }
    std::vector<std::string> all;
    for (uint32_t rank = 0; rank < self.size; ++rank) {
      auto text = get(key(self, rank), deadline);
      if (!text && text.error().kind == ErrorKind::usage) return text.error();
      if (!text) return peer_error(concat("rank ", rank, ": ", text.error().message));
      if (text->starts_with(kGaveUp)) {
        return peer_error(concat(
            "rank ", rank, " gave up: ", printable(std::string_view(*text).substr(1), kTextShown)));
      }
      const std::string prefix = sized(self, "");
      if (!text->starts_with(prefix)) {
        return usage_error(concat("rank ", rank, " of group '", self.group,
                                  "' has another size than ", self.size,
                                  ", or another version of Sealane: give all ranks the same"));
      }
      all.push_back(text->substr(prefix.size()));
    }
    return all;
  }

  // In the place of the own address: who still waits for that finds it.
  void tell(const Identity&, const std::string&, const std::string& reason) override {
    if (std::exchange(told_, true)) return;
    static_cast<void>(store_.set(key(self_, self_.rank), kGaveUp + reason));
  }

 private:
  // A store waits in its own way: whoever may give up asks it for a little at a time. An error that
  // comes before that time is the store's own, and is told.
  Result<std::string> get(const std::string& name, Instant deadline) {
    while (true) {
      const Instant start = SteadyClock().now();
      const Duration left = std::max(deadline - start, Duration(0));
      const bool last = !given_up_ || left <= kSlice;
      auto text = store_.get(name, last ? left : kSlice);
      if (text || last || SteadyClock().now() < start + kSlice) return text;
      if (given_up_()) return given_up_error();
    }
  }

  static std::string sized(const Identity& self, const std::string& own) {
    return concat(self.size, "\n", own);
  }
  static constexpr const char* kGaveUp = "!";
  static constexpr Duration kSlice = std::chrono::milliseconds(100);
  static constexpr size_t kTextShown = 256;
  Identity self_;
  bool told_ = false;
  static std::string key(const Identity& self, uint32_t rank) {
    return concat("sealane/", self.group, "/", rank);
  }
  ExternalStore store_;
  std::function<bool()> given_up_;
};

}  // namespace

Result<std::unique_ptr<Rendezvous>> make_rendezvous(const JoinOptions& options) {
  if (options.store.set) {
    return std::unique_ptr<Rendezvous>(new StoreRendezvous(options.store, options.given_up));
  }
  const std::string& where = options.rendezvous;
  if (where.starts_with("file:") && where.size() > 5) {
    return std::unique_ptr<Rendezvous>(new FileRendezvous(where.substr(5)));
  }
  const size_t colon = where.rfind(':');
  uint16_t port = 0;
  if (where.starts_with("tcp:") && colon != std::string::npos && colon > 4) {
    const char* end = where.data() + where.size();
    const auto [stop, error] = std::from_chars(where.data() + colon + 1, end, port);
    std::string host = where.substr(4, colon - 4);
    if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
    if (error == std::errc() && stop == end) {
      return std::unique_ptr<Rendezvous>(new TcpRendezvous(std::move(host), port));
    }
  }
  return usage_error(
      concat("rendezvous '", where, "' is neither file:DIRECTORY nor tcp:HOST:PORT"));
}

}  // namespace sealane
