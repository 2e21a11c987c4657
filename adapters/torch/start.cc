// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "start.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

namespace sealane::adapter {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kAsked = "sealane/start/asked";        // how many numbers were drawn
constexpr const char* kAnswered = "sealane/start/answered";  // up to which number
constexpr size_t kNameDigits = 16;
constexpr std::chrono::seconds kPatience(1);  // with who has answered and says no more

std::string answer_key(int64_t number) { return "sealane/start/answer/" + std::to_string(number); }
std::string here_key(const std::string& name, int rank) {
  return "sealane/start/" + name + "/here/" + std::to_string(rank);
}
std::string all_key(const std::string& name) { return "sealane/start/" + name + "/all"; }

void put(c10d::Store& store, const std::string& key, const std::string& text) {
  store.set(key, std::vector<uint8_t>(text.begin(), text.end()));
}

// What is there by now; empty if nothing is.
std::string look(c10d::Store& store, const std::string& key) {
  if (!store.check({key})) return {};
  const std::vector<uint8_t> value = store.get(key);
  return {value.begin(), value.end()};
}

std::string new_name() {
  std::random_device random;
  std::string name;
  while (name.size() < kNameDigits) name += "0123456789abcdef"[random() % 16];
  return name;
}

bool is_name(const std::string& text) {
  return text.size() == kNameDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Waits a little; throws once the time is up.
class Patience {
 public:
  explicit Patience(std::chrono::milliseconds timeout) : deadline_(Clock::now() + timeout) {}

  void check(int rank) const {
    if (Clock::now() <= deadline_) return;
    throw std::runtime_error("rank " + std::to_string(rank) +
                             " did not come to this start of the job in time: was it started?");
  }

  void wait_for(int rank) {
    check(rank);
    std::this_thread::sleep_for(pause_);
    pause_ = std::min(pause_ * 2, std::chrono::milliseconds(20));
  }

 private:
  Clock::time_point deadline_;
  std::chrono::milliseconds pause_{1};
};

// Answers those who ask until all say that they are here.
std::string lead(c10d::Store& store, int size, std::chrono::milliseconds timeout) {
  const std::string name = new_name();
  store.add(kAsked, 0);  // a FileStore of PyTorch 1.13 cannot be looked at before it was written
  int64_t answered = 0;
  const std::string before = look(store, kAnswered);
  std::from_chars(before.data(), before.data() + before.size(), answered);
  answered = std::max<int64_t>(answered, 0);
  Patience patience(timeout);
  for (int rank = 1; rank < size;) {
    const int64_t asked = store.add(kAsked, 0);
    for (; answered < asked; ++answered) {  // as many as the store says, which may lie
      patience.check(rank);
      put(store, answer_key(answered + 1), name);
    }
    put(store, kAnswered, std::to_string(answered));
    const std::string size_there = look(store, here_key(name, rank));
    if (size_there.empty()) {
      patience.wait_for(rank);
    } else if (size_there == std::to_string(size)) {
      ++rank;
    } else {
      break;  // ranks that disagree on the size are told so when they meet
    }
  }
  put(store, all_key(name), "yes");
  return name;
}

std::string follow(c10d::Store& store, int rank, int size, std::chrono::milliseconds timeout) {
  int64_t question = store.add(kAsked, 1);
  std::string name;
  Clock::time_point ask_again = Clock::time_point::max();
  Patience patience(timeout);
  while (name.empty() || look(store, all_key(name)).empty()) {
    if (const std::string answer = look(store, answer_key(question)); is_name(answer)) {
      if (answer != name) {
        name = answer;
        put(store, here_key(name, rank), std::to_string(size));
        ask_again = Clock::now() + kPatience;
        continue;
      }
      if (Clock::now() > ask_again) {
        question = store.add(kAsked, 1);
        ask_again = Clock::now() + kPatience;
      }
    }
    patience.wait_for(0);
  }
  return name;
}

}  // namespace

std::string agree_on_start(c10d::Store& store, int rank, int size,
                           std::chrono::milliseconds timeout) {
  return rank == 0 ? lead(store, size, timeout) : follow(store, rank, size, timeout);
}

}  // namespace sealane::adapter
