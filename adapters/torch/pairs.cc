// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "pairs.h"

#include <unistd.h>

#include <charconv>
#include <condition_variable>
#include <deque>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "parts.h"

namespace sealane::adapter {
namespace {

constexpr int kSender = 0;
constexpr int kReceiver = 1;
constexpr const char* kEnded = "the group was aborted or shut down";

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
      // The text may be a peer's or the store's, and the number any.
      size_t rank = world_ranks.size();
      std::from_chars(text.data() + at, text.data() + end, rank);
      out +=
          rank < world_ranks.size() ? std::to_string(world_ranks[rank]) : text.substr(at, end - at);
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
  // `pairs` outlives the lane.
  Lane(const Pairs& pairs, std::vector<int> ends, CommOptions options, std::vector<int> world_ranks)
      : pairs_(pairs),
        ends_(std::move(ends)),
        peer_(ends_[ends_[kSender] == pairs.group_.rank() ? kReceiver : kSender]),
        options_(until_pointless(std::move(options))),
        world_ranks_(std::move(world_ranks)),
        worker_([this] { work(); }) {}

  ~Lane() { finish(); }

  void add(Message message) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(message));
      ++unfinished_;
    }
    changed_.notify_all();
  }

  void finish() {
    if (!worker_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    worker_.join();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return unfinished_ == 0; });
    comm_.reset();
  }

  void abort() {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    if (comm_) comm_->abort();
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
      attempt(message);
    }
  }

  // Starts the message: who waits in its callback must not hold up the next one.
  void attempt(const Message& message) {
    std::string failure = failed();
    if (failure.empty()) {
      try {
        if (!comm_) join();
        comm_->rank() == kSender ? send(message) : receive(message);
        return;
      } catch (const std::exception& error) {
        failure = fail(error.what(), pairs_.why_not(peer_));
      }
    }
    end(message, failure);
  }

  void end(const Message& message, const std::string& error) {
    message.done(error);
    const std::lock_guard lock(mutex_);
    --unfinished_;
    changed_.notify_all();
  }

  std::string failed() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  CommOptions until_pointless(CommOptions options) const {
    options.given_up = [this] { return !pairs_.why_not(peer_).empty(); };
    return options;
  }

  // The first error is the lane's from then on; if the peer cannot come, that is the reason.
  std::string fail(const std::string& error, const std::string& why_not = {}) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = why_not;
    if (failure_.empty()) failure_ = in_world_ranks(error, world_ranks_);
    if (failure_.empty()) failure_ = "unknown error";
    return failure_;
  }

  void join() {
    Comm joined(pairs_.group_, ends_, options_);
    const std::lock_guard lock(mutex_);
    comm_.emplace(std::move(joined));
    if (aborted_) comm_->abort();
  }

  // The tag goes first, so that one that differs is told by name.
  void send(const Message& message) {
    const auto tag = std::make_shared<int64_t>(message.tag);
    const WorkCallback done = [this, tag, message](const std::string& error) {
      end(message, error.empty() ? error : fail(error));
    };
    const auto begin = [&](Parts& parts) {
      parts.add([&](const WorkCallback& part) {
        comm_->start_send(tag.get(), 1, DataType::int64, kReceiver, part);
      });
      parts.add([&](const WorkCallback& part) {
        comm_->start_send(message.data, message.count, message.type, kReceiver, message.label,
                          part);
      });
    };
    Parts::run(*comm_, begin, done);
  }

  // A tag that never came is not the one that is wanted, nor any that could be.
  void receive(const Message& message) {
    const auto tag = std::make_shared<int64_t>(~message.tag);
    const WorkCallback done = [this, tag, message](const std::string& error) {
      const bool came = error.empty() || *tag != ~message.tag;
      if (came && *tag != message.tag) {
        return end(message, fail(other_tag(*tag, message.tag)));
      }
      end(message, error.empty() ? error : fail(error));
    };
    const auto begin = [&](Parts& parts) {
      parts.add([&](const WorkCallback& part) {
        comm_->start_receive(tag.get(), 1, DataType::int64, kSender, part);
      });
      parts.add([&](const WorkCallback& part) {
        comm_->start_receive(message.data, message.count, message.type, kSender, message.label,
                             part);
      });
    };
    Parts::run(*comm_, begin, done);
  }

  static std::string other_tag(int64_t sent, int64_t wanted) {
    return "rank " + std::to_string(kSender) + " sent tag " + std::to_string(sent) + " where tag " +
           std::to_string(wanted) +
           " is expected: messages of a pair arrive in the order of sending";
  }

  const Pairs& pairs_;
  const std::vector<int> ends_;  // ranks of the group
  const int peer_;               // the other one
  const CommOptions options_;
  const std::vector<int> world_ranks_;
  std::optional<Comm> comm_;  // the thread's; others look at it under the mutex

  mutable std::mutex mutex_;
  std::string failure_;
  std::condition_variable changed_;
  std::deque<Message> queue_;
  size_t unfinished_ = 0;  // messages that were added
  bool ending_ = false;
  bool aborted_ = false;
  std::thread worker_;  // last: everything it uses is there before it
};

Pairs::Pairs(const Comm& group, CommOptions options, std::vector<int> world_ranks)
    : process_(getpid()),
      group_(group),
      options_(std::move(options)),
      world_ranks_(std::move(world_ranks)) {}

std::string Pairs::why_not(int peer) const {
  if (ending_) return kEnded;
  const std::string failure = group_.failure();
  if (!failure.empty()) return in_world_ranks(failure, world_ranks_);
  if (!group_.gone(peer)) return {};
  return "rank " + std::to_string(world_ranks_.at(static_cast<size_t>(peer))) +
         " has left the group";
}

// In a child of fork() whoever ended a lane would wait for a thread that is not there.
Pairs::~Pairs() {
  if (forked()) {
    for (auto& [pair, lane] : lanes_) static_cast<void>(lane.release());
  } else {
    finish();
  }
}

bool Pairs::forked() const { return getpid() != process_; }

void Pairs::finish() {
  ending_ = true;
  if (forked()) return;
  for (Lane* lane : lanes()) lane->finish();
}

void Pairs::abort() {
  ending_ = true;
  if (forked()) return;
  for (Lane* lane : lanes()) lane->abort();
}

std::vector<Pairs::Lane*> Pairs::lanes() const {
  const std::lock_guard lock(mutex_);
  std::vector<Lane*> all;
  for (const auto& [pair, lane] : lanes_) all.push_back(lane.get());
  return all;
}

// Null once the group has ended.
Pairs::Lane* Pairs::lane(int from, int to) {
  const std::lock_guard lock(mutex_);
  if (ending_) return nullptr;
  const std::pair pair(from, to);
  if (const auto found = lanes_.find(pair); found != lanes_.end()) return found->second.get();
  CommOptions options = options_;
  options.group += ".pair." + std::to_string(from) + "." + std::to_string(to);
  // There may be no thread for it: then there is no lane, and the next message tries again.
  auto made = std::make_unique<Lane>(*this, std::vector<int>{from, to}, std::move(options),
                                     std::vector<int>{world_ranks_.at(static_cast<size_t>(from)),
                                                      world_ranks_.at(static_cast<size_t>(to))});
  return lanes_.emplace(pair, std::move(made)).first->second.get();
}

void Pairs::add(int from, int to, Message message) {
  if (forked()) {
    return message.done("the group was joined before fork() and stays with the parent");
  }
  Lane* const one = lane(from, to);
  if (one == nullptr) return message.done(kEnded);
  one->add(std::move(message));
}

void Pairs::send(int peer, int tag, const void* data, size_t count, DataType type,
                 const CallLabel& label, WorkCallback done) {
  add(group_.rank(), peer, {tag, const_cast<void*>(data), count, type, label, std::move(done)});
}

void Pairs::receive(int peer, int tag, void* data, size_t count, DataType type,
                    const CallLabel& label, WorkCallback done) {
  add(peer, group_.rank(), {tag, data, count, type, label, std::move(done)});
}

CommTraffic Pairs::traffic() const {
  CommTraffic sum;
  if (forked()) return sum;  // a thread that is not here may have had a lock
  for (const Lane* lane : lanes()) {
    const CommTraffic one = lane->traffic();
    sum.records += one.records;
    sum.bytes += one.bytes;
  }
  return sum;
}

}  // namespace sealane::adapter
