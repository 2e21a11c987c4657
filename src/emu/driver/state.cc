// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <sys/mman.h>

#include <atomic>
#include <cstdio>

#include "emu/driver/api.h"
#include "emu/driver/thread_state.h"

namespace sealane::emu {
namespace {

std::atomic<Driver*> the_driver{nullptr};

// A byte that is 1 here and 0 in the child of a fork: device threads do not survive one.
volatile uint8_t* make_here() {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || madvise(page, 4096, MADV_WIPEONFORK) != 0) return nullptr;
  auto* here = static_cast<volatile uint8_t*>(page);
  *here = 1;
  return here;
}
std::atomic<volatile uint8_t*> here{nullptr};

CUresult add_gpus(Driver& made) {
  for (const int index : config()->visible) {
    const int ordinal = static_cast<int>(made.gpus.size());
    auto memory = DeviceMemory::create(config()->memory_bytes);
    if (!memory) {
      std::fprintf(stderr, "sealane emulated GPU: %s\n", memory.error().message.c_str());
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    (*memory)->look_beyond(made.virtual_memory);
    made.gpus.push_back(std::make_unique<Gpu>(ordinal, index, std::move(*memory)));
    auto pool = std::make_shared<PoolObject>();
    pool->gpu = made.gpus.back().get();
    pool->is_default = true;
    made.default_pools.push_back(made.pools.add(std::move(pool)));
  }
  made.current_pools = made.default_pools;
  made.primaries.resize(made.gpus.size());
  return CUDA_SUCCESS;
}

CUresult start_once() {
  const Config* current = config();
  if (current == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (current->visible.empty()) return CUDA_ERROR_NO_DEVICE;
  if (!load_kernel_libraries(current->kernels)) return CUDA_ERROR_FILE_NOT_FOUND;
  counters();
  auto* made = new Driver;  // never deleted: programs call from exit handlers
  const CUresult added = add_gpus(*made);
  if (added != CUDA_SUCCESS) return added;
  here.store(make_here());
  the_driver.store(made);
  return CUDA_SUCCESS;
}

// Truth counters are written when everything has run, exit handlers of the program included. This
// is no destructor: nothing is torn down.
__attribute__((destructor)) void at_end() {
  if (driver() != nullptr) write_counters();
}

}  // namespace

Driver* driver() {
  Driver* made = the_driver.load(std::memory_order_acquire);
  const volatile uint8_t* mark = here.load(std::memory_order_relaxed);
  return made != nullptr && (mark == nullptr || *mark == 1) ? made : nullptr;
}

CUresult start_driver() {
  static const CUresult result = start_once();
  if (result != CUDA_SUCCESS) return result;
  return driver() != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

std::shared_ptr<Context> current_context(Driver& d) {
  const ThreadState& state = thread_state();
  return state.depth == 0 ? nullptr : d.contexts.find(state.stack[state.depth - 1]);
}

CUresult resolve_stream(Driver& d, CUstream handle, DefaultStream mode, ResolvedStream& out) {
  const bool named =
      handle != nullptr && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD;
  if (named) {
    out.object = d.streams.find(handle);
    if (!out.object) return CUDA_ERROR_INVALID_HANDLE;
    out.context = out.object->context;
    out.stream = out.object->stream;
  } else {
    out.context = current_context(d);
    if (!out.context) return CUDA_ERROR_INVALID_CONTEXT;
    const bool mine =
        handle == CU_STREAM_PER_THREAD || (handle == nullptr && mode == DefaultStream::per_thread);
    out.stream = mine ? out.context->per_thread() : out.context->legacy();
  }
  return out.context->failure();
}

CUresult finish(Context& context, const Fence& fence) {
  fence.wait();
  return context.failure();
}

CUresult unsupported(const char* name) {
  std::fprintf(stderr, "sealane emulated GPU: %s is not supported (said once)\n", name);
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace sealane::emu
