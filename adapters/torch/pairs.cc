// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "pairs.h"

#include <condition_variable>
#include <deque>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

namespace sealane::adapter {
namespace {

constexpr int kSender = 0;
constexpr int kReceiver = 1;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string in_world_ranks(const std::string& text, const std::vector<int>& world_ranks) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    const bool one = text.compare(at, 5, "rank ") == 0;
    const bool several = text.compare(at, 6, "ranks ") == 0;
    if (!one && !several) {
      out += text[at++];
      continue;
    }
    const size_t word = one ? 5 : 6;
    out.append(text, at, word);
    at += word;
    while (at < text.size() && is_digit(text[at])) {
      size_t end = at;
      while (end < text.size() && is_digit(text[end])) ++end;
      const size_t rank = std::stoul(text.substr(at, end - at));
      out += rank < world_ranks.size() ? std::to_string(world_ranks[rank]) : std::to_string(rank);
      at = end;
      if (!several || text.compare(at, 2, ", ") != 0) break;
      out += ", ";
      at += 2;
    }
  }
  return out;
}

class Pairs::Lane {
 public:
  Lane(SecretOptions options, std::vector<int> world_ranks)
      : options_(std::move(options)),
        world_ranks_(std::move(world_ranks)),
        worker_([this] { work(); }) {}

  ~Lane() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  struct Message {
    int64_t tag;
    void* data;  // only read on the sender's side
    size_t bytes;
    WorkCallback done;
  };

  void add(Message message) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(message));
    }
    changed_.notify_all();
  }

  CommTraffic traffic() const {
    const std::lock_guard lock(mutex_);
    return comm_ ? comm_->traffic() : CommTraffic();
  }

 private:
  void work() {
    while (true) {
      Message message;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ending_ || !queue_.empty(); });
        if (queue_.empty()) return;
        message = std::move(queue_.front());
        queue_.pop_front();
      }
      if (failure_.empty()) attempt(message);
      message.done(failure_);
    }
  }

  void attempt(const Message& message) {
    try {
      if (!comm_) join();
      options_.rank == kSender ? send(message) : receive(message);
    } catch (const std::exception& error) {
      failure_ = in_world_ranks(error.what(), world_ranks_);
      if (failure_.empty()) failure_ = "unknown error";
    }
  }

  void join() {
    Comm joined(options_);
    const std::lock_guard lock(mutex_);
    comm_.emplace(std::move(joined));
  }

  void send(const Message& message) {
    comm_->send(&message.tag, 1, DataType::int64, kReceiver);
    comm_->send(message.data, message.bytes, DataType::uint8, kReceiver);
  }

  void receive(const Message& message) {
    int64_t tag = 0;
    comm_->receive(&tag, 1, DataType::int64, kSender);
    if (tag != message.tag) {
      throw std::runtime_error("rank " + std::to_string(kSender) + " sent tag " +
                               std::to_string(tag) + " where tag " + std::to_string(message.tag) +
                               " is expected: messages of a pair arrive in the order of sending");
    }
    comm_->receive(message.data, message.bytes, DataType::uint8, kSender);
  }

  const SecretOptions options_;
  const std::vector<int> world_ranks_;
  std::optional<Comm> comm_;  // the thread's; others look at it under the mutex
  std::string failure_;       // the thread's

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Message> queue_;
  bool ending_ = false;
  std::thread worker_;  // last: everything it uses is there before it
};

Pairs::Pairs(SecretOptions group, std::vector<int> world_ranks)
    : group_(std::move(group)), world_ranks_(std::move(world_ranks)) {
  // A lane that still waits for its peer's address is told when the group ends.
  group_.store_get = [get = group_.store_get, ending = ending_](const std::string& key,
                                                                std::chrono::milliseconds timeout) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds slice(200);
    const auto deadline = Clock::now() + timeout;
    while (true) {
      const auto start = Clock::now();
      try {
        return get(key, slice);
      } catch (const std::exception&) {
        const auto now = Clock::now();
        if (now < start + slice || now > deadline) throw;  // broken, or late
        if (*ending) throw std::runtime_error("the process group was destroyed");
      }
    }
  };
}

Pairs::~Pairs() { *ending_ = true; }

Pairs::Lane& Pairs::lane(int from, int to) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Lane>& lane = lanes_[{from, to}];
  if (lane == nullptr) {
    SecretOptions options = group_;
    options.group += ".pair." + std::to_string(from) + "." + std::to_string(to);
    options.size = 2;
    options.rank = group_.rank == from ? kSender : kReceiver;
    lane = std::make_unique<Lane>(std::move(options),
                                  std::vector<int>{world_ranks_.at(static_cast<size_t>(from)),
                                                   world_ranks_.at(static_cast<size_t>(to))});
  }
  return *lane;
}

void Pairs::send(int peer, int tag, const void* data, size_t bytes, WorkCallback done) {
  lane(group_.rank, peer).add({tag, const_cast<void*>(data), bytes, std::move(done)});
}

void Pairs::receive(int peer, int tag, void* data, size_t bytes, WorkCallback done) {
  lane(peer, group_.rank).add({tag, data, bytes, std::move(done)});
}

CommTraffic Pairs::traffic() const {
  const std::lock_guard lock(mutex_);
  CommTraffic sum;
  for (const auto& [pair, lane] : lanes_) {
    const CommTraffic one = lane->traffic();
    sum.records += one.records;
    sum.bytes += one.bytes;
  }
  return sum;
}

}  // namespace sealane::adapter
