// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "workload/numbers.h"

#include <map>

namespace sealane::workload {
namespace {

constexpr uint32_t kSmall = 1 << 16;

template <typename Id>
class Smaller {
 public:
  void replace(Id& id) {
    if (static_cast<uint32_t>(id) < kSmall) return;
    const auto next = static_cast<uint32_t>(kSmall + known_.size());
    id = Id{known_.emplace(id, next).first->second};
  }

 private:
  std::map<Id, uint32_t> known_;
};

}  // namespace

void make_numbers_small(Program& program) {
  Smaller<ThreadId> threads;
  Smaller<ContextId> contexts;
  Smaller<StreamId> streams;
  Smaller<EventId> events;
  Smaller<uint32_t> flags;
  for (Operation& operation : program) {
    threads.replace(operation.thread);
    std::visit(
        [&](auto& action) {
          if constexpr (requires { action.context; }) contexts.replace(action.context);
          if constexpr (requires { action.stream; }) streams.replace(action.stream);
          if constexpr (requires { action.event; }) events.replace(action.event);
          if constexpr (requires { action.flag; }) flags.replace(action.flag);
        },
        operation.action);
  }
}

}  // namespace sealane::workload
