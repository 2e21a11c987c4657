// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A program whose copies are easy to foresee, so that slots are full, and to which something
// happens then: a fork, a new key, a context that ends, memory that goes, a machine that refuses
// threads or locked memory, a worker that stands still. What the device received is compared with
// what the memory held. What happens is the first argument; prints "ok", or says what went wrong.

#include "preload/trouble.h"

#include <cuda.h>
#include <dlfcn.h>
#include <sealane_emu.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace sealane::test {
namespace {

constexpr int kRounds = 9;  // enough to be foreseen, and used

[[noreturn]] void fail(const char* what, int code = 0) {
  std::printf("%s (%d)\n", what, code);
  std::fflush(stdout);
  _exit(1);
}

void ok(CUresult code, const char* what) {
  if (code != CUDA_SUCCESS) fail(what, code);
}
#define OK(call) ok(call, #call)

void disturb(const char* what) {
  using Disturb = int(const char*);
  auto* const call = reinterpret_cast<Disturb*>(dlsym(RTLD_DEFAULT, "sealane_emu_disturb"));
  if (call == nullptr || call(what) != 0) fail("cannot disturb the emulated GPU");
}

void pause_for(int microseconds) {
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

// Copies the same buffers in the same order, round by round.
class Swapper {
 public:
  static constexpr size_t kBuffers = 4;
  static constexpr size_t kBytes = 1500000;  // two messages

  explicit Swapper(int device = 0) : device_(device) { open(); }

  void open() {
    OK(cuDevicePrimaryCtxRetain(&context_, device_));
    OK(cuCtxSetCurrent(context_));
    OK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    for (Buffer& b : buffers_) {
      OK(cuMemAlloc(&b.device, kBytes));
      allocate(b);
    }
  }

  void allocate(size_t i) { allocate(buffers_[i]); }
  void free(size_t i) { OK(cuMemFreeHost(buffers_[i].host)); }
  uint8_t* host(size_t i) { return buffers_[i].host; }
  CUstream stream() const { return stream_; }
  CUcontext context() const { return context_; }

  CUresult ask(size_t i) {
    Buffer& b = buffers_[i];
    return cuMemcpyHtoDAsync(b.device, b.host, kBytes, stream_);
  }
  CUresult fetch(size_t from, size_t to) {
    return cuMemcpyDtoHAsync(buffers_[to].host, buffers_[from].device, kBytes, stream_);
  }

  // A small piece of it.
  CUresult fetch_some(size_t from, size_t to) {
    return cuMemcpyDtoHAsync(buffers_[to].host + 5000, buffers_[from].device, 3000, stream_);
  }

  // Copies one buffer and looks at what arrived.
  void copy(size_t i) {
    Buffer& b = buffers_[i];
    if (++turn_ % 5 == 0) b.host[turn_ * 7919 % kBytes] ^= 1;  // now and then it has changed
    ok(ask(i), "copy to the device");
    OK(cuStreamSynchronize(stream_));
    check(i);
  }
  void check(size_t i) {
    std::vector<uint8_t> back(kBytes);
    OK(cuMemcpyDtoH(back.data(), buffers_[i].device, kBytes));
    if (std::memcmp(back.data(), buffers_[i].host, kBytes) != 0) fail("stale bytes");
  }

  // `before` is called before every copy.
  template <typename Before>
  void rounds(int count, const Before& before) {
    for (int round = 0; round < count; ++round) {
      for (size_t i = 0; i < kBuffers; ++i) {
        before(round, i);
        copy(i);
        pause_for(500);  // for the workers to seal the next
      }
    }
  }
  void rounds(int count) {
    rounds(count, [](int, size_t) {});
  }

 private:
  struct Buffer {
    uint8_t* host = nullptr;
    CUdeviceptr device = 0;
  };

  void allocate(Buffer& b) {
    void* memory = nullptr;
    OK(cuMemAllocHost(&memory, kBytes));
    b.host = static_cast<uint8_t*>(memory);
    for (size_t i = 0; i < kBytes; i += 97) b.host[i] = static_cast<uint8_t>(++value_ * 31);
  }

  const int device_;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  Buffer buffers_[kBuffers];
  size_t turn_ = 0;
  uint32_t value_ = 0;
};

void just_swap() {
  OK(cuInit(0));
  Swapper().rounds(kRounds);
}

// With slots ready. The child has no driver and none of our memory; both write where the other must
// not see it.
void fork_with_slots() {
  OK(cuInit(0));
  Swapper program;
  program.rounds(kRounds, [&](int round, size_t i) {
    if (round < 6) return;
    const pid_t child = fork();
    if (child == 0) {
      std::memset(program.host(i), 0xee, Swapper::kBytes);
      const bool refused = program.ask(i) != CUDA_SUCCESS;
      _exit(refused && encrypts() ? 0 : 7);
    }
    program.host(i)[100 * i] ^= 3;
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) fail("the child failed", status);
  });
}

void rotate_with_slots() {
  OK(cuInit(0));
  Swapper().rounds(kRounds + 4, [](int round, size_t i) {
    if (round >= 4 && (static_cast<size_t>(round) + i) % 3 == 0) disturb("rotate");
    if (round >= 4 && (static_cast<size_t>(round) + i) % 7 == 0) disturb("message");
  });
}

// Pinned memory is read when the copy's turn comes: what stands before it in the stream, and writes
// the memory, is still to run when the copy is asked for.
void written_in_the_stream(bool by_function) {
  OK(cuInit(0));
  Swapper program;
  program.rounds(6);
  for (size_t turn = 0; turn < 40; ++turn) {
    const size_t i = turn % Swapper::kBuffers;
    if (turn % 2 == 0 && by_function) {
      const auto write = [](void* memory) {
        pause_for(300);
        for (size_t at = 0; at < Swapper::kBytes; at += 5000) ++static_cast<uint8_t*>(memory)[at];
      };
      OK(cuLaunchHostFunc(program.stream(), write, program.host(i)));
    } else if (turn % 2 == 0) {
      ok(program.fetch_some((i + 1) % Swapper::kBuffers, i), "copy to the host");
    }
    ok(program.ask(i), "copy to the device");
    OK(cuStreamSynchronize(program.stream()));
    program.check(i);
    pause_for(500);
  }
}

struct GraphLaunches {
  explicit GraphLaunches(CUgraph graph) { OK(cuGraphInstantiate(&exec, graph, 0)); }
  ~GraphLaunches() { OK(cuGraphExecDestroy(exec)); }
  GraphLaunches(const GraphLaunches&) = delete;
  GraphLaunches& operator=(const GraphLaunches&) = delete;
  CUgraphExec exec = nullptr;
};

// The same by a graph, whose host function is in a graph within it.
void written_by_a_graph() {
  OK(cuInit(0));
  Swapper program;
  program.rounds(6);
  const auto write = [](void* memory) {
    pause_for(300);
    for (size_t at = 0; at < Swapper::kBytes; at += 5000) ++static_cast<uint8_t*>(memory)[at];
  };
  for (size_t turn = 0; turn < 40; ++turn) {
    const size_t i = turn % Swapper::kBuffers;
    CUgraph inner = nullptr;
    CUgraph outer = nullptr;
    CUgraphNode node = nullptr;
    OK(cuGraphCreate(&inner, 0));
    OK(cuGraphCreate(&outer, 0));
    const CUDA_HOST_NODE_PARAMS function{write, program.host(i)};
    OK(cuGraphAddHostNode(&node, inner, nullptr, 0, &function));
    OK(cuGraphAddChildGraphNode(&node, outer, nullptr, 0, inner));
    const GraphLaunches graph(outer);
    if (turn % 2 == 0) OK(cuGraphLaunch(graph.exec, program.stream()));
    ok(program.ask(i), "copy to the device");
    OK(cuStreamSynchronize(program.stream()));
    program.check(i);
    OK(cuGraphDestroy(outer));
    OK(cuGraphDestroy(inner));
    pause_for(500);
  }
}

std::atomic<bool> lingers{true};

CUfunction lingering_kernel() {
  using Register = int(const sealane_emu_kernel*);
  auto* const add = reinterpret_cast<Register*>(dlsym(RTLD_DEFAULT, "sealane_emu_register"));
  const sealane_emu_kernel kernel{
      sizeof kernel, "linger", [](const sealane_emu_launch*) { lingers.wait(true); }, nullptr, 0};
  if (add == nullptr || add(&kernel) != 0) fail("cannot register a kernel");
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  OK(cuModuleLoadData(&module, ".version 8.0 .target sm_90 .entry linger() { ret; }"));
  OK(cuModuleGetFunction(&function, module, "linger"));
  return function;
}

// A graph that cannot touch host memory is under way all the time: what is sealed ahead is used.
void beside_a_graph() {
  OK(cuInit(0));
  Swapper program;
  CUdeviceptr filled = 0;
  OK(cuMemAlloc(&filled, 4096));
  CUgraph inner = nullptr;
  CUgraph outer = nullptr;
  CUgraphNode fill_node = nullptr;
  CUgraphNode node = nullptr;
  OK(cuGraphCreate(&inner, 0));
  OK(cuGraphCreate(&outer, 0));
  const CUDA_MEMSET_NODE_PARAMS fill{filled, 0, 7, 4, 1024, 1};
  OK(cuGraphAddMemsetNode(&fill_node, inner, nullptr, 0, &fill, program.context()));
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = lingering_kernel();
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
  kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
  OK(cuGraphAddKernelNode(&node, inner, &fill_node, 1, &kernel));
  OK(cuGraphAddChildGraphNode(&node, outer, nullptr, 0, inner));
  OK(cuGraphAddEmptyNode(&node, outer, nullptr, 0));
  const GraphLaunches graph(outer);
  CUstream other = nullptr;
  OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  OK(cuGraphLaunch(graph.exec, other));
  program.rounds(kRounds);
  lingers = false;
  lingers.notify_all();
  OK(cuStreamSynchronize(other));
}

// Contexts end with slots ready and workers at it; the next one starts from nothing.
void reset_with_slots() {
  OK(cuInit(0));
  Swapper program;
  for (int life = 0; life < 5; ++life) {
    program.rounds(5);
    program.ask(0);  // in flight
    OK(cuDevicePrimaryCtxReset(0));
    program.open();  // pinned memory of the old one went with it
  }
  program.rounds(kRounds);
}

// The program wants all the contexts there are, and gives them back: ours come and go.
void crowd_of_contexts() {
  OK(cuInit(0));
  Swapper program;
  for (int life = 0; life < 4; ++life) {
    program.rounds(6);
    std::vector<CUcontext> crowd;
    CUcontext one = nullptr;
    while (cuCtxCreate(&one, nullptr, 0, 0) == CUDA_SUCCESS) crowd.push_back(one);
    OK(cuCtxSetCurrent(program.context()));
    program.rounds(2);
    for (CUcontext context : crowd) OK(cuCtxDestroy(context));
    OK(cuCtxSetCurrent(program.context()));
  }
}

// Two devices, a lane each. The program wants all the contexts there are while a stream of the
// second device is held: only the first one's lane can go. `again`: that device copies once more.
void one_lane_stops(bool again) {
  OK(cuInit(0));
  static std::atomic<bool> released{false};
  Swapper first(0);
  first.rounds(2);
  Swapper second(1);
  second.rounds(2);
  OK(cuLaunchHostFunc(
      second.stream(),
      [](void*) {
        while (!released) pause_for(500);
      },
      nullptr));
  ok(second.ask(0), "copy to the device");
  std::vector<CUcontext> crowd;
  CUcontext one = nullptr;
  while (cuCtxCreate(&one, nullptr, 0, 0) == CUDA_SUCCESS) crowd.push_back(one);
  for (CUcontext context : crowd) OK(cuCtxDestroy(context));
  released = true;
  OK(cuCtxSetCurrent(second.context()));
  OK(cuStreamSynchronize(second.stream()));
  second.check(0);
  if (!again) return;
  OK(cuCtxSetCurrent(first.context()));
  first.rounds(2);
}

// What is freed was asked for, is being sealed ahead, or both; other memory comes in its place.
void free_with_slots() {
  OK(cuInit(0));
  Swapper program;
  program.rounds(6);
  for (size_t turn = 0; turn < 60; ++turn) {
    const size_t i = turn % Swapper::kBuffers;
    program.copy(i);
    pause_for(static_cast<int>(turn % 7) * 60);
    const size_t next = (i + 1) % Swapper::kBuffers;
    if (turn % 3 == 0) ok(program.ask(next), "copy to the device");
    if (turn % 2 == 0) {
      program.free(next);
      program.allocate(next);
    }
  }
}

void exit_with_slots() {
  OK(cuInit(0));
  static Swapper program;
  program.rounds(6);
  for (size_t i = 0; i < 20; ++i) program.ask(i % Swapper::kBuffers);
  std::puts("ok");
  std::fflush(stdout);
  std::exit(0);
}

// One flipped bit, in either direction: the program learns of it in the call that waits, nothing of
// the copy is delivered, and every later call says the same.
void attacked_with_slots() {
  OK(cuInit(0));
  Swapper program;
  program.rounds(6);
  disturb("flip");
  program.ask(0);
  for (size_t i = 0; i < 3; ++i) program.fetch(1, i);  // not to be believed any more
  CUcontext other = nullptr;  // the error is the stream's, whatever is current
  const bool room = cuCtxCreate(&other, nullptr, 0, 0) == CUDA_SUCCESS;
  const CUresult found = cuStreamSynchronize(program.stream());
  if (room) OK(cuCtxDestroy(other));
  OK(cuCtxSetCurrent(program.context()));
  if (found != CUDA_ERROR_ECC_UNCORRECTABLE) fail("the attack was not told in time", found);
  if (program.ask(1) != found || cuStreamSynchronize(program.stream()) != found ||
      cuCtxSynchronize() != found || cuStreamQuery(program.stream()) != found) {
    fail("the error does not stand");
  }
}

void many_threads() {
  OK(cuInit(0));
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([i] { Swapper(i % 2).rounds(6); });
  }
  for (std::thread& thread : threads) thread.join();
}

// A driver whose helper hands tags over as parameters gets what libcrypto would have given.
void tags_by_parameters() {
  OK(cuInit(0));
  Swapper(0).rounds(1);
  if (!seals_by_parameters()) fail("a tag was lost");
}

void stalled_worker() {
  Staller staller;  // before there are threads
  OK(cuInit(0));
  Swapper program;
  program.rounds(6);
  staller.begin();
  program.rounds(kRounds);
  for (size_t i = 0; i < Swapper::kBuffers; ++i) program.free(i);
  if (const int stalls = staller.end(); stalls < 2) fail("nobody was stalled", stalls);
}

void no_threads(int allowed) {
  allow_threads(allowed);
  just_swap();
}

void no_locked_memory(bool swap) {
  refuse_locking(swap);
  just_swap();
}

}  // namespace

int run_trouble(const std::string& what) {
  const std::map<std::string, std::function<void()>> kinds = {
      {"none", just_swap},
      {"fork", fork_with_slots},
      {"rotate", rotate_with_slots},
      {"host-function", [] { written_in_the_stream(true); }},
      {"small-fetch", [] { written_in_the_stream(false); }},
      {"graph-writes", written_by_a_graph},
      {"graph-beside", beside_a_graph},
      {"reset", reset_with_slots},
      {"crowd", crowd_of_contexts},
      {"lane-stops", [] { one_lane_stops(false); }},
      {"lane-stops-and-opens", [] { one_lane_stops(true); }},
      {"free", free_with_slots},
      {"exit", exit_with_slots},
      {"attack", attacked_with_slots},
      {"threads", many_threads},
      {"stall", stalled_worker},
      {"parameters", tags_by_parameters},
      {"no-threads", [] { no_threads(0); }},
      {"one-thread", [] { no_threads(1); }},
      {"no-lock", [] { no_locked_memory(false); }},
      {"no-lock-swap", [] { no_locked_memory(true); }},
  };
  const auto found = kinds.find(what);
  if (found == kinds.end()) fail("what?");
  found->second();
  std::puts("ok");
  return 0;
}

}  // namespace sealane::test

int main(int argc, char** argv) { return sealane::test::run_trouble(argc > 1 ? argv[1] : ""); }
