// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "watch/source_watch.h"

namespace sealane::serve {

SourceWatch::Answer SourceWatch::copied(const Range& source) {
  if (source.bytes < limits_.range_bytes_min) return Answer::ignored;
  const auto found = followed_.find(source.address);
  if (found == followed_.end() || found->second.bytes != source.bytes) return follow(source);
  Followed& known = found->second;
  if (!known.guarded) return Answer::ignored;  // said before
  if (known.checks >= limits_.checks_max) return Answer::ignored;
  ++known.checks;
  const auto written = guards_->written(source);
  const bool changed = !written || *written;
  if (known.checks == limits_.checks_max) {
    (void)guards_->disarm(source);  // memory that is gone needs no disarming
  } else if (changed) {
    known.guarded = guards_->arm(source).ok();
  }
  return changed ? Answer::changed : Answer::unchanged;
}

SourceWatch::Answer SourceWatch::follow(const Range& source) {
  if (followed_.size() >= limits_.ranges_max || bytes_ + source.bytes > limits_.bytes_max ||
      overlaps_followed(source)) {
    return Answer::ignored;
  }
  Followed& known = followed_[source.address];
  known.bytes = source.bytes;
  bytes_ += source.bytes;
  if (!open()) return Answer::unguardable;
  const Status armed = guards_->arm(source);
  known.guarded = armed.ok();
  if (armed) return Answer::first_time;
  refusal_ = armed.error().message;
  return Answer::unguardable;
}

// Guards work on whole pages: arming one range must not forget the writes to another.
bool SourceWatch::overlaps_followed(const Range& source) const {
  const Range whole = pages(source);
  auto next = followed_.lower_bound(whole.address);
  if (next != followed_.end() && next->first < whole.end()) return true;
  if (next == followed_.begin()) return false;
  --next;
  return pages({next->first, next->second.bytes}).end() > whole.address;
}

void SourceWatch::forget(const Range& freed) {
  auto entry = followed_.lower_bound(freed.address);
  while (entry != followed_.end() && entry->first < freed.end()) {
    bytes_ -= entry->second.bytes;
    entry = followed_.erase(entry);
  }
}

void SourceWatch::stop() {
  for (const auto& [address, known] : followed_) {
    if (known.guarded) (void)guards_->disarm({address, known.bytes});
  }
  followed_.clear();
  bytes_ = 0;
}

bool SourceWatch::open() {
  if (!tried_) {
    tried_ = true;
    auto opened = PageGuards::open();
    if (opened) {
      guards_.emplace(*std::move(opened));
    } else {
      refusal_ = opened.error().message;
    }
  }
  return guards_.has_value();
}

}  // namespace sealane::serve
