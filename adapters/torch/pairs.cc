// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "pairs.h"

#include <unistd.h>

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
    comm_.reset();  // finishes what was started, whose callbacks need the rest
  }

  void add(Message message) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(message));
    }
    changed_.notify_all();
  }

  // In a child: whoever ended the lane would wait for a thread that is not there. The secret goes.
  void abandon() { explicit_bzero(options_.key.data(), options_.key.size()); }

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
      attempt(message);
    }
  }

  // Starts the message: who waits in its callback must not hold up the next one.
  void attempt(const Message& message) {
    std::string failure = failed();
    if (failure.empty()) {
      try {
        if (!comm_) join();
        options_.rank == kSender ? send(message) : receive(message);
        return;
      } catch (const std::exception& error) {
        failure = fail(error.what());
      }
    }
    message.done(failure);
  }

  std::string failed() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  // The first error is the lane's from then on.
  std::string fail(const std::string& error) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = in_world_ranks(error, world_ranks_);
    if (failure_.empty()) failure_ = "unknown error";
    return failure_;
  }

  WorkCallback then(WorkCallback done) {
    return [this, done = std::move(done)](const std::string& error) {
      done(error.empty() ? std::string() : fail(error));
    };
  }

  void join() {
    Comm joined(options_);
    const std::lock_guard lock(mutex_);
    comm_.emplace(std::move(joined));
  }

  // The tag goes first, so that one that differs is told by name.
  void send(const Message& message) {
    const auto tag = std::make_shared<int64_t>(message.tag);
    comm_->start_send(tag.get(), 1, DataType::int64, kReceiver, [tag](const std::string&) {});
    comm_->start_send(message.data, message.bytes, DataType::uint8, kReceiver, then(message.done));
  }

  // A tag that never came is not the one that is wanted, nor any that could be.
  void receive(const Message& message) {
    const auto tag = std::make_shared<int64_t>(~message.tag);
    comm_->start_receive(tag.get(), 1, DataType::int64, kSender, [tag](const std::string&) {});
    comm_->start_receive(message.data, message.bytes, DataType::uint8, kSender,
                         [this, tag, message](const std::string& error) {
                           const bool came = error.empty() || *tag != ~message.tag;
                           if (came && *tag != message.tag) {
                             return message.done(fail(other_tag(*tag, message.tag)));
                           }
                           message.done(error.empty() ? error : fail(error));
                         });
  }

  static std::string other_tag(int64_t sent, int64_t wanted) {
    return "rank " + std::to_string(kSender) + " sent tag " + std::to_string(sent) + " where tag " +
           std::to_string(wanted) +
           " is expected: messages of a pair arrive in the order of sending";
  }

  SecretOptions options_;
  const std::vector<int> world_ranks_;
  std::optional<Comm> comm_;  // the thread's; others look at it under the mutex

  mutable std::mutex mutex_;
  std::string failure_;
  std::condition_variable changed_;
  std::deque<Message> queue_;
  bool ending_ = false;
  std::thread worker_;  // last: everything it uses is there before it
};

Pairs::Pairs(SecretOptions group, std::vector<int> world_ranks)
    : process_(getpid()), group_(std::move(group)), world_ranks_(std::move(world_ranks)) {
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

Pairs::~Pairs() {
  *ending_ = true;
  if (!forked()) return;
  for (auto& [pair, lane] : lanes_) lane.release()->abandon();
}

bool Pairs::forked() const { return getpid() != process_; }

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

void Pairs::add(int from, int to, Message message) {
  if (!forked()) return lane(from, to).add(std::move(message));
  message.done("the group was joined before fork() and stays with the parent");
}

void Pairs::send(int peer, int tag, const void* data, size_t bytes, WorkCallback done) {
  add(group_.rank, peer, {tag, const_cast<void*>(data), bytes, std::move(done)});
}

void Pairs::receive(int peer, int tag, void* data, size_t bytes, WorkCallback done) {
  add(peer, group_.rank, {tag, data, bytes, std::move(done)});
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
