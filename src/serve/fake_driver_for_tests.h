// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A driver of one GPU whose streams advance only as far as they may: past events, gates whose word
// is set, host functions, and obstacles a test has lifted. One lock around everything; copies are
// done on the copy thread, as in CC mode.
#pragma once

#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "serve/gpu_driver.h"

namespace sealane::serve {

class FakeDriver final : public GpuDriver {
 public:
  // --- for tests
  static constexpr uint64_t kDeviceBase = uint64_t{1} << 40;
  static StreamHandle stream(uintptr_t number) { return reinterpret_cast<StreamHandle>(number); }
  static ContextHandle program() { return reinterpret_cast<ContextHandle>(uintptr_t{77}); }
  static ContextHandle another() { return reinterpret_cast<ContextHandle>(uintptr_t{78}); }
  // Streams are program()'s but for these.
  void put_into_another(StreamHandle s) {
    const std::lock_guard lock(mutex_);
    of_another_.insert(s);
  }

  std::vector<uint8_t> device = std::vector<uint8_t>(1 << 20);
  bool memory_operations = true;
  int contexts_max = 18;
  std::vector<ContextHandle> failed_contexts;  // that were made to fail
  Code next_copy = kSuccess;                   // what the next copies return
  bool lanes_fail = false;                     // a failed copy takes its context with it
  // What copies in the n-th context that was made return, from 1.
  void break_context(uintptr_t number, Code code) {
    const std::lock_guard lock(mutex_);
    broken_[number] = code;
  }

  // Work of the program's that lasts until lift().
  void obstruct(StreamHandle s) {
    const std::lock_guard lock(mutex_);
    streams_[s].push_back([this] { return lifted_; });
  }
  void lift() {
    const std::lock_guard lock(mutex_);
    lifted_ = true;
  }
  void hold() {  // obstacles hold again
    const std::lock_guard lock(mutex_);
    lifted_ = false;
  }
  bool done(StreamHandle s) {
    const std::lock_guard lock(mutex_);
    advance(s);
    return streams_[s].empty();
  }
  void await(StreamHandle s) {
    while (!done(s)) std::this_thread::yield();
  }
  size_t copies() {
    const std::lock_guard lock(mutex_);
    return copies_;
  }
  size_t copies_but_probes() {
    const std::lock_guard lock(mutex_);
    return copies_ - probes_;
  }
  size_t moves() {
    const std::lock_guard lock(mutex_);
    return moves_;
  }
  // Copies with this device memory do not return before let_go(); waiting() says how many there
  // are.
  void hold_copies_of(uint64_t address) {
    const std::lock_guard lock(mutex_);
    held_ = address;
    released_.notify_all();
  }
  void let_go() { hold_copies_of(0); }
  size_t waiting() {
    const std::lock_guard lock(mutex_);
    return waiting_;
  }
  bool has_memory = true;  // for copy threads
  // Memory of the host that the driver knows and nobody else was told of.
  void know(const Range& range) {
    const std::lock_guard lock(mutex_);
    known_ = range;
  }
  size_t questions() {  // about memory
    const std::lock_guard lock(mutex_);
    return questions_;
  }
  int contexts() {
    const std::lock_guard lock(mutex_);
    return contexts_;
  }
  uintptr_t contexts_made() {
    const std::lock_guard lock(mutex_);
    return contexts_made_;
  }
  // Who makes a context waits until they are not held any more; making() says how many do.
  void hold_contexts(bool held) {
    const std::lock_guard lock(mutex_);
    contexts_held_ = held;
    released_.notify_all();
  }
  size_t making() {
    const std::lock_guard lock(mutex_);
    return making_;
  }

  // --- GpuDriver
  Code make_context(int, CopyContext& out) override {
    std::unique_lock lock(mutex_);
    ++making_;
    released_.wait(lock, [&] { return !contexts_held_; });
    --making_;
    if (contexts_ == contexts_max) return 2;
    ++contexts_;
    out.context = reinterpret_cast<ContextHandle>(++contexts_made_);
    return kSuccess;
  }
  void enter_thread() override {}
  void drop_context(const CopyContext&) override {
    const std::lock_guard lock(mutex_);
    --contexts_;
  }
  Code allocate(const CopyContext&, uint64_t bytes, uint64_t& address) override {
    const std::lock_guard lock(mutex_);
    if (!has_memory && bytes > (1 << 16)) return 2;
    address = next_word_;
    next_word_ += bytes;
    own_.resize(next_word_ - kOwnBase);
    return kSuccess;
  }
  Code allocate_host(const CopyContext&, uint64_t bytes, void*& out) override {
    if (!has_memory && bytes > (1 << 16)) return 2;
    out = new uint8_t[bytes]();
    return kSuccess;
  }
  void free_host(void* memory) override { delete[] static_cast<uint8_t*>(memory); }
  Code copy(const CopyContext& lane, Direction direction, uint64_t address, void* host,
            uint64_t bytes) override {
    std::unique_lock lock(mutex_);
    ++waiting_;
    released_.wait(lock, [&] { return held_ != address || bytes == 1; });
    --waiting_;
    if (next_copy != kSuccess) return next_copy;
    const auto broken = broken_.find(reinterpret_cast<uintptr_t>(lane.context));
    if (broken != broken_.end() && bytes > 1) return broken->second;  // probes come through
    uint8_t* there = reach(address, bytes);
    if (direction == Direction::to_device) {
      std::memcpy(there, host, bytes);
    } else {
      std::memcpy(host, there, bytes);
    }
    ++copies_;
    probes_ += bytes == 1 ? 1 : 0;
    return kSuccess;
  }
  Code move_within(const CopyContext&, std::span<const DeviceMove> moves) override {
    const std::lock_guard lock(mutex_);
    for (const DeviceMove& move : moves) {
      std::memmove(reach(move.to, move.bytes), reach(move.from, move.bytes), move.bytes);
    }
    moves_ += moves.size();
    return next_copy;
  }
  Code set_word(const CopyContext&, uint64_t address, uint32_t value) override {
    const std::lock_guard lock(mutex_);
    if (lanes_fail && next_copy != kSuccess) return next_copy;
    words_[address] = value;
    return kSuccess;
  }
  bool knows(uint64_t address) override {
    const std::lock_guard lock(mutex_);
    ++questions_;
    return address >= known_.address && address < known_.end();
  }
  Code context_of(StreamHandle s, ContextHandle& out) override {
    const std::lock_guard lock(mutex_);
    out = of_another_.contains(s) ? another() : program();
    return kSuccess;
  }
  Code device_of(ContextHandle, int& out) override {
    out = 0;
    return kSuccess;
  }
  Code make_event(ContextHandle, EventHandle& out) override {
    const std::lock_guard lock(mutex_);
    out = reinterpret_cast<EventHandle>(++events_);
    return kSuccess;
  }
  void drop_event(EventHandle) override {}
  Code record(EventHandle event, StreamHandle s) override {
    const std::lock_guard lock(mutex_);
    pending_events_[event] = s;
    streams_[s].push_back([this, event] { return pending_events_.erase(event), true; });
    return kSuccess;
  }
  Code query(EventHandle event) override {
    const std::lock_guard lock(mutex_);
    const auto found = pending_events_.find(event);
    if (found == pending_events_.end()) return kSuccess;
    advance(found->second);
    return pending_events_.contains(event) ? kNotReady : kSuccess;
  }
  Code wait_word(StreamHandle s, uint64_t address, uint32_t value) override {
    const std::lock_guard lock(mutex_);
    if (!memory_operations) return kNotSupported;
    streams_[s].push_back([this, address, value] { return words_[address] >= value; });
    return kSuccess;
  }
  // Runs on a thread of its own: it may wait.
  Code run_on_host(StreamHandle s, void (*function)(void*), void* data) override {
    const std::lock_guard lock(mutex_);
    auto ended = std::make_shared<std::atomic<bool>>(false);
    std::thread([function, data, ended] {
      function(data);
      ended->store(true);
    }).detach();
    streams_[s].push_back([ended] { return ended->load(); });
    return kSuccess;
  }
  Code synchronise(ContextHandle) override { return kSuccess; }
  Code fail_context(ContextHandle context, uint64_t) override {
    const std::lock_guard lock(mutex_);
    failed_contexts.push_back(context);
    return kSuccess;
  }
  Code set_word_there(ContextHandle, uint64_t address, uint32_t value) override {
    const std::lock_guard lock(mutex_);
    words_[address] = value;
    return kSuccess;
  }

 private:
  // The program's memory, or what a copy thread allocated.
  uint8_t* reach(uint64_t address, uint64_t bytes) {
    auto& memory = address >= kDeviceBase ? device : own_;
    const uint64_t at = address - (address >= kDeviceBase ? kDeviceBase : kOwnBase);
    static_cast<void>(memory.at(at + bytes - 1));
    return &memory[at];
  }
  void advance(StreamHandle s) {
    auto& work = streams_[s];
    while (!work.empty() && work.front()()) work.pop_front();
  }

  std::mutex mutex_;
  std::map<StreamHandle, std::deque<std::function<bool()>>> streams_;
  std::set<StreamHandle> of_another_;
  std::map<EventHandle, StreamHandle> pending_events_;
  std::map<uint64_t, uint32_t> words_;
  static constexpr uint64_t kOwnBase = 1 << 20;
  uint64_t next_word_ = kOwnBase;
  std::vector<uint8_t> own_;
  size_t moves_ = 0;
  Range known_;
  size_t questions_ = 0;
  uintptr_t events_ = 0;
  size_t copies_ = 0;
  size_t probes_ = 0;
  int contexts_ = 0;
  uintptr_t contexts_made_ = 0;
  std::map<uintptr_t, Code> broken_;
  bool lifted_ = false;
  uint64_t held_ = 0;
  size_t waiting_ = 0;
  bool contexts_held_ = false;
  size_t making_ = 0;
  std::condition_variable released_;
};

}  // namespace sealane::serve
