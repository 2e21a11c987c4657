// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "watch/actor.h"

#include <atomic>

namespace sealane::serve {
namespace {

// A thread's messages and parts are reported before the copy they belong to, so what says more
// about a thread may come later and wins.
Role role_after(Role before, EventKind kind) {
  switch (kind) {
    case EventKind::copy:
    case EventKind::wait:
    case EventKind::call:
      return Role::application;
    case EventKind::carried:
      return Role::lane;
    case EventKind::message:
      return before == Role::unknown || before == Role::worker ? Role::driver : before;
    case EventKind::part:
    case EventKind::sealed:
      return before == Role::unknown ? Role::worker : before;
    default:
      return before;
  }
}

}  // namespace

std::string_view to_string(Role role) {
  constexpr std::string_view kNames[] = {"thread", "driver", "worker", "lane", "application"};
  return kNames[static_cast<size_t>(role)];
}

const Actor& actor_of(const Event& event) {
  static std::atomic<uint32_t> count{0};
  static thread_local Actor actor;
  if (actor.number == 0) actor.number = count.fetch_add(1, std::memory_order_relaxed) + 1;
  actor.role = role_after(actor.role, event.kind);
  return actor;
}

}  // namespace sealane::serve
