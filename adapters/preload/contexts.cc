// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The driver's start, its contexts, and cuGetProcAddress, through which most programs find it.

#include <sys/mman.h>

#include <map>
#include <mutex>

#include "hooks.h"
#include "start.h"

using namespace sealane::preload;
namespace serve = sealane::serve;

SEALANE_HOOKED(cuInit)(unsigned flags) try {
  const auto next = SEALANE_REAL(cuInit);
  if (next == nullptr) return CUDA_ERROR_NO_DEVICE;
  driver_starts();
  const CUresult result = next(flags);
  result == CUDA_SUCCESS ? driver_is_up() : driver_did_not_start();
  return result;
}
SEALANE_UNTHROWN(cuInit)

namespace {

// There are few contexts in CC mode, and the program's come first. Another thread may have had ours
// meanwhile, and left some of them.
template <typename Create>
CUresult create_context(Create&& create) {
  serve::Runtime* runtime = serve::Runtime::get();
  const uint64_t given = runtime != nullptr ? runtime->contexts_given() : 0;
  const CUresult result = create();
  if (result != CUDA_ERROR_OUT_OF_MEMORY || runtime == nullptr) return result;
  const bool any = runtime->give_up_contexts() || runtime->contexts_given() != given;
  return any ? create() : result;
}

// How often the program has retained a device's primary context. A release that leaves it to others
// ends nothing, and they may be using its memory all the while.
class Retained {
 public:
  void add(CUdevice device) {
    const std::lock_guard lock(mutex_);
    ++counts_[device];
  }
  bool take(CUdevice device) {  // true: others have it still
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(device);
    return found != counts_.end() && found->second > 0 && --found->second > 0;
  }
  void reset(CUdevice device) {
    const std::lock_guard lock(mutex_);
    counts_.erase(device);
  }

 private:
  std::mutex mutex_;
  std::map<CUdevice, int> counts_;
};

Retained& retained() {
  static Retained& all = *new Retained;
  return all;
}

template <typename Retain>
CUresult retain_primary(CUdevice device, Retain&& retain) {
  const CUresult result = create_context(retain);
  if (result == CUDA_SUCCESS) retained().add(device);
  return result;
}

// Pinned memory goes with its context, also where it is ours.
// `left`: nullptr if nobody said that it would go.
void forget(serve::Runtime& runtime, CUcontext context, const serve::Runtime::LeftContext* left) {
  left != nullptr ? runtime.forget_context(handle(context), *left)
                  : runtime.forget_context(handle(context));
  forget_objects_of(handle(context));
  if (left == nullptr) return;
  for (const auto& block : left->memory.host) {
    if (block.what.ours) munmap(reinterpret_cast<void*>(block.range.address), block.range.bytes);
  }
}

// A context ends: nothing of ours may still be under way in it, or on its memory.
template <typename End>
CUresult end_context(CUcontext context, End&& end) {
  serve::Runtime* runtime = serve::Runtime::get();
  if (runtime == nullptr) return end();
  const auto left = runtime->leave_context(handle(context));
  forget_launch_times();
  const CUresult result =
      told(serve::EventKind::call, "cuCtxDestroy", nullptr, end, [&](serve::Event& event) {
        event.call = serve::Call::destroy_context;
        event.context = reinterpret_cast<uint64_t>(context);
      });
  if (result == CUDA_SUCCESS) {
    forget(*runtime, context, &left);
  } else {
    runtime->stay_in_context(handle(context), left);
  }
  return result;
}

template <typename End>
CUresult end_primary(CUdevice device, bool leaves, End&& end) {
  serve::Runtime* runtime = serve::Runtime::get();
  const CUcontext before = runtime != nullptr ? primary_context(device) : nullptr;
  if (before == nullptr) return end();
  serve::Runtime::LeftContext left;
  if (leaves) {
    left = runtime->leave_context(handle(before));
    forget_launch_times();
  }
  const CUresult result = end();
  if (primary_context(device) == nullptr) {
    forget(*runtime, before, leaves ? &left : nullptr);
  } else if (leaves) {
    runtime->stay_in_context(handle(before), left);
  }
  return result;
}

template <typename End>
CUresult release_primary(CUdevice device, End&& end) {
  const bool others = retained().take(device);
  const CUresult result = end_primary(device, !others, end);
  if (result != CUDA_SUCCESS && others) retained().add(device);
  return result;
}

template <typename End>
CUresult reset_primary(CUdevice device, End&& end) {
  retained().reset(device);
  return end_primary(device, true, end);
}

}  // namespace

#define CREATE(symbol, parameters, arguments) \
  SEALANE_SINGLE(symbol, parameters, create_context([&] { return next arguments; }))
CREATE(cuCtxCreate_v2, (CUcontext * context, unsigned flags, CUdevice device),
       (context, flags, device))
CREATE(cuCtxCreate_v3,
       (CUcontext * context, void* affinity, int count, unsigned flags, CUdevice device),
       (context, affinity, count, flags, device))
CREATE(cuCtxCreate_v4,
       (CUcontext * context, CUctxCreateParams* parameters, unsigned flags, CUdevice device),
       (context, parameters, flags, device))
SEALANE_SINGLE(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device),
               retain_primary(device, [&] { return next(context, device); }))

#define END(symbol) \
  SEALANE_SINGLE(symbol, (CUcontext context), end_context(context, [&] { return next(context); }))
#define END_PRIMARY(symbol, end) \
  SEALANE_SINGLE(symbol, (CUdevice device), end(device, [&] { return next(device); }))
END(cuCtxDestroy)
END(cuCtxDestroy_v2)
END(cuCtxDetach)
END_PRIMARY(cuDevicePrimaryCtxRelease, release_primary)
END_PRIMARY(cuDevicePrimaryCtxRelease_v2, release_primary)
END_PRIMARY(cuDevicePrimaryCtxReset, reset_primary)
END_PRIMARY(cuDevicePrimaryCtxReset_v2, reset_primary)

// --- cuGetProcAddress

namespace {

// The hook in front of what the driver answered. It is the same function that the driver exports,
// or else the variant of a CUDA version we know.
void* in_front(const char* name, int version, cuuint64_t flags, void* found) {
  if (found == nullptr || name == nullptr || stands_aside()) return found;
  constexpr cuuint64_t kPerThread = 2;
  Slot slot = Slot::count;
  if ((flags & kPerThread) != 0) slot = find_hook(name, version, true);
  if (slot == Slot::count) slot = find_hook(name, version, false);
  if (slot == Slot::count || found == hook(slot).function) return found;
  void* known = real_functions[static_cast<size_t>(slot)].load();
  if (known == nullptr) known = find_real(slot);
  if (known != nullptr && known != found) return found;  // another variant than we think
  remember_real(slot, found);
  return hook(slot).function;
}

template <typename Ask>
CUresult put_in_front(const char* name, void** function, int version, cuuint64_t flags, Ask&& ask) {
  const CUresult result = ask();
  if (result == CUDA_SUCCESS) *function = in_front(name, version, flags, *function);
  return result;
}

}  // namespace

SEALANE_SINGLE(cuGetProcAddress, (const char* name, void** function, int version, cuuint64_t flags),
               put_in_front(name, function, version, flags,
                            [&] { return next(name, function, version, flags); }))
SEALANE_SINGLE(cuGetProcAddress_v2,
               (const char* name, void** function, int version, cuuint64_t flags,
                CUdriverProcAddressQueryResult* status),
               put_in_front(name, function, version, flags,
                            [&] { return next(name, function, version, flags, status); }))
