// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "watch/observer.h"

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "watch/output.h"

namespace sealane::serve {
namespace {

// Copies whose bytes do not lie in one piece have no one range to compare with.
bool has_range(const Event& copy) { return copy.route != Route::passed_shape; }

// A captured copy moves its bytes when its graph is launched, not now.
bool moves_bytes(const Event& copy) {
  return copy.code == 0 && copy.route != Route::passed_capture;
}

}  // namespace

void Observer::handle(const Event& event) noexcept {
  const std::lock_guard lock(mutex_);
  if (event.begin != Instant{}) {
    if (first_ == Instant{} || event.begin < first_) first_ = event.begin;
    last_ = std::max(last_, event.end);
  }
  switch (event.kind) {
    case EventKind::message:
      return message(event);
    case EventKind::copy:
      return copy(event);
    case EventKind::wait:
      found_.waits_s += seconds(event.end - event.begin);
      return;
    case EventKind::call:
      if (event.call == Call::free_host) {
        predictors_.forget({event.host, std::max<uint64_t>(1, event.bytes)});
        sources_.forget({event.host, std::max<uint64_t>(1, event.bytes)});
      }
      return;
    case EventKind::note:
      if (event.text != nullptr && found_.notes.size() < 16) found_.notes.emplace_back(event.text);
      return;
    default:
      return;
  }
}

void Observer::finish() noexcept {
  {
    const std::lock_guard lock(mutex_);
    sources_.stop();
    if (said_ || first_ == Instant{}) return;
    said_ = true;
  }
  say(page());
}

Findings Observer::findings() const {
  const std::lock_guard lock(mutex_);
  Findings out = found_;
  out.emulated = options_.dilation != nullptr;
  out.paced = out.emulated && options_.dilation() > 0;
  out.seconds = seconds(last_ - first_);
  out.workers = options_.workers;
  out.channels = channels_.size();
  out.keys = keys_.size();
  for (const auto& [name, channel] : channels_) out.ivs_broken += channel.broken;
  for (const Seen& own : stray_) {
    ++(own.direction == Direction::to_device ? out.to_device : out.to_host).extra_messages;
  }
  for (const auto& [copy, messages] : by_copy_) {
    for (const Seen& own : messages) {
      ++(own.direction == Direction::to_device ? out.to_device : out.to_host).extra_messages;
    }
  }
  out.guard_refusal = sources_.refusal();
  if (options_.speculation != nullptr) out.speculation = options_.speculation(options_.workers);
  out.predictor = predictors_.leader();
  if (is_paced()) {
    out.fast_gb_per_s = options_.costs.fast_aead_gb_per_s;
  } else if (options_.measure_engine != nullptr) {
    out.fast_gb_per_s = options_.measure_engine();
  }
  return out;
}

// ---- Messages ----

void Observer::message(const Event& event) {
  Findings::Way& to = way(event.direction);
  ++to.messages;
  const double aead_s = aead_seconds(event);
  to.aead_s += aead_s;
  found_.message_bytes_max = std::max(found_.message_bytes_max, event.bytes);
  found_.updates_max = std::max<uint64_t>(found_.updates_max, event.updates);
  found_.additional_bytes_max =
      std::max<uint64_t>(found_.additional_bytes_max, event.additional_bytes);

  keys_.insert(event.key);
  Iv iv;
  std::copy(std::begin(event.iv), std::end(event.iv), iv.begin());
  const ChannelName name{event.key, load_le<uint64_t>(iv.data() + 4)};
  if (channels_.size() < kChannelsMax || channels_.contains(name)) {
    ++found_.ivs;
    Channel& channel = channels_[name];
    const bool first = !channel.follower.started();
    if (channel.follower.observe(iv) != 1 && !first) ++channel.broken;
  }

  const Seen seen{{event.host, event.bytes},
                  event.begin,
                  event.end,
                  event.direction,
                  event.id != 0,
                  aead_s,
                  event.key};
  keep(event.id, seen);
}

// Until its copy is told of. Not every call that moves bytes is: what is left behind is given up.
void Observer::keep(uint64_t copy, const Seen& seen) {
  if (copy != 0) {
    by_copy_[copy].push_back(seen);
    if (by_copy_.size() <= kCopiesOpenMax) return;
    way(seen.direction).extra_messages += by_copy_.begin()->second.size();
    by_copy_.erase(by_copy_.begin());
    return;
  }
  stray_.push_back(seen);
  if (stray_.size() <= kStrayMax) return;
  ++way(stray_.front().direction).extra_messages;
  stray_.pop_front();
}

double Observer::aead_seconds(const Event& message) const {
  // On the paced emulated GPU libcrypto runs at this machine's speed, not at the modelled one's.
  if (is_paced()) return options_.costs.aead_ns(message.direction, message.bytes) / 1e9;
  return seconds(message.end - message.begin);
}

// ---- Copies ----

void Observer::copy(const Event& event) {
  claim(event);
  judge(event);
  if (event.direction == Direction::to_device && event.code == 0) try_guard(event);
}

void Observer::claim(const Event& copy) {
  std::vector<Seen> messages = messages_of(copy);
  auto& keys = keys_of_[{copy.context, copy.direction}];
  for (const Seen& one : messages) {
    if (keys.insert(one.key).second && keys.size() > 1) ++found_.keys_replaced;
  }
  if (!moves_bytes(copy)) return;
  Findings::Way& to = way(copy.direction);
  const double blocked = seconds(copy.end - copy.begin);
  ++to.copies;
  to.bytes += copy.bytes;
  to.blocked_s += blocked;
  const bool async = copy.asynchronous && (copy.direction == Direction::to_device || copy.pinned);
  if (async) {
    ++to.async_copies;
    to.async_blocked_s += blocked;
    if (!copy.pinned) to.snapshot_bytes += copy.bytes;
  }

  const Range range{copy.host, copy.bytes};
  const auto is_direct = [&](const Seen& m) { return !has_range(copy) || range.contains(m.place); };
  uint64_t sum = 0;
  for (const Seen& one : messages) sum += one.place.bytes;
  // More bytes than the copy has: the driver said something of its own, probably something short.
  std::stable_sort(messages.begin(), messages.end(), [&](const Seen& a, const Seen& b) {
    return std::pair(is_direct(a), a.place.bytes) < std::pair(is_direct(b), b.place.bytes);
  });
  for (const Seen& one : messages) {
    if (sum > copy.bytes && sum - copy.bytes >= one.place.bytes) {
      sum -= one.place.bytes;
      ++to.extra_messages;
      continue;
    }
    to.seen_bytes += one.place.bytes;
    to.direct_bytes += is_direct(one) ? one.place.bytes : 0;
    to.own_thread_bytes += one.own_thread ? one.place.bytes : 0;
    to.async_aead_s += async ? one.aead_s : 0;
  }
}

// Those with the copy's number; if there are none, those of no copy that were sealed meanwhile.
std::vector<Observer::Seen> Observer::messages_of(const Event& copy) {
  if (const auto found = by_copy_.find(copy.id); copy.id != 0 && found != by_copy_.end()) {
    std::vector<Seen> out = std::move(found->second);
    by_copy_.erase(found);
    return out;
  }
  std::vector<Seen> out;
  uint64_t left = copy.bytes;
  std::erase_if(stray_, [&](const Seen& one) {
    const bool meanwhile = one.direction == copy.direction && copy.begin <= one.begin &&
                           one.end <= copy.end && one.place.bytes <= left;
    if (!meanwhile) return false;
    left -= one.place.bytes;
    out.push_back(one);
    return true;
  });
  return out;
}

void Observer::judge(const Event& copy) {
  const Transfer transfer{copy.direction, {copy.host, copy.bytes}};
  if (copy.direction == Direction::to_device && copy.bytes >= kLargeBytes) {
    std::array<Guess, Tournament::kLeeway> next;
    const size_t count = predictors_.predict(next);
    const bool hit = std::any_of(next.begin(), next.begin() + static_cast<ptrdiff_t>(count),
                                 [&](const Guess& g) { return g.host == transfer.host; });
    Findings::Way& to = found_.to_device;
    ++to.judged;
    to.judged_bytes += copy.bytes;
    to.hits += hit ? 1 : 0;
    to.hit_bytes += hit ? copy.bytes : 0;
  }
  predictors_.observe(transfer);
}

void Observer::try_guard(const Event& copy) {
  switch (sources_.copied({copy.host, copy.bytes})) {
    case SourceWatch::Answer::first_time:
      found_.guardable_bytes += copy.bytes;
      break;
    case SourceWatch::Answer::unguardable:
      found_.unguardable_bytes += copy.bytes;
      found_.unguardable_pinned_bytes += copy.pinned ? copy.bytes : 0;
      break;
    case SourceWatch::Answer::unchanged:
      ++found_.sources_unchanged;
      break;
    case SourceWatch::Answer::changed:
      ++found_.sources_changed;
      break;
    case SourceWatch::Answer::ignored:
      break;
  }
}

Findings::Way& Observer::way(Direction direction) {
  return direction == Direction::to_device ? found_.to_device : found_.to_host;
}

double Observer::seconds(Duration duration) const {
  const double dilation = is_paced() ? options_.dilation() : 1;
  return static_cast<double>(duration.count()) / 1e9 / dilation;
}

}  // namespace sealane::serve
