// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Plays a trace as a CUDA program on the emulated GPU and looks whether every byte arrives:
//     scenario_player TRACE [INDEX:DISTURBANCE...]
// A disturbance (sealane_emu.h) happens just before the operation of that index. Prints
// "violation: ..." if wrong bytes were delivered and "error: ..." if a call failed, each once; exit
// code 0 whatever it saw.
//
// How bytes are judged without copies of its own, which would change what is tested:
//   to the device  behind each copy a kernel compares what arrived with what the source held when
//                  the copy was asked for
//   to the host    before each copy a kernel writes fresh bytes; the host compares after the call
//                  that synchronises with it
//
// A thread of the trace is a thread here. Calls begin in the order of the trace; they may block.

#include <cuda.h>
#include <sealane_emu.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "workload/trace.h"

namespace {

using namespace sealane;
using namespace sealane::workload;

// ---- bytes nobody can guess, and how they are compared ----

uint64_t mixed(uint64_t x) {
  x ^= x >> 31;
  x *= 0x9e3779b97f4a7c15;
  x ^= x >> 29;
  return x;
}

void scramble(uint8_t* to, uint64_t bytes, uint64_t seed) {
  for (uint64_t at = 0; at < bytes; at += 8) {
    const uint64_t word = mixed(seed + at);
    std::memcpy(to + at, &word, std::min<uint64_t>(8, bytes - at));
  }
}

uint64_t digest(const uint8_t* from, uint64_t bytes) {
  uint64_t sum = bytes;
  for (uint64_t at = 0; at < bytes; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, from + at, std::min<uint64_t>(8, bytes - at));
    sum = mixed(sum + word);
  }
  return sum;
}

// ---- what was seen ----

class Findings {
 public:
  void violation(const std::string& text) { note("violation: " + text, violated_); }
  void error(const std::string& text) { note("error: " + text, failed_); }
  bool over() const { return failed_.load() || violated_.load(); }

 private:
  void note(const std::string& line, std::atomic<bool>& seen) {
    if (!seen.exchange(true)) std::printf("%s\n", line.c_str());
  }
  std::atomic<bool> violated_{false};
  std::atomic<bool> failed_{false};
};

Findings& findings() {
  static Findings& made = *new Findings;
  return made;
}

// ---- kernels ----

struct KernelArguments {
  uint64_t address;
  uint64_t bytes;
  uint64_t number;  // a digest, a seed, or a time in nanoseconds
  uint64_t operation;
};

const KernelArguments& arguments_of(const sealane_emu_launch* launch) {
  return *static_cast<const KernelArguments*>(launch->arguments[0]);
}

void check_kernel(const sealane_emu_launch* launch) {
  const KernelArguments& a = arguments_of(launch);
  const auto* memory = static_cast<const uint8_t*>(launch->memory(launch, a.address, a.bytes));
  if (memory == nullptr || digest(memory, a.bytes) == a.number) return;
  findings().violation(concat("wrong bytes on the device after operation ", a.operation));
}

void scramble_kernel(const sealane_emu_launch* launch) {
  const KernelArguments& a = arguments_of(launch);
  auto* memory = static_cast<uint8_t*>(launch->memory(launch, a.address, a.bytes));
  if (memory != nullptr) scramble(memory, a.bytes, a.number);
}

void timed_kernel(const sealane_emu_launch* launch) {
  constexpr double kBytesPerNs = 3000;  // gpu.memory_gb_per_s, docs/emulator.md
  launch->charge(launch, 0, static_cast<double>(arguments_of(launch).number) * kBytesPerNs);
}

enum class Kernel { check, scramble, timed };

class Kernels {
 public:
  CUresult load() {
    const std::pair<const char*, sealane_emu_kernel_fn> all[] = {
        {"scenario_check", check_kernel},
        {"scenario_scramble", scramble_kernel},
        {"scenario_timed", timed_kernel}};
    CUmodule module = nullptr;
    CUresult result = cuModuleLoadData(
        &module, ".version 8.0 .target sm_90 scenario_check scenario_scramble scenario_timed");
    const size_t sizes[] = {sizeof(KernelArguments)};
    for (size_t i = 0; i < 3 && result == CUDA_SUCCESS; ++i) {
      const sealane_emu_kernel kernel = {sizeof kernel, all[i].first, all[i].second, sizes, 1};
      sealane_emu_register(&kernel);
      result = cuModuleGetFunction(&functions_[i], module, all[i].first);
    }
    return result;
  }

  CUresult launch(Kernel kernel, KernelArguments arguments, CUstream stream) const {
    void* pointers[] = {&arguments};
    return cuLaunchKernel(functions_[static_cast<size_t>(kernel)], 1, 1, 1, 1, 1, 1, 0, stream,
                          pointers, nullptr);
  }

 private:
  CUfunction functions_[3] = {};
};

// ---- the program ----

class Player {
 public:
  explicit Player(const Program& program) : program_(program) {}
  ~Player() {
    for (const auto& [address, host] : hosts_) {
      if (!host.pinned) std::free(host.memory);
    }
  }
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  void disturb_before(size_t operation, std::string what) {
    disturbances_.emplace(operation, std::move(what));
  }

  void play() {
    std::map<ThreadId, std::vector<size_t>> lists;
    for (size_t i = 0; i < program_.size(); ++i) lists[program_[i].thread].push_back(i);
    std::vector<std::thread> threads;
    for (const auto& [id, operations] : lists) {
      threads.emplace_back([this, list = &operations] { play_thread(*list); });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  using Call = std::function<CUresult()>;

  struct Host {
    uint8_t* memory;
    uint64_t bytes;
    bool pinned;
  };
  // Bytes on their way to the host.
  struct Arriving {
    Range range;
    StreamId stream;
    uint64_t digest;
    size_t operation;
  };
  struct Recorded {
    CUevent event = nullptr;
    StreamId stream{};
    size_t operation = 0;
  };

  // The call is made without the lock: it may block, and what it waits for may be another thread's.
  void play_thread(const std::vector<size_t>& operations) {
    for (const size_t i : operations) {
      for (size_t now = begun_.load(); now != i; now = begun_.load()) begun_.wait(now);
      Call call;
      if (!findings().over()) {
        const std::lock_guard lock(mutex_);
        for (auto [at, end] = disturbances_.equal_range(i); at != end; ++at) {
          sealane_emu_disturb(at->second.c_str());
        }
        if (context_ != nullptr) cuCtxSetCurrent(context_);
        call =
            std::visit([&](const auto& action) { return prepare(action, i); }, program_[i].action);
      }
      begun_.store(i + 1);
      begun_.notify_all();
      const CUresult result = call ? call() : CUDA_SUCCESS;
      if (result == CUDA_SUCCESS) continue;
      const char* name = "?";
      cuGetErrorName(result, &name);
      findings().error(concat(name, " from operation ", i, ": ", to_text(program_[i].action)));
    }
  }

  uint8_t* host(const Range& range) {
    const auto& [address, found] = *std::prev(hosts_.upper_bound(range.address));
    return found.memory + (range.address - address);
  }
  CUdeviceptr device(uint64_t wanted) {
    const auto& [address, found] = *std::prev(devices_.upper_bound(wanted));
    return found + (wanted - address);
  }

  // ---- one per kind of operation: does the books, returns the call ----

  Call prepare(const CreateContext&, size_t) {
    if (context_ != nullptr) {
      return [] { return CUDA_ERROR_NOT_SUPPORTED; };  // one is enough for a scenario
    }
    CUresult result = cuInit(0);
    if (result == CUDA_SUCCESS) result = cuDevicePrimaryCtxRetain(&context_, 0);
    if (result == CUDA_SUCCESS) result = cuCtxSetCurrent(context_);
    if (result == CUDA_SUCCESS) result = kernels_.load();
    return [result] { return result; };
  }
  Call prepare(const DestroyContext&, size_t) { return {}; }
  Call prepare(const CreateStream& c, size_t) {
    const unsigned flags =
        c.kind == StreamKind::non_blocking ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
    CUresult result = CUDA_SUCCESS;
    CUstream& made = streams_[c.stream];
    if (c.kind != StreamKind::legacy) result = cuStreamCreate(&made, flags);
    return [result] { return result; };
  }
  Call prepare(const DestroyStream& d, size_t) {
    return [stream = streams_.at(d.stream)] { return cuStreamDestroy(stream); };
  }
  Call prepare(const CreateEvent& c, size_t) {
    const CUresult result = cuEventCreate(&events_[c.event].event, CU_EVENT_DISABLE_TIMING);
    return [result] { return result; };
  }
  Call prepare(const DestroyEvent& d, size_t) {
    return [event = events_.at(d.event).event] { return cuEventDestroy(event); };
  }
  Call prepare(const AllocateHost& a, size_t i) {
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
  Call prepare(const FreeHost& f, size_t) {
    const Host freed = hosts_.at(f.address);
    hosts_.erase(f.address);
    return [freed] {
      if (freed.pinned) return cuMemFreeHost(freed.memory);
      std::free(freed.memory);
      return CUDA_SUCCESS;
    };
  }
  Call prepare(const AllocateDevice& a, size_t) {
    const CUresult result = cuMemAlloc(&devices_[a.address], a.bytes);
    return [result] { return result; };
  }
  Call prepare(const FreeDevice& f, size_t) {
    const CUdeviceptr freed = devices_.at(f.address);
    devices_.erase(f.address);
    return [freed] { return cuMemFree(freed); };
  }
  Call prepare(const WriteHost& w, size_t i) {
    scramble(host(w.range), w.range.bytes, mixed(i));
    return {};
  }
  // The compiler shall not know that nobody needs the answer.
  Call prepare(const ReadHost& r, size_t) {
    read_ = digest(host(r.range), r.range.bytes);
    return {};
  }
  Call prepare(const Copy& c, size_t i) {
    return c.direction == Direction::to_device ? copy_in(c, i) : copy_out(c, i);
  }
  Call prepare(const CopyOnDevice& c, size_t) {
    return [to = device(c.to), from = device(c.from), bytes = c.bytes,
            stream = streams_.at(c.stream)] { return cuMemcpyDtoDAsync(to, from, bytes, stream); };
  }
  Call prepare(const Launch& l, size_t i) {
    const auto ns = static_cast<uint64_t>(l.run_time.count());
    return [this, ns, i, stream = streams_.at(l.stream)] {
      return kernels_.launch(Kernel::timed, {0, 0, ns, i}, stream);
    };
  }
  Call prepare(const RecordEvent& r, size_t i) {
    Recorded& recorded = events_.at(r.event);
    recorded.stream = r.stream;
    recorded.operation = i;
    return [event = recorded.event, stream = streams_.at(r.stream)] {
      return cuEventRecord(event, stream);
    };
  }
  Call prepare(const WaitEvent& w, size_t) {
    return [event = events_.at(w.event).event, stream = streams_.at(w.stream)] {
      return cuStreamWaitEvent(stream, event, 0);
    };
  }
  Call prepare(const SyncEvent& s, size_t) {
    const Recorded recorded = events_.at(s.event);
    return then_look([recorded] { return cuEventSynchronize(recorded.event); },
                     [recorded](const Arriving& a) {
                       return a.stream == recorded.stream && a.operation < recorded.operation;
                     });
  }
  Call prepare(const SyncStream& s, size_t i) {
    return then_look(
        [stream = streams_.at(s.stream)] { return cuStreamSynchronize(stream); },
        [id = s.stream, i](const Arriving& a) { return a.stream == id && a.operation < i; });
  }
  Call prepare(const SyncContext&, size_t i) {
    return then_look([] { return cuCtxSynchronize(); },
                     [i](const Arriving& a) { return a.operation < i; });
  }
  Call prepare(const QueryEvent& q, size_t) {
    return [event = events_.at(q.event).event] { return ready(cuEventQuery(event)); };
  }
  Call prepare(const QueryStream& q, size_t) {
    return [stream = streams_.at(q.stream)] { return ready(cuStreamQuery(stream)); };
  }
  static CUresult ready(CUresult result) {
    return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
  }

  // ---- copies ----

  // What the source will hold when it is this copy's turn: what is on its way there, or what is
  // there. Nothing if only a part of it is on its way.
  std::optional<uint64_t> source_digest(const Range& range) {
    for (const Arriving& arriving : arriving_) {
      if (!arriving.range.overlaps(range)) continue;
      const bool same =
          arriving.range.address == range.address && arriving.range.bytes == range.bytes;
      return same ? std::optional(arriving.digest) : std::nullopt;
    }
    return digest(host(range), range.bytes);
  }

  Call copy_in(const Copy& c, size_t i) {
    const std::optional<uint64_t> expected = source_digest(c.host);
    return [this, c, i, expected, from = host(c.host), to = device(c.device),
            stream = streams_.at(c.stream)] {
      CUresult result = cuMemcpyHtoDAsync(to, from, c.host.bytes, stream);
      if (result == CUDA_SUCCESS && c.call == CallKind::sync) result = cuStreamSynchronize(stream);
      if (result != CUDA_SUCCESS || !expected) return result;
      return kernels_.launch(Kernel::check, {to, c.host.bytes, *expected, i}, stream);
    };
  }

  Call copy_out(const Copy& c, size_t i) {
    const uint64_t seed = mixed(~i);
    std::vector<uint8_t> fresh(c.host.bytes);
    scramble(fresh.data(), fresh.size(), seed);
    std::erase_if(arriving_, [&](const Arriving& a) { return a.range.overlaps(c.host); });
    arriving_.push_back({c.host, c.stream, digest(fresh.data(), fresh.size()), i});
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
    return then_look(copy, [i](const Arriving& a) { return a.operation == i; });
  }

  // Makes a call that synchronises; what has arrived then must be right.
  template <typename Which>
  Call then_look(Call call, Which which) {
    return [this, call = std::move(call), which] {
      const CUresult result = call();
      const std::lock_guard lock(mutex_);
      std::erase_if(arriving_, [&](const Arriving& a) {
        if (!which(a)) return false;
        if (result == CUDA_SUCCESS && digest(host(a.range), a.range.bytes) != a.digest) {
          findings().violation(concat("wrong bytes on the host after operation ", a.operation));
        }
        return true;
      });
      return result;
    };
  }

  const Program& program_;
  std::multimap<size_t, std::string> disturbances_;
  std::atomic<size_t> begun_{0};

  std::mutex mutex_;  // what follows
  CUcontext context_ = nullptr;
  Kernels kernels_;
  std::map<uint64_t, Host> hosts_;
  std::map<uint64_t, CUdeviceptr> devices_;
  std::map<StreamId, CUstream> streams_;
  std::map<EventId, Recorded> events_;
  std::vector<Arriving> arriving_;
  volatile uint64_t read_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const auto program = argc >= 2 ? load_trace(argv[1]) : usage_error("which trace?");
  if (!program) {
    std::fprintf(stderr, "scenario_player: %s\n", program.error().message.c_str());
    return 2;
  }
  Player player(*program);
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t colon = word.find(':');
    player.disturb_before(std::strtoul(word.c_str(), nullptr, 10), word.substr(colon + 1));
  }
  player.play();
  return 0;
}
