// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "live/comm/rendezvous.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <thread>

#include "base/text.h"
#include "live/descriptor.h"
#include "transport/socket.h"

namespace sealane {
namespace {

constexpr Duration kPause = std::chrono::milliseconds(2);
constexpr size_t kTextBytesMax = 64_KiB;
constexpr size_t kHeadBytes = 8;  // rank, length

Error nobody_came(uint32_t rank, const std::string& where) {
  return peer_error(concat("rank ", rank, " did not come to ", where,
                           " in time: was it started, and with the same rendezvous?"));
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
    if (Status status = enter(own, deadline); !status) return status.error();
    std::vector<std::string> all;
    while (all.size() < self.size) {
      const auto rank = static_cast<uint32_t>(all.size());
      if (auto text = again(rank)) {
        all.push_back(std::move(*text));
        continue;
      }
      if (SteadyClock().now() > deadline) return nobody_came(rank, path_);
      std::this_thread::sleep_for(kPause);
    }
    return all;
  }

  std::optional<std::string> again(uint32_t rank) override {
    const Descriptor file(openat(directory_.get(), name(rank).c_str(),
                                 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status {};
    if (!file.valid() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
      return std::nullopt;
    }
    std::string text(kTextBytesMax, '\0');
    const ssize_t count = read(file.get(), text.data(), text.size());
    const size_t end = text.find('\n');
    if (count <= 0 || end >= static_cast<size_t>(count)) return std::nullopt;
    text.resize(end);
    return text;
  }

  void leave_word() override { left_ = false; }

  void finish() override {
    if (!left_) return;
    unlinkat(directory_.get(), name(self_.rank).c_str(), 0);
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

  // Written aside and renamed, so that nobody reads half of it. A file of that name is left from a
  // job that crashed.
  bool leave(const std::string& own) {
    const std::string aside = name(self_.rank) + ".new";
    unlinkat(directory_.get(), aside.c_str(), 0);
    const Descriptor file(openat(directory_.get(), aside.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    const std::string line = own + '\n';
    left_ =
        file.valid() &&
        write(file.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()) &&
        renameat(directory_.get(), aside.c_str(), directory_.get(), name(self_.rank).c_str()) == 0;
    return left_;
  }

  std::string name(uint32_t rank) const { return concat(self_.group, ".", self_.size, ".", rank); }

  std::string path_;
  Descriptor directory_{-1};
  Identity self_;
  bool left_ = false;  // the own file is there, and ours to remove
};

// Moves a whole buffer over a non-blocking socket.
bool move_all(const Socket& socket, MutableBytes bytes, bool sending, Instant deadline) {
  while (!bytes.empty()) {
    const ptrdiff_t count = sending ? socket.send(bytes) : socket.receive(bytes);
    if (count < 0 || SteadyClock().now() > deadline) return false;
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
        if (SteadyClock().now() > deadline) return nobody_came(missing(all), where());
        wait_for_sockets({{listener->descriptor(), false}}, kPause * 10);
        continue;
      }
      uint32_t rank = 0;
      std::string text;
      // A stranger that connects and says nothing must not hold up the others for long.
      const Instant soon = std::min(deadline, SteadyClock().now() + std::chrono::seconds(2));
      if (!receive_text(*guest, rank, text, soon)) continue;
      if (rank == 0 || rank >= self.size || guests[rank].valid()) continue;
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

  Result<std::vector<std::string>> ask(const Identity& self, const std::string& own,
                                       Instant deadline) {
    while (SteadyClock().now() < deadline) {
      auto host = Socket::connect_tcp(host_, port_);
      if (!host) return host.error();
      wait_for_sockets({{host->descriptor(), true}}, kPause * 50);
      if (host->connect_error() == 0 && send_text(*host, self.rank, own, deadline)) {
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
      if (!receive_text(host, rank, all[expected], deadline) || rank != expected) {
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

  std::string host_;
  uint16_t port_;
};

class StoreRendezvous final : public Rendezvous {
 public:
  explicit StoreRendezvous(ExternalStore store) : store_(std::move(store)) {}

  Result<std::vector<std::string>> exchange(const Identity& self, const std::string& own,
                                            Instant deadline) override {
    if (Status status = store_.set(key(self, self.rank), own); !status) return status.error();
    std::vector<std::string> all;
    for (uint32_t rank = 0; rank < self.size; ++rank) {
      const Duration left = std::max(deadline - SteadyClock().now(), Duration(0));
      auto text = store_.get(key(self, rank), left);
      if (!text) return peer_error(concat("rank ", rank, ": ", text.error().message));
      all.push_back(std::move(*text));
    }
    return all;
  }

 private:
  static std::string key(const Identity& self, uint32_t rank) {
    return concat("sealane/", self.group, "/", rank);
  }
  ExternalStore store_;
};

}  // namespace

Result<std::unique_ptr<Rendezvous>> make_rendezvous(const JoinOptions& options) {
  if (options.store.set) return std::unique_ptr<Rendezvous>(new StoreRendezvous(options.store));
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
