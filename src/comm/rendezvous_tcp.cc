// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <charconv>
#include <thread>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "comm/meeting_places.h"
#include "transport/socket.h"

namespace sealane {

std::optional<Identity> take_identity(std::string& text, uint32_t rank) {
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

namespace {

constexpr size_t kHeadBytes = 8;  // rank, length

// Moves a whole buffer over a non-blocking socket.
bool move_all(const Socket& socket, MutableBytes bytes, bool sending, Instant deadline) {
  while (!bytes.empty()) {
    const ptrdiff_t count = sending ? socket.send(bytes) : socket.receive(bytes);
    if (count < 0 || meeting_over(deadline)) return false;
    if (count == 0) wait_for_sockets({{socket.descriptor(), sending}}, kMeetingPause * 10);
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
  if (length > kMeetingTextMax) return false;
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
    SEALANE_LET(auto listener, Socket::listen_tcp("", port_));
    std::vector<std::string> all(self.size);
    std::vector<Socket> guests(self.size);
    all[0] = own;
    for (uint32_t heard = 1; heard < self.size;) {
      // However many strangers are at the door.
      if (meeting_over(deadline)) return nobody_came(missing(all), where());
      auto guest = listener.accept();
      if (!guest) {
        if (const auto rank = who_left(guests)) {
          return refuse_all(guests, peer_error(concat("rank ", *rank, " left while joining")));
        }
        wait_for_sockets({{listener.descriptor(), false}}, kMeetingPause * 10);
        continue;
      }
      uint32_t rank = 0;
      std::string text;
      // A stranger that connects and says nothing must not hold up the others for long.
      const Instant soon = std::min(deadline, SteadyClock().now() + std::chrono::seconds(2));
      if (!receive_text(*guest, rank, text, soon)) continue;
      const auto theirs = take_identity(text, rank);
      if (theirs && (theirs->group != self.group || theirs->size != self.size)) {
        const Error error = groups_differ(*theirs, self, where());
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
    while (!meeting_over(deadline)) {
      SEALANE_LET(auto host, Socket::connect_tcp(host_, port_));
      wait_for_sockets({{host.descriptor(), true}}, kMeetingPause * 50);
      if (host.connect_error() == 0 &&
          send_text(host, self.rank, with_identity(self, own), deadline)) {
        return hear(host, self, deadline);
      }
      std::this_thread::sleep_for(kMeetingPause * 10);  // rank 0 is not there yet
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

}  // namespace

std::unique_ptr<Rendezvous> meet_at_rank_0(std::string host, uint16_t port) {
  return std::make_unique<TcpRendezvous>(std::move(host), port);
}

}  // namespace sealane
