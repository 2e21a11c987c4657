// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A message of a copy is forged on its way, and work stands behind that copy: in its stream, and in
// one that waits for it. As on any GPU whose context has failed, none of it may happen: no kernel,
// no host function, no byte that a later copy or a memory operation delivers; callbacks are told of
// the error, every wait returns it, and a context beside it goes on. Prints "ok" if so.
//
//   forged to-device|to-host|both [held [unmapped|crowded]]
//
// "held": a kernel keeps the stream until everything is asked for, so that every call succeeds.
// Not for a driver whose copies wait for their stream. "unmapped": pinned memory is not the
// driver's, so that no memory operation of a stream can reach it. "crowded": all hardware queues
// wait for that copy, so that the driver cannot be told in time: kernels and memory operations run,
// and what kernels made is not delivered.
//
//   forged again   contexts fail one after the other, more than there can be at once
//   forged pool    copies from memory that only the driver knows leave nothing unverified
//   forged beside  copies of another context that were asked for already go on
//   forged older   what is asked for in a context that has failed before does not happen: its
//                  destination holds what the program had there
//
// Streams share hardware queues, so FORGED_STREAMS streams more are made behind the program's two.
// FORGED_ROUNDS copies go both ways before: after one, threads of the runtime that several at a
// time need are not there yet.

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "emulated.h"

extern "C" CUresult cuCtxSynchronize_v2(CUcontext context);

namespace {

constexpr size_t kBytes = 1500000;  // two messages
constexpr uint8_t kUntouched = 0xab;

std::atomic<bool> holds{false};
std::atomic<int> kernels{0};
std::atomic<int> functions{0};
std::atomic<int> callbacks{0};
std::atomic<int> told{0};

// A call may be told already.
void ask(CUresult code, const char* what, bool must_succeed) {
  if (code == CUDA_ERROR_ECC_UNCORRECTABLE && !must_succeed) return;
  ok(code, what);
}
#define ASK(call) ask(call, #call, held_)

void expect_forged(CUresult code, const char* what) {
  if (code != CUDA_ERROR_ECC_UNCORRECTABLE) fail(what, code);
}

int number(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

uint8_t* pinned(uint8_t value) {
  void* memory = nullptr;
  OK(cuMemAllocHost(&memory, kBytes));
  std::memset(memory, value, kBytes);
  return static_cast<uint8_t*>(memory);
}

class Program {
 public:
  Program(bool held, bool mapped, bool crowded) : held_(held), mapped_(mapped), crowded_(crowded) {
    OK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&waits_, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING));
    OK(cuMemAlloc(&device_, kBytes));
    source_ = pinned(1);
    target_ = pinned(kUntouched);
    result_ = pinned(kUntouched);
    result_of_other_ = pinned(kUntouched);
    word_ = pinned(kUntouched);
    hold_ = make_kernel("hold", [](const sealane_emu_launch*) { holds.wait(true); });
    count_ = make_kernel("count", [](const sealane_emu_launch*) { ++kernels; });
    // Whatever is opened for the first copies is open by now.
    for (int i = number("FORGED_ROUNDS", 3); i > 0; --i) {
      OK(cuMemcpyHtoDAsync(device_, source_, kBytes, stream_));
      OK(cuMemcpyDtoHAsync(target_, device_, kBytes, stream_));
    }
    OK(cuStreamSynchronize(stream_));
    std::memset(target_, kUntouched, kBytes);
    make_graph();
    for (int i = number("FORGED_STREAMS", 0); i > 0; --i) {
      CUstream idle = nullptr;
      OK(cuStreamCreate(&idle, CU_STREAM_NON_BLOCKING));
    }
  }

  void run(bool to_device, bool to_host) {
    holds = held_;
    if (held_) OK(launch(hold_, stream_));
    if (to_device) disturb("flip");
    if (to_host) disturb("flip:to_host");
    if (to_device) ASK(cuMemcpyHtoDAsync(device_, source_, kBytes, stream_));
    if (to_host) ASK(cuMemcpyDtoHAsync(target_, device_, kBytes, stream_));
    ask_for_more();
    holds = false;
    holds.notify_all();
    expect_forged(cuStreamSynchronize(stream_), "the stream's wait");
    expect_forged(cuStreamSynchronize(waits_), "the other stream's wait");
    expect_forged(cuCtxSynchronize(), "the context's wait");
    expect_forged(cuStreamQuery(stream_), "a question");
    expect_forged(cuMemcpyDtoH(result_, device_, kBytes), "a copy that waits");
    expect_forged(launch(count_, stream_), "a launch");
    CUdeviceptr more = 0;
    expect_forged(cuMemAlloc(&more, 64), "an allocation");
    unsigned type = 0;  // what a driver does and answers in any case
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device_));
    OK(cuEventDestroy(event_));
    expect_forged(cuStreamDestroy(waits_), "an end");
    if (cuStreamDestroy(waits_) != CUDA_ERROR_INVALID_HANDLE) fail("it has not ended");
    // A call on a context that has failed returns at once, while callbacks are still to come.
    if (called_back_) callbacks.wait(0);
    look(to_host);
  }

 private:
  // A host function that was captured, one that was added, and one that was changed.
  void make_graph() {
    const auto count = [](void* number) { *static_cast<std::atomic<int>*>(number) += 1; };
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    OK(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuLaunchHostFunc(stream_, count, &functions));
    OK(cuStreamEndCapture(stream_, &graph));
    CUDA_HOST_NODE_PARAMS params{count, &functions};
    OK(cuGraphAddHostNode(&node, graph, nullptr, 0, &params));
    OK(cuGraphAddHostNode(&node, graph, nullptr, 0, &params));
    OK(cuGraphInstantiate(&graph_, graph, 0));
    std::thread([&] {  // that has no context
      OK(cuGraphHostNodeSetParams(node, &params));
      OK(cuGraphExecHostNodeSetParams(graph_, node, &params));
    })
        .join();
    CUDA_HOST_NODE_PARAMS asked{};
    OK(cuGraphHostNodeGetParams(node, &asked));
    if (asked.fn != params.fn || asked.userData != &functions) fail("a node is not the program's");
    OK(cuGraphLaunch(graph_, stream_));
    OK(cuStreamSynchronize(stream_));
    if (functions != 3) fail("host functions of a graph", functions);
    functions = 0;
  }

  void ask_for_more() {
    ASK(launch(count_, stream_));
    ASK(cuLaunchHostFunc(
        stream_, [](void*) { ++functions; }, nullptr));
    ASK(cuGraphLaunch(graph_, stream_));
    const auto callback = [](CUstream, CUresult status, void*) {
      told = status;
      ++callbacks;
      callbacks.notify_all();
    };
    const CUresult added = cuStreamAddCallback(stream_, callback, nullptr, 0);
    ask(added, "cuStreamAddCallback", held_);
    called_back_ = added == CUDA_SUCCESS;
    ASK(cuMemcpyDtoHAsync(result_, device_, kBytes, stream_));
    const auto word = reinterpret_cast<CUdeviceptr>(word_);
    const CUresult written =
        mapped_ ? cuStreamWriteValue32(stream_, word, 7, 0) : CUDA_ERROR_NOT_SUPPORTED;
    if (written != CUDA_ERROR_NOT_SUPPORTED) ask(written, "cuStreamWriteValue32", held_);
    ASK(cuEventRecord(event_, stream_));
    ASK(cuStreamWaitEvent(waits_, event_, 0));
    ASK(launch(count_, waits_));
    ASK(cuMemcpyDtoHAsync(result_of_other_, device_, 100, waits_));
    ASK(launch(count_, stream_));
  }

  void look(bool to_host) const {
    if (kernels != 0 && !crowded_) fail("a kernel ran behind a forged copy", kernels);
    if (functions != 0) fail("a host function ran behind a forged copy", functions);
    if (called_back_ && callbacks != 1) fail("callbacks", callbacks);
    if (called_back_ && told != CUDA_ERROR_ECC_UNCORRECTABLE) fail("a callback was told", told);
    for (size_t i = 0; i < kBytes; ++i) {
      if (result_[i] != kUntouched) fail("a result was delivered", result_[i]);
      if (result_of_other_[i] != kUntouched) fail("a result was delivered elsewhere");
      if (word_[i] != kUntouched && !crowded_) fail("a word was written behind a forged copy");
      const bool wiped = to_host && target_[i] == 0;
      if (target_[i] != kUntouched && !wiped) fail("a forged byte was delivered", target_[i]);
    }
  }

  const bool held_;
  const bool mapped_;
  const bool crowded_;
  CUstream stream_ = nullptr;
  CUstream waits_ = nullptr;
  CUevent event_ = nullptr;
  CUdeviceptr device_ = 0;
  uint8_t* source_ = nullptr;
  uint8_t* target_ = nullptr;
  uint8_t* result_ = nullptr;
  uint8_t* result_of_other_ = nullptr;
  uint8_t* word_ = nullptr;
  CUgraphExec graph_ = nullptr;
  CUfunction hold_ = nullptr;
  CUfunction count_ = nullptr;
  bool called_back_ = false;
};

// Not the context that failed. What a call names says whose it is, also where the calling thread's
// context is the one that has failed.
class Beside {
 public:
  Beside() {
    OK(cuCtxCreate(&context_, nullptr, 0, 0));
    OK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&idle_, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING));
    OK(cuMemAlloc(&device_, kBytes));
    OK(cuMemAlloc(&more_, kBytes));
    source_ = pinned(9);
    target_ = pinned(0);
  }
  void go_on() {
    std::memset(target_, 0, kBytes);
    OK(cuMemsetD8Async(device_, 0, kBytes, stream_));
    OK(cuMemcpyHtoDAsync(device_, source_, kBytes, stream_));
    OK(cuMemcpyDtoHAsync(target_, device_, kBytes, stream_));
    OK(cuEventRecord(event_, stream_));
    OK(cuStreamWaitEvent(idle_, event_, 0));
    const int before = functions;
    OK(cuLaunchHostFunc(
        idle_, [](void*) { ++functions; }, nullptr));
    OK(cuEventSynchronize(event_));
    OK(cuEventQuery(event_));
    OK(cuStreamSynchronize(stream_));
    OK(cuStreamSynchronize(idle_));
    OK(cuStreamQuery(idle_));
    OK(cuCtxSynchronize_v2(context_));
    if (functions != before + 1) fail("a host function of a context beside it did not run");
    if (std::memcmp(source_, target_, kBytes) != 0) fail("a context beside it lost bytes");
  }
  void end() {
    OK(cuMemFreeAsync(more_, stream_));
    OK(cuStreamDestroy(stream_));
    OK(cuStreamDestroy(idle_));
    OK(cuEventDestroy(event_));
  }
  CUcontext context() const { return context_; }

 private:
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  CUstream idle_ = nullptr;
  CUevent event_ = nullptr;
  CUdeviceptr device_ = 0;
  CUdeviceptr more_ = 0;
  uint8_t* source_ = nullptr;
  uint8_t* target_ = nullptr;
};

// What a context that failed has cost is given back with it.
void fail_again(Beside& beside) {
  for (int round = 0; round < 40; ++round) {
    CUcontext context = nullptr;
    CUstream stream = nullptr;
    CUdeviceptr device = 0;
    OK(cuCtxCreate(&context, nullptr, 0, 0));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&device, kBytes));
    uint8_t* const host = pinned(1);
    OK(cuMemcpyHtoDAsync(device, host, kBytes, stream));
    OK(cuMemcpyDtoHAsync(host, device, kBytes, stream));
    OK(cuStreamSynchronize(stream));
    const bool to_host = round % 2 == 0;
    disturb(to_host ? "flip:to_host" : "flip");
    ask(to_host ? cuMemcpyDtoHAsync(host, device, kBytes, stream)
                : cuMemcpyHtoDAsync(device, host, kBytes, stream),
        "a copy", false);
    expect_forged(cuStreamSynchronize(stream), "the stream's wait");
    OK(cuCtxDestroy(context));
    OK(cuCtxSetCurrent(beside.context()));
    beside.go_on();
  }
}

// The direction of such a copy nobody can tell before it is done.
void copy_from_pool(int how) {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr pool = 0;
  OK(cuCtxCreate(&context, nullptr, 0, 0));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuMemAllocAsync(&pool, kBytes, stream));
  OK(cuMemsetD8Async(pool, 0x5a, kBytes, stream));
  OK(cuStreamSynchronize(stream));
  std::vector<uint8_t> pageable(kBytes, kUntouched);
  uint8_t* const target = how == 0 ? pageable.data() : pinned(kUntouched);
  auto to = reinterpret_cast<CUdeviceptr>(target);
  disturb("flip:to_host");
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  size_t bytes = kBytes;
  size_t start = 0;
  if (how == 0) {
    expect_forged(cuMemcpy(to, pool, kBytes), "a copy");
  } else if (how == 1) {
    expect_forged(cuMemcpyAsync(to, pool, kBytes, stream), "an asynchronous copy");
  } else {
    expect_forged(cuMemcpyBatchAsync(&to, &pool, &bytes, 1, &attributes, &start, 1, stream),
                  "a batch");
  }
  for (size_t i = 0; i < kBytes; ++i) {
    if (target[i] != kUntouched && target[i] != 0) fail("a forged byte was delivered", target[i]);
  }
  OK(cuCtxDestroy(context));
}

// A copy of each of two contexts waits for its stream, then the first one is forged.
void forge_beside(bool to_device) {
  struct One {
    One() {
      OK(cuCtxCreate(&context, nullptr, 0, 0));
      OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
      OK(cuMemAlloc(&device, kBytes));
      source = pinned(5);
      target = pinned(kUntouched);
    }
    // Copies both ways, the first of which is there when the second is asked for.
    void there() const {
      OK(cuCtxSetCurrent(context));
      OK(cuMemcpyHtoDAsync(device, source, kBytes, stream));
    }
    void back() const {
      OK(cuCtxSetCurrent(context));
      OK(cuMemcpyDtoHAsync(target, device, kBytes, stream));
    }
    void hold() {
      OK(cuCtxSetCurrent(context));
      OK(cuLaunchHostFunc(
          stream, [](void* flag) { static_cast<std::atomic<bool>*>(flag)->wait(true); }, &held));
    }
    void let_go() {
      held = false;
      held.notify_all();
    }
    CUcontext context = nullptr;
    CUstream stream = nullptr;
    CUdeviceptr device = 0;
    uint8_t* source = nullptr;
    uint8_t* target = nullptr;
    std::atomic<bool> held{true};
  };
  One first;
  One second;
  for (const One* one : {&first, &second}) {
    one->there();
    one->back();
    OK(cuStreamSynchronize(one->stream));
  }
  std::memset(second.target, kUntouched, kBytes);
  std::memset(second.source, 6, kBytes);
  first.hold();
  second.hold();
  disturb(to_device ? "flip" : "flip:to_host");
  to_device ? first.there() : first.back();
  second.there();
  second.back();
  first.let_go();
  OK(cuCtxSetCurrent(first.context));
  expect_forged(cuStreamSynchronize(first.stream), "the forged one's wait");
  second.let_go();
  OK(cuCtxSetCurrent(second.context));
  OK(cuStreamSynchronize(second.stream));
  if (std::memcmp(second.source, second.target, kBytes) != 0)
    fail("a context beside it lost bytes");
  OK(cuMemcpyHtoD(second.device, second.source, 64));
  OK(cuCtxDestroy(first.context));
  OK(cuCtxDestroy(second.context));
}

// Of copies of every route one after the other, and of a batch.
void copy_in_failed_context(bool to_host) {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr device = 0;
  OK(cuCtxCreate(&context, nullptr, 0, 0));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuMemAlloc(&device, kBytes));
  OK(cuMemsetD8Async(device, 1, kBytes, stream));
  uint8_t* const target = pinned(kUntouched);
  std::vector<uint8_t> pageable(kBytes, kUntouched);
  std::vector<uint8_t> forged(kBytes, 0);
  OK(cuStreamSynchronize(stream));
  disturb(to_host ? "flip:to_host" : "flip");
  expect_forged(to_host ? cuMemcpyDtoH(forged.data(), device, kBytes)
                        : cuMemcpyHtoD(device, forged.data(), kBytes),
                "a forged copy");
  const auto expect_kept = [](const uint8_t* kept, CUresult code, const char* what) {
    expect_forged(code, what);
    for (size_t i = 0; i < kBytes; ++i) {
      if (kept[i] != kUntouched) fail(what, kept[i]);
    }
  };
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  auto to = reinterpret_cast<CUdeviceptr>(pageable.data());
  size_t bytes = kBytes;
  size_t start = 0;
  uint8_t* const own = pageable.data();
  expect_kept(own, cuMemcpyDtoH(own, device, kBytes), "a copy that waits");
  expect_kept(own, cuMemcpy(to, device, kBytes), "a copy of any direction");
  expect_kept(own, cuMemcpyDtoHAsync(own, device, kBytes, stream), "to pageable memory");
  expect_kept(target, cuMemcpyDtoHAsync(target, device, kBytes, stream), "to pinned memory");
  expect_kept(own, cuMemcpyBatchAsync(&to, &device, &bytes, 1, &attributes, &start, 1, stream),
              "a batch");
  OK(cuCtxDestroy(context));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  OK(cuInit(0));
  if (what == "pool") {
    for (int how = 0; how < 3; ++how) copy_from_pool(how);
    std::puts("ok");
    return 0;
  }
  if (what == "beside") {
    forge_beside(argc < 3);
    std::puts("ok");
    return 0;
  }
  if (what == "older") {
    for (const bool to_host : {false, true}) copy_in_failed_context(to_host);
    std::puts("ok");
    return 0;
  }
  Beside beside;
  if (what == "again") {
    fail_again(beside);
    std::puts("ok");
    return 0;
  }
  CUcontext context = nullptr;
  OK(cuCtxCreate(&context, nullptr, 0, 0));
  const std::string how = argc > 3 ? argv[3] : "";
  Program program(argc > 2, how != "unmapped", how == "crowded");
  program.run(what != "to-host", what != "to-device");
  beside.go_on();
  OK(cuCtxSetCurrent(beside.context()));
  beside.go_on();
  OK(cuCtxSetCurrent(context));
  beside.end();
  std::puts("ok");
  return 0;
}
