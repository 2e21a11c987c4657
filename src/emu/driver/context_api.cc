// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Contexts: created and primary ones, the stack of each thread.

#include "emu/driver/api.h"
#include "emu/driver/thread_state.h"

using namespace sealane::emu;

namespace {

// In CC mode a machine has room for so many contexts and no more.
bool room_for_context(Driver& d) {
  return !config()->cc || d.contexts.size() < config()->contexts_max;
}

CUresult make_context(Driver& d, Gpu& gpu, unsigned flags, std::shared_ptr<Context>& out) {
  if ((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!room_for_context(d)) return CUDA_ERROR_OUT_OF_MEMORY;
  out = Context::create(gpu, flags);
  return out ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

void end_context(Driver& d, const std::shared_ptr<Context>& context) {
  context->close();
  leave_captures(d, *context);
  d.streams.remove_if([&](const StreamObject& s) { return s.context == context; });
  d.events.remove_if([&](const EventObject& e) { return e.context == context; });
  d.arrays.remove_if([&](const ArrayObject& a) { return a.owner == context->id(); });
  context->gpu().memory.release_owned(context->id());
  d.host.release_owned(context->id());
}

CUresult push(CUcontext context) {
  ThreadState& state = thread_state();
  if (state.depth == ThreadState::kDepthMax) return CUDA_ERROR_OUT_OF_MEMORY;
  state.stack[state.depth++] = context;
  return CUDA_SUCCESS;
}

CUresult create(CUcontext* out, unsigned flags, CUdevice device) {
  return guarded([&](Driver& d) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Gpu* gpu = d.gpu_at(device);
    if (gpu == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    std::shared_ptr<Context> context;
    const CUresult made = make_context(d, *gpu, flags, context);
    if (made != CUDA_SUCCESS) return made;
    *out = d.contexts.add(std::move(context));
    return push(*out);
  });
}

// work(Driver&, PrimaryContext&, Gpu&) under the lock.
template <typename Work>
CUresult with_primary(CUdevice device, Work&& work) {
  return guarded([&](Driver& d) {
    Gpu* gpu = d.gpu_at(device);
    if (gpu == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const std::lock_guard lock(d.primary_mutex);
    return work(d, d.primaries[static_cast<size_t>(device)], *gpu);
  });
}

void end_primary(Driver& d, PrimaryContext& primary) {
  if (!primary.context) return;
  d.contexts.remove(primary.handle);
  end_context(d, primary.context);
  primary.context = nullptr;
  primary.handle = nullptr;
}

// work(Context&) of a handle, or of the current context for nullptr.
template <typename Work>
CUresult with_context(CUcontext handle, Work&& work) {
  return guarded([&](Driver& d) {
    const auto context = handle != nullptr ? d.contexts.find(handle) : current_context(d);
    return context ? work(*context) : CUDA_ERROR_INVALID_CONTEXT;
  });
}

CUresult synchronise(Driver& d, Context& context) {
  const CUresult allowed = allow_synchronising(d, nullptr);
  if (allowed != CUDA_SUCCESS) return allowed;
  ++counters().synchronisations;
  d.host.refresh();  // a kernel may wait for what the host wrote
  context.synchronise();
  d.host.refresh();
  return context.failure();
}

}  // namespace

EMU_API cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  return create(context, flags, device);
}

EMU_API cuCtxCreate_v3(CUcontext* context, void* affinity, int affinity_count, unsigned flags,
                       CUdevice device) {
  if (affinity != nullptr || affinity_count != 0) return CUDA_ERROR_NOT_SUPPORTED;
  return create(context, flags, device);
}

EMU_API cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params, unsigned flags,
                       CUdevice device) {
  if (params != nullptr && (params->numExecAffinityParams != 0 || params->cigParams != nullptr)) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return create(context, flags, device);
}

EMU_API cuCtxDestroy_v2(CUcontext handle) {
  return guarded([&](Driver& d) {
    {
      const std::lock_guard lock(d.primary_mutex);
      for (const PrimaryContext& primary : d.primaries) {
        if (primary.handle == handle && handle != nullptr) return CUDA_ERROR_INVALID_CONTEXT;
      }
    }
    const auto context = d.contexts.remove(handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    end_context(d, context);
    ThreadState& state = thread_state();
    if (state.depth > 0 && state.stack[state.depth - 1] == handle) --state.depth;
    return CUDA_SUCCESS;
  });
}

EMU_API cuCtxPushCurrent_v2(CUcontext handle) {
  return guarded([&](Driver& d) {
    return d.contexts.find(handle) ? push(handle) : CUDA_ERROR_INVALID_CONTEXT;
  });
}

EMU_API cuCtxPopCurrent_v2(CUcontext* handle) {
  return guarded([&](Driver&) {
    ThreadState& state = thread_state();
    if (state.depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
    --state.depth;
    if (handle != nullptr) *handle = state.stack[state.depth];
    return CUDA_SUCCESS;
  });
}

EMU_API cuCtxSetCurrent(CUcontext handle) {
  return guarded([&](Driver& d) {
    ThreadState& state = thread_state();
    if (handle != nullptr && !d.contexts.find(handle)) return CUDA_ERROR_INVALID_CONTEXT;
    if (state.depth > 0) --state.depth;
    return handle == nullptr ? CUDA_SUCCESS : push(handle);
  });
}

EMU_API cuCtxGetCurrent(CUcontext* handle) {
  return guarded([&](Driver&) {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const ThreadState& state = thread_state();
    *handle = state.depth == 0 ? nullptr : state.stack[state.depth - 1];
    return CUDA_SUCCESS;
  });
}

EMU_API cuCtxGetDevice(CUdevice* device) {
  return with_context(nullptr, [&](Context& context) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = context.gpu().ordinal;
    return CUDA_SUCCESS;
  });
}

EMU_API cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
  return with_context(handle, [&](Context& context) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = context.gpu().ordinal;
    return CUDA_SUCCESS;
  });
}

EMU_API cuCtxGetFlags(unsigned* flags) {
  return with_context(nullptr, [&](Context& context) {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = context.flags();
    return CUDA_SUCCESS;
  });
}

EMU_API cuCtxSetFlags(unsigned flags) {
  return with_context(nullptr, [&](Context& context) {
    if ((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0) return CUDA_ERROR_INVALID_VALUE;
    context.set_flags(flags);
    return CUDA_SUCCESS;
  });
}

EMU_API cuCtxGetId(CUcontext handle, unsigned long long* id) {
  return with_context(handle, [&](Context& context) {
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *id = context.id();
    return CUDA_SUCCESS;
  });
}

EMU_API cuCtxGetApiVersion(CUcontext handle, unsigned* version) {
  return with_context(handle, [&](Context&) {
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = 3020;
    return CUDA_SUCCESS;
  });
}

EMU_API cuCtxGetLimit(size_t* value, CUlimit limit) {
  return with_context(nullptr, [&](Context&) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    switch (limit) {
      case CU_LIMIT_STACK_SIZE:
        *value = 1024;
        return CUDA_SUCCESS;
      case CU_LIMIT_PRINTF_FIFO_SIZE:
      case CU_LIMIT_MALLOC_HEAP_SIZE:
        *value = 8 << 20;
        return CUDA_SUCCESS;
      default:
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    }
  });
}

EMU_API cuCtxSetLimit(CUlimit limit, size_t) {
  // Our kernels are host functions: these limits have nothing to limit.
  return with_context(nullptr, [&](Context&) {
    return limit <= CU_LIMIT_MALLOC_HEAP_SIZE ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT;
  });
}

EMU_API cuCtxGetCacheConfig(CUfunc_cache* config_out) {
  return with_context(nullptr, [&](Context&) {
    if (config_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *config_out = CU_FUNC_CACHE_PREFER_NONE;
    return CUDA_SUCCESS;
  });
}

EMU_API cuCtxSetCacheConfig(CUfunc_cache) {
  return with_context(nullptr, [](Context&) { return CUDA_SUCCESS; });
}

EMU_API cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return with_context(nullptr, [&](Context&) {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
    return CUDA_SUCCESS;
  });
}

EMU_API cuCtxSynchronize() {
  return in_context([](Driver& d, Context& context) { return synchronise(d, context); });
}

EMU_API cuCtxSynchronize_v2(CUcontext handle) {
  return guarded([&](Driver& d) {
    const auto context = handle != nullptr ? d.contexts.find(handle) : current_context(d);
    return context ? synchronise(d, *context) : CUDA_ERROR_INVALID_CONTEXT;
  });
}

EMU_API cuCtxEnablePeerAccess(CUcontext handle, unsigned flags) {
  return in_context([&](Driver& d, Context& context) {
    const auto peer = d.contexts.find(handle);
    if (!peer) return CUDA_ERROR_INVALID_CONTEXT;
    return flags == 0 ? context.enable_peer(*peer) : CUDA_ERROR_INVALID_VALUE;
  });
}

EMU_API cuCtxDisablePeerAccess(CUcontext handle) {
  return in_context([&](Driver& d, Context& context) {
    const auto peer = d.contexts.find(handle);
    return peer ? context.disable_peer(*peer) : CUDA_ERROR_INVALID_CONTEXT;
  });
}

EMU_API cuDevicePrimaryCtxRetain(CUcontext* handle, CUdevice device) {
  return with_primary(device, [&](Driver& d, PrimaryContext& primary, Gpu& gpu) {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!primary.context) {
      const CUresult made = make_context(d, gpu, primary.flags, primary.context);
      if (made != CUDA_SUCCESS) return made;
      primary.handle = d.contexts.add(primary.context);
    }
    ++primary.users;
    *handle = primary.handle;
    return CUDA_SUCCESS;
  });
}

EMU_API cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return with_primary(device, [&](Driver& d, PrimaryContext& primary, Gpu&) {
    if (primary.users == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--primary.users == 0) end_primary(d, primary);
    return CUDA_SUCCESS;
  });
}

EMU_API cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return with_primary(device, [&](Driver& d, PrimaryContext& primary, Gpu&) {
    end_primary(d, primary);
    primary.users = 0;
    return CUDA_SUCCESS;
  });
}

EMU_API cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  return with_primary(device, [&](Driver&, PrimaryContext& primary, Gpu&) {
    if ((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0) return CUDA_ERROR_INVALID_VALUE;
    primary.flags = flags;
    if (primary.context) primary.context->set_flags(flags);
    return CUDA_SUCCESS;
  });
}

EMU_API cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return with_primary(device, [&](Driver&, PrimaryContext& primary, Gpu&) {
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = primary.flags;
    *active = primary.context ? 1 : 0;
    return CUDA_SUCCESS;
  });
}
