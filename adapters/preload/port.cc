// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "port.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <new>
#include <thread>
#include <vector>

#include "hooks.h"
#include "serve/messages.h"
#include "table.h"

namespace sealane::preload {
namespace {

using serve::Code;
using serve::ContextHandle;
using serve::CopyContext;
using serve::EventHandle;
using serve::StreamHandle;

CUcontext context(ContextHandle h) { return reinterpret_cast<CUcontext>(h); }
CUstream stream(StreamHandle h) { return reinterpret_cast<CUstream>(h); }
CUevent event(EventHandle h) { return reinterpret_cast<CUevent>(h); }

// Functions of the driver that no program needs to be kept from.
struct Calls {
  CUresult (*ctx_get_current)(CUcontext*);
  CUresult (*ctx_push)(CUcontext);
  CUresult (*ctx_pop)(CUcontext*);
  CUresult (*ctx_get_device)(CUdevice*);
  CUresult (*stream_create)(CUstream*, unsigned);
  CUresult (*stream_destroy)(CUstream);
  CUresult (*stream_query)(CUstream);
  CUresult (*stream_get_ctx)(CUstream, CUcontext*);
  CUresult (*event_create)(CUevent*, unsigned);
  CUresult (*event_destroy)(CUevent);
  CUresult (*primary_state)(CUdevice, unsigned*, int*);
  CUresult (*is_capturing)(CUstream, CUstreamCaptureStatus*);
  CUresult (*capture_mode)(CUstreamCaptureMode*);
  CUresult (*module_load)(CUmodule*, const void*);
  CUresult (*module_function)(CUfunction*, CUmodule, const char*);
  CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     unsigned, CUstream, void**, void**);

  Calls() {
    find_in_driver(ctx_get_current, "cuCtxGetCurrent");
    find_in_driver(ctx_push, "cuCtxPushCurrent_v2");
    find_in_driver(ctx_pop, "cuCtxPopCurrent_v2");
    find_in_driver(ctx_get_device, "cuCtxGetDevice");
    find_in_driver(stream_create, "cuStreamCreate");
    find_in_driver(stream_destroy, "cuStreamDestroy_v2");
    find_in_driver(stream_query, "cuStreamQuery");
    find_in_driver(stream_get_ctx, "cuStreamGetCtx");
    find_in_driver(event_create, "cuEventCreate");
    find_in_driver(event_destroy, "cuEventDestroy_v2");
    find_in_driver(primary_state, "cuDevicePrimaryCtxGetState");
    find_in_driver(is_capturing, "cuStreamIsCapturing");
    find_in_driver(capture_mode, "cuThreadExchangeStreamCaptureMode");
    find_in_driver(module_load, "cuModuleLoadData");
    find_in_driver(module_function, "cuModuleGetFunction");
    find_in_driver(launch, "cuLaunchKernel");
  }
};

const Calls& calls() { return found_table<Calls>(); }

// For a scope no capture is this thread's business: another one may have begun one that any thread
// spoils by allocating, for one, since the program's call has looked.
class BesideCaptures {
 public:
  BesideCaptures() { exchange(); }
  ~BesideCaptures() { exchange(); }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  void exchange() {
    if (calls().capture_mode != nullptr) calls().capture_mode(&mode_);
  }

  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // then the thread's own
};

// Makes a context current for a scope.
class Current {
 public:
  explicit Current(CUcontext wanted) : pushed_(calls().ctx_push(wanted) == CUDA_SUCCESS) {}
  ~Current() {
    CUcontext unused = nullptr;
    if (pushed_) calls().ctx_pop(&unused);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  bool ok() const { return pushed_; }

 private:
  const BesideCaptures beside_captures_;
  const bool pushed_;
};

// A stream of ours in the program's context that does not stand behind a gate. Streams share
// hardware queues, and which of them do is the driver's to know: new ones are made until one comes
// to an event.
class PassableStream {
 public:
  PassableStream() = default;
  PassableStream(const PassableStream&) = delete;
  PassableStream& operator=(const PassableStream&) = delete;
  ~PassableStream() {
    for (CUstream one : made_) calls().stream_destroy(one);
    if (event_ != nullptr) calls().event_destroy(event_);
  }

  CUresult find() {
    CUresult code = calls().event_create(&event_, CU_EVENT_DISABLE_TIMING);
    while (code == CUDA_SUCCESS) {
      for (CUstream one : made_) {
        code = calls().stream_query(one);
        if (code == CUDA_SUCCESS) found_ = one;
        if (code != CUDA_ERROR_NOT_READY) return code;
      }
      const bool all = made_.size() == kQueuesMax;
      code = all ? CUDA_SUCCESS : add();
      std::this_thread::sleep_for(std::chrono::microseconds(all ? 1000 : 100));
    }
    return code;
  }
  CUstream get() const { return found_; }

 private:
  static constexpr size_t kQueuesMax = 32;  // a context has no more (CUDA_DEVICE_MAX_CONNECTIONS)

  CUresult add() {
    CUstream one = nullptr;
    const CUresult code = calls().stream_create(&one, CU_STREAM_NON_BLOCKING);
    if (code != CUDA_SUCCESS) return code;
    made_.push_back(one);
    return SEALANE_REAL(cuEventRecord)(event_, one);
  }

  CUevent event_ = nullptr;
  std::vector<CUstream> made_;
  CUstream found_ = nullptr;
};

// True: the stream's context has failed, by a byte that it was told is forged. A driver may refuse
// the copy for other reasons: a gate must not open for those.
bool refuse_byte(CUdeviceptr from, CUstream in) {
  const serve::RefusedOpening refused;
  const CUresult code =
      SEALANE_REAL(cuMemcpyDtoHAsync_v2)(serve::RefusedOpening::place(), from, 1, in);
  return fails_context(code == CUDA_SUCCESS ? SEALANE_REAL(cuStreamSynchronize)(in) : code);
}

// True: the stream's context has failed, by a kernel that does nothing else.
bool trap(CUstream in) {
  constexpr const char* kCode =
      ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry sealane_trap() { trap; }\n";
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  return calls().module_load(&module, kCode) == CUDA_SUCCESS &&
         calls().module_function(&function, module, "sealane_trap") == CUDA_SUCCESS &&
         calls().launch(function, 1, 1, 1, 1, 1, 1, 0, in, nullptr, nullptr) == CUDA_SUCCESS &&
         fails_context(SEALANE_REAL(cuStreamSynchronize)(in));
}

class Port final : public serve::GpuDriver {
 public:
  Code make_context(int device, CopyContext& out) override {
    const auto create = SEALANE_REAL(cuCtxCreate_v2);
    if (create == nullptr) return serve::kNotSupported;
    const BesideCaptures beside_captures;
    CUcontext made = nullptr;
    CUresult code = create(&made, CU_CTX_SCHED_BLOCKING_SYNC, device);
    if (code != CUDA_SUCCESS) return code;
    CUstream lane_stream = nullptr;
    code = calls().stream_create(&lane_stream, CU_STREAM_NON_BLOCKING);
    CUcontext unused = nullptr;
    calls().ctx_pop(&unused);
    out.context = handle(made);
    out.stream = handle(lane_stream);
    if (code != CUDA_SUCCESS) drop_context(out);
    return code;
  }

  void enter_thread() override {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (calls().capture_mode != nullptr) calls().capture_mode(&mode);
  }

  void drop_context(const CopyContext& lane) override {
    const BesideCaptures beside_captures;
    if (const auto destroy = SEALANE_REAL(cuCtxDestroy_v2)) destroy(context(lane.context));
  }

  Code allocate(const CopyContext& lane, uint64_t bytes, uint64_t& address) override {
    const Current current(context(lane.context));
    CUdeviceptr made = 0;
    CUresult code = SEALANE_REAL(cuMemAlloc_v2)(&made, bytes);
    if (code != CUDA_SUCCESS) return code;
    code = SEALANE_REAL(cuMemsetD8Async)(made, 0, bytes, stream(lane.stream));
    if (code == CUDA_SUCCESS) code = SEALANE_REAL(cuStreamSynchronize)(stream(lane.stream));
    address = made;
    return code;
  }

  Code allocate_host(const CopyContext& lane, uint64_t bytes, void*& out) override {
    const Current current(context(lane.context));
    return SEALANE_REAL(cuMemHostAlloc)(&out, bytes, CU_MEMHOSTALLOC_PORTABLE);
  }

  void free_host(void* memory) override { SEALANE_REAL(cuMemFreeHost)(memory); }

  Code copy(const CopyContext& lane, Direction direction, uint64_t device, void* host,
            uint64_t bytes) override {
    const Current current(context(lane.context));
    const CUresult code =
        direction == Direction::to_device
            ? SEALANE_REAL(cuMemcpyHtoDAsync_v2)(device, host, bytes, stream(lane.stream))
            : SEALANE_REAL(cuMemcpyDtoHAsync_v2)(host, device, bytes, stream(lane.stream));
    // Done already in CC mode, as far as we know; to be sure costs nothing then.
    return code == CUDA_SUCCESS ? SEALANE_REAL(cuStreamSynchronize)(stream(lane.stream)) : code;
  }

  Code move_within(const CopyContext& lane, std::span<const serve::DeviceMove> moves) override {
    const Current current(context(lane.context));
    for (const serve::DeviceMove& move : moves) {
      const CUresult code =
          SEALANE_REAL(cuMemcpyDtoDAsync_v2)(move.to, move.from, move.bytes, stream(lane.stream));
      if (code != CUDA_SUCCESS) return code;
    }
    return SEALANE_REAL(cuStreamSynchronize)(stream(lane.stream));
  }

  Code set_word(const CopyContext& lane, uint64_t address, uint32_t value) override {
    const Current current(context(lane.context));
    return SEALANE_REAL(cuMemsetD32Async)(address, value, 1, stream(lane.stream));
  }

  // Whatever it answers but that it has never heard of it: what is not surely pageable is its own.
  bool knows(uint64_t address) override {
    const auto ask = SEALANE_REAL(cuPointerGetAttribute);
    unsigned type = 0;
    return ask == nullptr ||
           ask(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_ERROR_INVALID_VALUE;
  }

  Code context_of(StreamHandle h, ContextHandle& out) override {
    CUcontext found = nullptr;
    const bool named = reinterpret_cast<uintptr_t>(h) > serve::kPerThreadStream;
    const CUresult code =
        named ? calls().stream_get_ctx(stream(h), &found) : calls().ctx_get_current(&found);
    out = handle(found);
    return code == CUDA_SUCCESS && found == nullptr ? CUDA_ERROR_INVALID_CONTEXT : code;
  }

  Code device_of(ContextHandle h, int& out) override {
    const Current current(context(h));
    return current.ok() ? calls().ctx_get_device(&out) : CUDA_ERROR_INVALID_CONTEXT;
  }

  Code make_event(ContextHandle h, EventHandle& out) override {
    const Current current(context(h));
    CUevent made = nullptr;
    const CUresult code = calls().event_create(&made, CU_EVENT_DISABLE_TIMING);
    out = reinterpret_cast<EventHandle>(made);
    return code;
  }

  void drop_event(EventHandle h) override { calls().event_destroy(event(h)); }
  Code record(EventHandle e, StreamHandle s) override {
    return SEALANE_REAL(cuEventRecord)(event(e), stream(s));
  }
  Code query(EventHandle e) override {
    const BesideCaptures beside_captures;
    return SEALANE_REAL(cuEventQuery)(event(e));
  }

  Code wait_word(StreamHandle s, uint64_t address, uint32_t value) override {
    const auto wait = SEALANE_REAL(cuStreamWaitValue32_v2);
    if (wait == nullptr) return serve::kNotSupported;
    return wait(stream(s), address, value, CU_STREAM_WAIT_VALUE_GEQ);
  }

  Code run_on_host(StreamHandle s, void (*function)(void*), void* data) override {
    const auto launch = SEALANE_REAL(cuLaunchHostFunc);
    return launch != nullptr ? launch(stream(s), function, data) : serve::kNotSupported;
  }

  Code synchronise(ContextHandle h) override {
    const Current current(context(h));
    return current.ok() ? SEALANE_REAL(cuCtxSynchronize)() : CUDA_ERROR_INVALID_CONTEXT;
  }

  // The program's context copies a byte to the host, and is told that it was forged. A driver that
  // opens it where nobody can tell whose it is (out of sight, or to a buffer and on a thread of its
  // own) is not told: there a kernel fails the context.
  Code fail_context(ContextHandle h, uint64_t device_address) override {
    const Current current(context(h));
    if (!current.ok()) return CUDA_ERROR_INVALID_CONTEXT;
    PassableStream own;
    if (const CUresult code = own.find(); code != CUDA_SUCCESS) {
      return fails_context(code) ? serve::kSuccess : code;
    }
    const bool failed = refuse_byte(device_address, own.get()) || trap(own.get());
    return failed ? serve::kSuccess : serve::kNotSupported;
  }

  Code set_word_there(ContextHandle h, uint64_t address, uint32_t value) override {
    const Current current(context(h));
    CUstream other = nullptr;
    const CUresult made = calls().stream_create(&other, CU_STREAM_NON_BLOCKING);
    if (made != CUDA_SUCCESS) return made;
    const CUresult code = SEALANE_REAL(cuMemsetD32Async)(address, value, 1, other);
    calls().stream_destroy(other);  // goes when its work is done
    return code;
  }
};

}  // namespace

void find_port() { calls(); }

serve::GpuDriver& port() {
  static Port& made = *new Port;
  return made;
}

CUresult result_of_thrown(const char* hook) noexcept {
  static std::atomic<bool> said{false};
  const auto say = [&](const char* why) {
    if (!said.exchange(true)) std::fprintf(stderr, "sealane: %s failed: %s\n", hook, why);
  };
  try {
    throw;
  } catch (const std::bad_alloc&) {
    say("no memory");
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& problem) {
    say(problem.what());
  } catch (...) {
    say("something was thrown");
  }
  return CUDA_ERROR_UNKNOWN;
}

CUcontext current_context() {
  CUcontext found = nullptr;
  return calls().ctx_get_current(&found) == CUDA_SUCCESS ? found : nullptr;
}

CUcontext primary_context(CUdevice device) {
  unsigned flags = 0;
  int active = 0;
  if (calls().primary_state(device, &flags, &active) != CUDA_SUCCESS || active == 0) return nullptr;
  // Retaining an active one changes nothing but its count.
  CUcontext found = nullptr;
  if (SEALANE_REAL(cuDevicePrimaryCtxRetain)(&found, device) != CUDA_SUCCESS) return nullptr;
  SEALANE_REAL(cuDevicePrimaryCtxRelease_v2)(device);
  return found;
}

bool is_capturing(serve::StreamHandle h) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (calls().is_capturing == nullptr) return false;
  return calls().is_capturing(stream(h), &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace sealane::preload
