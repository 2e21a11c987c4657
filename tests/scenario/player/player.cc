// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "scenario/player/player.h"

#include <sealane_emu.h>

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/text.h"
#include "scenario/player/bytes.h"
#include "scenario/player/findings.h"
#include "workload/trace.h"

namespace sealane::test {

using namespace workload;

namespace {

CUresult ready(CUresult result) { return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result; }

}  // namespace

Player::~Player() {
  for (const auto& [address, host] : hosts_) {
    if (!host.pinned) std::free(host.memory);
  }
}

void Player::play() {
  std::map<ThreadId, std::vector<size_t>> lists;
  for (size_t i = 0; i < program_.size(); ++i) lists[program_[i].thread].push_back(i);
  std::vector<std::thread> threads;
  for (const auto& [id, operations] : lists) {
    threads.emplace_back([this, list = &operations] { play_thread(*list); });
  }
  for (std::thread& thread : threads) thread.join();
  findings().finish();
}

// The call is made without the lock: it may block, and what it waits for may be another thread's.
void Player::play_thread(const std::vector<size_t>& operations) {
  for (const size_t i : operations) {
    wait_part_of(static_cast<uint64_t>(program_[i].think.count()));
    for (size_t now = begun_.load(); now != i; now = begun_.load()) begun_.wait(now);
    const Call call = next_call(i);
    begun_.store(i + 1);
    begun_.notify_all();
    const CUresult result = call ? call() : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) continue;
    const char* name = "?";
    cuGetErrorName(result, &name);
    findings().error(concat(name, " from operation ", i, ": ", to_text(program_[i].action)));
  }
}

// Nothing once something was found: what follows would tell nothing new.
Player::Call Player::next_call(size_t i) {
  if (findings().over()) return {};
  const std::lock_guard lock(mutex_);
  for (auto [at, end] = disturbances_.equal_range(i); at != end; ++at) {
    sealane_emu_disturb(at->second.c_str());
  }
  if (context_ != nullptr) cuCtxSetCurrent(context_);
  return std::visit([&](const auto& action) { return prepare(action, i); }, program_[i].action);
}

uint8_t* Player::host(const Range& range) {
  const auto& [address, found] = *std::prev(hosts_.upper_bound(range.address));
  return found.memory + (range.address - address);
}

CUdeviceptr Player::device(uint64_t wanted) {
  const auto& [address, found] = *std::prev(devices_.upper_bound(wanted));
  return found + (wanted - address);
}

// Makes a call that synchronises with the copies that are covered; what they brought must be right.
template <typename Covered>
Player::Call Player::then_look(Call call, Covered covered) {
  return [this, call = std::move(call), covered] {
    const CUresult result = call();
    const std::lock_guard lock(mutex_);
    if (result == CUDA_SUCCESS) {
      findings().synchronised([&](size_t i) { return covered(Asked{stream_of(i), i}); });
    }
    std::erase_if(arriving_, [&](const Arriving& a) {
      if (!covered(a.asked)) return false;
      if (result == CUDA_SUCCESS && digest(host(a.range), a.range.bytes) != a.digest) {
        findings().violation(concat("wrong bytes on the host after operation ", a.asked.operation));
      }
      return true;
    });
    return result;
  };
}

workload::StreamId Player::stream_of(size_t copy) const {
  return std::get<Copy>(program_[copy].action).stream;
}

// ---- one per kind of operation: does the books, returns the call ----

Player::Call Player::prepare(const CreateContext&, size_t) {
  if (context_ != nullptr) {
    return [] { return CUDA_ERROR_NOT_SUPPORTED; };  // one is enough for a scenario
  }
  CUresult result = cuInit(0);
  if (result == CUDA_SUCCESS) result = cuDevicePrimaryCtxRetain(&context_, 0);
  if (result == CUDA_SUCCESS) result = cuCtxSetCurrent(context_);
  if (result == CUDA_SUCCESS) result = kernels_.load();
  return [result] { return result; };
}

Player::Call Player::prepare(const CreateStream& c, size_t) {
  const unsigned flags =
      c.kind == StreamKind::non_blocking ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
  CUresult result = CUDA_SUCCESS;
  CUstream& made = streams_[c.stream];
  if (c.kind != StreamKind::legacy) result = cuStreamCreate(&made, flags);
  return [result] { return result; };
}

Player::Call Player::prepare(const DestroyStream& d, size_t) {
  return [stream = streams_.at(d.stream)] { return cuStreamDestroy(stream); };
}

Player::Call Player::prepare(const CreateEvent& c, size_t) {
  const CUresult result = cuEventCreate(&events_[c.event].event, CU_EVENT_DISABLE_TIMING);
  return [result] { return result; };
}

Player::Call Player::prepare(const DestroyEvent& d, size_t) {
  return [event = events_.at(d.event).event] { return cuEventDestroy(event); };
}

Player::Call Player::prepare(const AllocateHost& a, size_t i) {
  void* memory = nullptr;
  const bool pinned = a.memory != MemoryKind::pageable;
  CUresult result = CUDA_SUCCESS;
  if (pinned) {
    result = cuMemHostAlloc(&memory, a.range.bytes, 0);
  } else {
    memory = std::aligned_alloc(4096, (a.range.bytes + 4095) / 4096 * 4096);
  }
  if (memory != nullptr) scramble(static_cast<uint8_t*>(memory), a.range.bytes, mixed(i));
  hosts_[a.range.address] = {static_cast<uint8_t*>(memory), a.range.bytes, pinned};
  return [result] { return result; };
}

Player::Call Player::prepare(const FreeHost& f, size_t) {
  const Host freed = hosts_.at(f.address);
  hosts_.erase(f.address);
  return [freed] {
    if (freed.pinned) return cuMemFreeHost(freed.memory);
    std::free(freed.memory);
    return CUDA_SUCCESS;
  };
}

Player::Call Player::prepare(const AllocateDevice& a, size_t) {
  const CUresult result = cuMemAlloc(&devices_[a.address], a.bytes);
  return [result] { return result; };
}

Player::Call Player::prepare(const FreeDevice& f, size_t) {
  const CUdeviceptr freed = devices_.at(f.address);
  devices_.erase(f.address);
  return [freed] { return cuMemFree(freed); };
}

Player::Call Player::prepare(const WriteHost& w, size_t i) {
  scramble(host(w.range), w.range.bytes, mixed(i));
  return {};
}

// The compiler shall not know that nobody needs the answer.
Player::Call Player::prepare(const ReadHost& r, size_t) {
  read_ = digest(host(r.range), r.range.bytes);
  return {};
}

Player::Call Player::prepare(const Copy& c, size_t i) {
  return c.direction == Direction::to_device ? copy_in(c, i) : copy_out(c, i);
}

Player::Call Player::prepare(const CopyOnDevice& c, size_t) {
  return [to = device(c.to), from = device(c.from), bytes = c.bytes,
          stream = streams_.at(c.stream)] { return cuMemcpyDtoDAsync(to, from, bytes, stream); };
}

Player::Call Player::prepare(const Launch& l, size_t i) {
  const auto ns = static_cast<uint64_t>(l.run_time.count());
  return [this, ns, i, stream = streams_.at(l.stream)] {
    return kernels_.launch(Kernel::timed, {0, 0, ns, i}, stream);
  };
}

Player::Call Player::prepare(const RecordEvent& r, size_t i) {
  Recorded& recorded = events_.at(r.event);
  recorded.stream = r.stream;
  recorded.operation = i;
  return [event = recorded.event, stream = streams_.at(r.stream)] {
    return cuEventRecord(event, stream);
  };
}

Player::Call Player::prepare(const WaitEvent& w, size_t) {
  return [event = events_.at(w.event).event, stream = streams_.at(w.stream)] {
    return cuStreamWaitEvent(stream, event, 0);
  };
}

Player::Call Player::prepare(const SyncEvent& s, size_t) {
  const Recorded recorded = events_.at(s.event);
  return then_look([recorded] { return cuEventSynchronize(recorded.event); },
                   [recorded](const Asked& a) {
                     return a.stream == recorded.stream && a.operation < recorded.operation;
                   });
}

Player::Call Player::prepare(const SyncStream& s, size_t i) {
  return then_look(
      [stream = streams_.at(s.stream)] { return cuStreamSynchronize(stream); },
      [id = s.stream, i](const Asked& a) { return a.stream == id && a.operation < i; });
}

Player::Call Player::prepare(const SyncContext&, size_t i) {
  return then_look([] { return cuCtxSynchronize(); },
                   [i](const Asked& a) { return a.operation < i; });
}

Player::Call Player::prepare(const QueryEvent& q, size_t) {
  return [event = events_.at(q.event).event] { return ready(cuEventQuery(event)); };
}

Player::Call Player::prepare(const QueryStream& q, size_t) {
  return [stream = streams_.at(q.stream)] { return ready(cuStreamQuery(stream)); };
}

// ---- copies ----

// What the source will hold when it is this copy's turn: what is on its way there, or what is
// there. Nothing if only a part of it is on its way.
std::optional<uint64_t> Player::source_digest(const Range& range) {
  for (const Arriving& arriving : arriving_) {
    if (!arriving.range.overlaps(range)) continue;
    const bool same =
        arriving.range.address == range.address && arriving.range.bytes == range.bytes;
    return same ? std::optional(arriving.digest) : std::nullopt;
  }
  return digest(host(range), range.bytes);
}

Player::Call Player::copy_in(const Copy& c, size_t i) {
  const std::optional<uint64_t> expected = source_digest(c.host);
  return [this, c, i, expected, from = host(c.host), to = device(c.device),
          stream = streams_.at(c.stream)] {
    CUresult result = cuMemcpyHtoDAsync(to, from, c.host.bytes, stream);
    if (result == CUDA_SUCCESS && c.call == CallKind::sync) result = cuStreamSynchronize(stream);
    if (result != CUDA_SUCCESS || !expected) return result;
    return kernels_.launch(Kernel::check, {to, c.host.bytes, *expected, i}, stream);
  };
}

Player::Call Player::copy_out(const Copy& c, size_t i) {
  const uint64_t seed = mixed(~i);
  std::vector<uint8_t> fresh(c.host.bytes);
  scramble(fresh.data(), fresh.size(), seed);
  std::erase_if(arriving_, [&](const Arriving& a) { return a.range.overlaps(c.host); });
  arriving_.push_back({c.host, digest(fresh.data(), fresh.size()), {c.stream, i}});
  const Call copy = [this, c, i, seed, from = device(c.device), to = host(c.host),
                     stream = streams_.at(c.stream)] {
    const CUresult prepared =
        kernels_.launch(Kernel::scramble, {from, c.host.bytes, seed, i}, stream);
    if (prepared != CUDA_SUCCESS) return prepared;
    const CUresult result = cuMemcpyDtoHAsync(to, from, c.host.bytes, stream);
    return result == CUDA_SUCCESS && c.call == CallKind::sync ? cuStreamSynchronize(stream)
                                                              : result;
  };
  if (c.call == CallKind::async) return copy;
  return then_look(copy, [i](const Asked& a) { return a.operation == i; });
}

}  // namespace sealane::test
