// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "workload/program_checker.h"

#include <limits>

#include "base/text.h"
#include "base/try.h"

namespace sealane::workload {
namespace {

Status fits(uint64_t address, uint64_t bytes) {
  if (bytes <= std::numeric_limits<uint64_t>::max() - address) return {};
  return usage_error("the range passes the end of the address space");
}

template <typename Id>
uint32_t number(Id id) {
  return static_cast<uint32_t>(id);
}

}  // namespace

Status ProgramChecker::check(const Operation& operation) {
  if (operation.think < Duration(0)) return usage_error("a thread cannot think for less than 0 ns");
  SEALANE_TRY(time_.add(operation));
  if (operation.at) {
    const auto [latest, first] = latest_.try_emplace(operation.thread, *operation.at);
    if (*operation.at < latest->second) {
      return usage_error(concat("the time runs backwards in thread t", number(operation.thread)));
    }
    latest->second = *operation.at;
  }
  return std::visit([this](const auto& action) { return check_action(action); }, operation.action);
}

Status ProgramChecker::check_action(const CreateContext& made) {
  if (contexts_.insert(made.context).second) return {};
  return usage_error(concat("context c", number(made.context), " exists already"));
}

Status ProgramChecker::check_action(const DestroyContext& gone) {
  SEALANE_TRY(exists(gone.context));
  contexts_.erase(gone.context);
  std::erase_if(streams_, [&](const auto& stream) { return stream.second == gone.context; });
  return {};
}

Status ProgramChecker::check_action(const CreateStream& made) {
  SEALANE_TRY(exists(made.context));
  if (streams_.try_emplace(made.stream, made.context).second) return {};
  return usage_error(concat("stream s", number(made.stream), " exists already"));
}

Status ProgramChecker::check_action(const DestroyStream& gone) {
  SEALANE_TRY(exists(gone.stream));
  streams_.erase(gone.stream);
  return {};
}

Status ProgramChecker::check_action(const CreateEvent& made) {
  if (events_.insert(made.event).second) return {};
  return usage_error(concat("event e", number(made.event), " exists already"));
}

Status ProgramChecker::check_action(const DestroyEvent& gone) {
  SEALANE_TRY(exists(gone.event));
  events_.erase(gone.event);
  return {};
}

Status ProgramChecker::check_action(const AllocateHost& made) {
  return allocate(host_, made.range.address, made.range.bytes);
}

Status ProgramChecker::check_action(const FreeHost& gone) { return release(host_, gone.address); }

Status ProgramChecker::check_action(const AllocateDevice& made) {
  SEALANE_TRY(exists(made.context));
  return allocate(device_, made.address, made.bytes);
}

Status ProgramChecker::check_action(const FreeDevice& gone) {
  return release(device_, gone.address);
}

Status ProgramChecker::check_action(const WriteHost& write) const {
  return fits(write.range.address, write.range.bytes);
}

Status ProgramChecker::check_action(const ReadHost& read) const {
  return fits(read.range.address, read.range.bytes);
}

Status ProgramChecker::check_action(const Copy& copy) const {
  SEALANE_TRY(exists(copy.stream));
  SEALANE_TRY(fits(copy.host.address, copy.host.bytes));
  return fits(copy.device, copy.host.bytes);
}

Status ProgramChecker::check_action(const CopyOnDevice& copy) const {
  SEALANE_TRY(exists(copy.stream));
  SEALANE_TRY(fits(copy.to, copy.bytes));
  return fits(copy.from, copy.bytes);
}

Status ProgramChecker::check_action(const StreamWork& work) const {
  SEALANE_TRY(exists(work.stream));
  return fits(work.host.address, work.host.bytes);
}

Status ProgramChecker::check_action(const BatchCopies& batch) const {
  if (batch.copies > 0) return {};
  return usage_error("a batch needs at least one copy");
}

Status ProgramChecker::check_action(const RecordEvent& record) const {
  SEALANE_TRY(exists(record.event));
  return exists(record.stream);
}

Status ProgramChecker::check_action(const WaitEvent& wait) const {
  SEALANE_TRY(exists(wait.stream));
  return exists(wait.event);
}

Status ProgramChecker::exists(ContextId context) const {
  if (contexts_.contains(context)) return {};
  return usage_error(concat("there is no context c", number(context)));
}

Status ProgramChecker::exists(StreamId stream) const {
  if (streams_.contains(stream)) return {};
  return usage_error(concat("there is no stream s", number(stream)));
}

Status ProgramChecker::exists(EventId event) const {
  if (events_.contains(event)) return {};
  return usage_error(concat("there is no event e", number(event)));
}

Status ProgramChecker::allocate(Allocations& live, uint64_t address, uint64_t bytes) {
  if (bytes == 0) return usage_error("an allocation needs at least one byte");
  SEALANE_TRY(fits(address, bytes));
  const auto next = live.lower_bound(address);
  const bool hits_next = next != live.end() && next->first - address < bytes;
  const bool hits_previous =
      next != live.begin() && address - std::prev(next)->first < std::prev(next)->second;
  if (hits_next || hits_previous) return usage_error("the memory is allocated already");
  live.emplace_hint(next, address, bytes);
  return {};
}

Status ProgramChecker::release(Allocations& live, uint64_t address) {
  if (live.erase(address) > 0) return {};
  return usage_error("no allocation begins at the address that is freed");
}

}  // namespace sealane::workload
