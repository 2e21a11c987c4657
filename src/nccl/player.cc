// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "nccl/player.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <deque>
#include <thread>

#include "base/text.h"
#include "base/try.h"

namespace sealane::nccl {
namespace {

std::atomic<Seat*> log_seat{nullptr};
Duration patience_of_all = std::chrono::seconds(60);

void on_log(int level, unsigned long, const char*, int, const char* format, ...) {
  if (level != kLogWarn) return;
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (Seat* seat = log_seat.load()) seat->put_line(text);
}

// Between two looks of who waits. NCCL looks without a pause, and so does this, for longer than
// anything that works takes; what has not come by then comes late or never, and other ranks may
// need the core.
class Pause {
 public:
  explicit Pause(Instant now) : nap_from_(now + kWithout) {}
  void take(Instant now) const {
    if (now < nap_from_) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }

 private:
  static constexpr Duration kWithout = std::chrono::milliseconds(50);
  static constexpr Duration kNap = std::chrono::microseconds(100);

  Instant nap_from_;
};

// Repeats a call that may have to be repeated, as NCCL does, until it gives something.
template <typename Call>
Result<void*> until_given(const char* name, Call call) {
  const Instant began = SteadyClock().now();
  const Pause pause(began);
  while (true) {
    void* given = nullptr;
    if (const Code code = call(&given); code != kSuccess) return failed(name, code);
    if (given != nullptr) return given;
    const Instant now = SteadyClock().now();
    if (now > began + patience()) {
      return peer_error(concat(name, " gives nothing, however often it is called"));
    }
    pause.take(now);
  }
}

}  // namespace

void set_patience(Duration patience) { patience_of_all = patience; }
Duration patience() { return patience_of_all; }

void keep_log_lines(Seat& seat) { log_seat = &seat; }
Logger log_callback() { return on_log; }

Error failed(const char* call, Code code) {
  return peer_error(concat(call, " returned ", code_name(code)));
}

Result<std::unique_ptr<Player>> Player::start(const PluginTable& plugin, Seat& seat,
                                              uint64_t communicator) {
  keep_log_lines(seat);
  void* context = nullptr;
  if (const Code code = plugin.init(&context, communicator, on_log); code != kSuccess) {
    return failed("init", code);
  }
  int devices = 0;
  if (const Code code = plugin.devices(&devices); code != kSuccess) return failed("devices", code);
  if (devices < 1) return usage_error("the plugin has no device");
  return std::unique_ptr<Player>(new Player(plugin, seat, context));
}

Player::~Player() { plugin_.finalize(context_); }

Result<void*> Player::connect_to(int rank, int link) {
  SEALANE_LET(auto handle, seat_.take_handle(rank, link, patience()));
  HandleBytes memory = handle;  // NCCL gives the same memory every time
  return until_given("connect",
                     [&](void** comm) { return plugin_.connect(context_, 0, memory, comm); });
}

Result<void*> Player::listen_for(int rank, int link) {
  HandleBytes handle{};
  void* comm = nullptr;
  if (const Code code = plugin_.listen(context_, 0, handle, &comm); code != kSuccess) {
    return failed("listen", code);
  }
  seat_.leave_handle(rank, link, handle);
  return comm;
}

Result<void*> Player::accept_on(void* listen_comm) {
  return until_given("accept", [&](void** comm) { return plugin_.accept(listen_comm, comm); });
}

Result<void*> Player::accept_from(int rank, int link) {
  SEALANE_LET(auto listener, listen_for(rank, link));
  auto comm = accept_on(listener);
  plugin_.close_listen(listener);
  return comm;
}

Result<Player::Pair> Player::connect_ring(int next, int previous, int link) {
  SEALANE_LET(auto listener, listen_for(previous, link));
  SEALANE_LET(HandleBytes memory, seat_.take_handle(next, link, patience()));
  Pair pair;
  auto both = until_given("connect and accept", [&](void** given) {
    if (pair.send == nullptr) {
      const Code code = plugin_.connect(context_, 0, memory, &pair.send);
      if (code != kSuccess) return code;
    }
    if (pair.receive == nullptr) {
      const Code code = plugin_.accept(listener, &pair.receive);
      if (code != kSuccess) return code;
    }
    *given = pair.receive == nullptr ? nullptr : pair.send;
    return kSuccess;
  });
  plugin_.close_listen(listener);
  if (both) return pair;
  if (pair.send != nullptr) plugin_.close_send(pair.send);
  if (pair.receive != nullptr) plugin_.close_receive(pair.receive);
  return both.error();
}

void Player::close_send(void* comm) { plugin_.close_send(comm); }
void Player::close_receive(void* comm) { plugin_.close_receive(comm); }
void Player::close_listen(void* comm) { plugin_.close_listen(comm); }

Result<void*> Player::send(void* comm, const void* data, size_t bytes, void* memory) {
  return until_given("isend", [&](void** request) {
    return plugin_.isend(comm, const_cast<void*>(data), bytes, memory, request);
  });
}

Result<void*> Player::receive(void* comm, void* data, size_t bytes, void* memory) {
  return until_given(
      "irecv", [&](void** request) { return plugin_.irecv(comm, data, bytes, memory, request); });
}

Result<int64_t> Player::poll(void* request) {
  int done = 0;
  int size = 0;
  if (const Code code = plugin_.test(request, &done, &size); code != kSuccess) {
    return failed("test", code);
  }
  return done != 0 ? int64_t{size} : int64_t{-1};
}

Status Player::consumed(void* comm, void* request) {
  const Code code = plugin_.consumed(comm, request);
  return code == kSuccess ? Status() : Status(failed("irecvConsumed", code));
}

Result<size_t> Player::wait(void* request) {
  const Instant began = SteadyClock().now();
  const Pause pause(began);
  while (true) {
    SEALANE_LET(auto size, poll(request));
    if (size >= 0) return static_cast<size_t>(size);
    const Instant now = SteadyClock().now();
    if (now > began + patience()) return peer_error("a request is never done");
    pause.take(now);
  }
}

uint8_t pattern(uint64_t message, size_t at) {
  const uint64_t mixed = (message + 1) * 0x9e3779b97f4a7c15 + at / 8 * 0xbf58476d1ce4e5b9;
  return static_cast<uint8_t>(mixed >> (8 * (at % 8)) ^ mixed >> 33);
}

void fill_pattern(MutableBytes out, uint64_t message) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = pattern(message, i);
}

Status check_pattern(Bytes bytes, uint64_t message) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != pattern(message, i)) {
      return crypto_error(
          concat("message ", message, ": byte ", i, " of ", bytes.size(), " is not what was sent"));
    }
  }
  return {};
}

namespace {

// Memory for `window` messages under way, and their requests in order.
class Window {
 public:
  explicit Window(const Traffic& traffic) : traffic_(traffic) {
    const size_t most = *std::max_element(traffic.sizes.begin(), traffic.sizes.end());
    buffers_.resize(traffic.window, std::vector<uint8_t>(most + traffic.receive_slack + 8));
  }
  size_t bytes_of(uint64_t message) const {
    return traffic_.sizes[message % traffic_.sizes.size()];
  }
  // Not aligned to anything in every other message.
  MutableBytes memory(uint64_t message, size_t bytes) {
    return MutableBytes(buffers_[message % traffic_.window]).subspan(message % 2 * 3, bytes);
  }

 private:
  const Traffic& traffic_;
  std::vector<std::vector<uint8_t>> buffers_;
};

}  // namespace

Status send_traffic(Player& player, void* comm, const Traffic& traffic) {
  Window window(traffic);
  std::deque<void*> requests;
  uint64_t done = 0;
  for (uint64_t message = 0; done < traffic.messages;) {
    if (message < traffic.messages && requests.size() < traffic.window) {
      const MutableBytes memory = window.memory(message, window.bytes_of(message));
      if (traffic.check) fill_pattern(memory, message);
      SEALANE_LET(auto request, player.send(comm, memory.data(), memory.size()));
      requests.push_back(request);
      ++message;
      continue;
    }
    SEALANE_TRY(player.wait(requests.front()));
    requests.pop_front();
    // Done means that the memory is the caller's again.
    if (traffic.check) {
      const MutableBytes memory = window.memory(done, window.bytes_of(done));
      std::fill(memory.begin(), memory.end(), uint8_t{0xee});
    }
    ++done;
  }
  return {};
}

Status receive_traffic(Player& player, void* comm, const Traffic& traffic) {
  Window window(traffic);
  std::deque<void*> requests;
  uint64_t done = 0;
  for (uint64_t message = 0; done < traffic.messages;) {
    if (message < traffic.messages && requests.size() < traffic.window) {
      const MutableBytes memory =
          window.memory(message, window.bytes_of(message) + traffic.receive_slack);
      SEALANE_LET(auto request, player.receive(comm, memory.data(), memory.size()));
      requests.push_back(request);
      ++message;
      continue;
    }
    SEALANE_LET(auto size, player.wait(requests.front()));
    SEALANE_TRY(player.consumed(comm, requests.front()));
    requests.pop_front();
    const size_t expected = window.bytes_of(done);
    if (size != expected) {
      return crypto_error(concat("message ", done, " of ", expected, " bytes arrived as ", size));
    }
    if (traffic.check) {
      SEALANE_TRY(check_pattern(window.memory(done, expected), done));
    }
    ++done;
  }
  return {};
}

Ring::Ring(Player& player, Player::Pair connections, size_t slice_bytes)
    : player_(player),
      connections_(connections),
      slice_(std::max<size_t>(slice_bytes / sizeof(float), 1)),
      staging_(kSlicesMax, std::vector<float>(slice_)) {}

Ring::Piece Ring::piece(size_t chunk, size_t index) const {
  const size_t size = values_->size();
  const size_t begin = std::min(size, chunk * part_ + index * slice_);
  const size_t end = std::min({size, (chunk + 1) * part_, chunk * part_ + (index + 1) * slice_});
  return {begin, end > begin ? end - begin : 0};
}

Status Ring::all_reduce(std::vector<float>& values) {
  const auto ranks = static_cast<size_t>(player_.seat().ranks());
  values_ = &values;
  part_ = (values.size() + ranks - 1) / ranks;
  slices_ = (part_ + slice_ - 1) / slice_;
  total_ = uint64_t{2} * (ranks - 1) * slices_;
  sent_ = posted_ = received_ = 0;
  while (received_ < total_ || sent_ < total_ || !sending_.empty()) {
    SEALANE_TRY(post());
    SEALANE_LET(auto moved, look());
    if (!moved) sched_yield();
  }
  return {};
}

// Step s passes chunk (rank - s) on. A slice of step s > 0 can go when that of step s-1 has come.
Status Ring::post() {
  const auto ranks = static_cast<size_t>(player_.seat().ranks());
  const auto rank = static_cast<size_t>(player_.seat().rank());
  while (posted_ < total_ && posted_ - received_ < kSlicesMax) {
    SEALANE_LET(auto request,
                player_.receive(connections_.receive, staging_[posted_ % kSlicesMax].data(),
                                slice_ * sizeof(float)));
    receiving_.push_back(request);
    ++posted_;
  }
  while (sent_ < total_ && sending_.size() < kSlicesMax &&
         (sent_ < slices_ || sent_ - slices_ < received_)) {
    const Piece p = piece((rank + 2 * ranks - sent_ / slices_) % ranks, sent_ % slices_);
    SEALANE_LET(auto request,
                player_.send(connections_.send, values_->data() + p.from, p.count * sizeof(float)));
    sending_.push_back(request);
    ++sent_;
  }
  return {};
}

Result<bool> Ring::look() {
  bool moved = false;
  while (!sending_.empty()) {
    SEALANE_LET(auto size, player_.poll(sending_.front()));
    if (size < 0) break;
    sending_.pop_front();
    moved = true;
  }
  SEALANE_LET(auto taken, take());
  return moved || taken;
}

Result<bool> Ring::take() {
  if (receiving_.empty()) return false;
  SEALANE_LET(auto size, player_.poll(receiving_.front()));
  if (size < 0) return false;
  const auto ranks = static_cast<size_t>(player_.seat().ranks());
  const auto rank = static_cast<size_t>(player_.seat().rank());
  const size_t step = received_ / slices_;
  const Piece p = piece((rank + 2 * ranks - step - 1) % ranks, received_ % slices_);
  if (static_cast<size_t>(size) != p.count * sizeof(float)) {
    return crypto_error("a slice of another size than the ring has");
  }
  const float* const from = staging_[received_ % kSlicesMax].data();
  float* const to = values_->data() + p.from;
  if (step < ranks - 1) {
    for (size_t i = 0; i < p.count; ++i) to[i] += from[i];
  } else {
    std::copy_n(from, p.count, to);
  }
  receiving_.pop_front();
  ++received_;
  return true;
}

}  // namespace sealane::nccl
