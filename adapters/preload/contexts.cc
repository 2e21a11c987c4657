// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The driver's start, its contexts, and cuGetProcAddress, through which most programs find it.

#include "hooks.h"
#include "start.h"

using namespace sealane::preload;
namespace serve = sealane::serve;

SEALANE_HOOKED(cuInit)(unsigned flags) try {
  const auto next = SEALANE_REAL(cuInit);
  if (next == nullptr) return CUDA_ERROR_NO_DEVICE;
  const CUresult result = next(flags);
  if (result == CUDA_SUCCESS) driver_is_up();
  return result;
}
SEALANE_UNTHROWN(cuInit)

namespace {

// There are few contexts in CC mode, and the program's come first.
template <typename Create>
CUresult create_context(Create&& create) {
  const CUresult result = create();
  serve::Runtime* runtime = serve::Runtime::get();
  if (result != CUDA_ERROR_OUT_OF_MEMORY || runtime == nullptr) return result;
  return runtime->give_up_contexts() ? create() : result;
}

void ended(serve::Runtime& runtime, CUcontext context, bool gone) {
  gone ? runtime.forget_context(handle(context)) : runtime.stay_in_context(handle(context));
}

// A context ends: nothing of ours may still be under way in it.
template <typename End>
CUresult end_context(CUcontext context, End&& end) {
  serve::Runtime* runtime = serve::Runtime::get();
  if (runtime == nullptr) return end();
  runtime->leave_context(handle(context));
  forget_launch_times();
  const CUresult result =
      told(serve::EventKind::call, "cuCtxDestroy", nullptr, end, [&](serve::Event& event) {
        event.call = serve::Call::destroy_context;
        event.context = reinterpret_cast<uint64_t>(context);
      });
  ended(*runtime, context, result == CUDA_SUCCESS);
  return result;
}

template <typename End>
CUresult end_primary(CUdevice device, End&& end) {
  serve::Runtime* runtime = serve::Runtime::get();
  if (runtime == nullptr) return end();
  const CUcontext before = primary_context(device);
  runtime->leave_context(handle(before));
  forget_launch_times();
  const CUresult result = end();
  if (before != nullptr) ended(*runtime, before, primary_context(device) == nullptr);
  return result;
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
CREATE(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), (context, device))

#define END(symbol) \
  SEALANE_SINGLE(symbol, (CUcontext context), end_context(context, [&] { return next(context); }))
#define END_PRIMARY(symbol) \
  SEALANE_SINGLE(symbol, (CUdevice device), end_primary(device, [&] { return next(device); }))
END(cuCtxDestroy)
END(cuCtxDestroy_v2)
END(cuCtxDetach)
END_PRIMARY(cuDevicePrimaryCtxRelease)
END_PRIMARY(cuDevicePrimaryCtxRelease_v2)
END_PRIMARY(cuDevicePrimaryCtxReset)
END_PRIMARY(cuDevicePrimaryCtxReset_v2)

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
