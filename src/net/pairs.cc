// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "net/pairs.h"

#include "base/random.h"
#include "core/session/key_chain.h"

namespace sealane::net {

Pairs::Pairs() {
  SystemRandom random;
  random.fill(self_);
  add(self_, std::nullopt, Key::random(random));
}

PairId Pairs::add(const ProcessId& peer, const std::optional<JobRank>& job, Key secret) {
  PairId name;
  hkdf_expand(secret.secret(), "sealane net pair name", name);
  const std::lock_guard lock(mutex_);
  if (order_.size() >= kEntriesMax) forget_oldest();
  if (peer != self_) order_.push_back(name);
  entries_.insert_or_assign(name, Entry{peer, job, std::move(secret)});
  newest_[peer] = name;
  return name;
}

void Pairs::forget_oldest() {
  const auto oldest = entries_.find(order_.front());
  const auto newest = newest_.find(oldest->second.peer);
  if (newest->second == oldest->first) newest_.erase(newest);
  entries_.erase(oldest);
  order_.pop_front();
}

std::optional<PairId> Pairs::with(const ProcessId& peer) const {
  const std::lock_guard lock(mutex_);
  const auto found = newest_.find(peer);
  if (found == newest_.end()) return std::nullopt;
  return found->second;
}

std::optional<Key> Pairs::find(const PairId& pair, const ProcessId& peer,
                               const std::optional<JobRank>& job) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(pair);
  if (found == entries_.end() || found->second.peer != peer) return std::nullopt;
  const bool same_rank = peer == self_ || found->second.job == job;
  if (!same_rank) return std::nullopt;
  return found->second.secret.duplicate();
}

void Pairs::forget_all() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
  order_.clear();
  newest_.clear();
}

}  // namespace sealane::net
