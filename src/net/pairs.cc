// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "net/pairs.h"

#include "base/random.h"
#include "core/session/key_chain.h"

namespace sealane::net {

Pairs::Pairs() {
  SystemRandom random;
  random.fill(self_);
  add(self_, Key::random(random));
}

PairId Pairs::add(const ProcessId& peer, Key secret) {
  PairId name;
  hkdf_expand(secret.secret(), "sealane net pair name", name);
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= kEntriesMax) {
    const auto own = newest_.find(self_);
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (own != newest_.end() && it->first == own->second) continue;
      entries_.erase(it);
      break;
    }
  }
  entries_.insert_or_assign(name, Entry{peer, std::move(secret)});
  newest_[peer] = name;
  return name;
}

std::optional<PairId> Pairs::with(const ProcessId& peer) const {
  const std::lock_guard lock(mutex_);
  const auto found = newest_.find(peer);
  if (found == newest_.end() || !entries_.contains(found->second)) return std::nullopt;
  return found->second;
}

std::optional<Key> Pairs::find(const PairId& pair, const ProcessId& peer) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(pair);
  if (found == entries_.end() || found->second.peer != peer) return std::nullopt;
  return found->second.secret.duplicate();
}

void Pairs::forget_all() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
  newest_.clear();
}

}  // namespace sealane::net
