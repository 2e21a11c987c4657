// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Launches: arguments are copied here, what runs is found when it is submitted.

#include <algorithm>
#include <cstring>

#include "emu/driver/api.h"
#include "emu/driver/code_image.h"
#include "emu/driver/launch.h"

using namespace sealane::emu;
namespace ptx = sealane::ptx;

namespace {

struct Shape {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
};

bool runnable(const Shape& shape) {
  const uint64_t threads = uint64_t{shape.block[0]} * shape.block[1] * shape.block[2];
  const bool grid_ok = shape.grid[0] > 0 && shape.grid[0] <= 0x7fffffff && shape.grid[1] > 0 &&
                       shape.grid[1] <= 65535 && shape.grid[2] > 0 && shape.grid[2] <= 65535;
  return grid_ok && threads > 0 && threads <= 1024 && shape.block[2] <= 64;
}

// CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END
bool read_extra(void** extra, const void*& buffer, size_t& bytes) {
  for (int i = 0; i < 8 && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[i + 1];
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *static_cast<size_t*>(extra[i + 1]);
  }
  return buffer != nullptr;
}

// Parameters of device code lie as its text says.
CUresult make_code_launch(FunctionObject& function, const Shape& shape, void** arguments,
                          void** extra, LaunchOperation& out) {
  const ptx::FunctionText* text = function.module->code->function(function.name);
  auto packed = std::make_shared<std::vector<uint8_t>>();
  const void* buffer = nullptr;
  size_t bytes = 0;
  if (extra != nullptr && read_extra(extra, buffer, bytes)) {
    packed->assign(static_cast<const uint8_t*>(buffer),
                   static_cast<const uint8_t*>(buffer) + bytes);
  }
  size_t end = 0;
  for (size_t i = 0; i < text->parameters.size(); ++i) {
    const ptx::Variable& one = text->parameters[i];
    end = (end + one.align - 1) & ~(one.align - 1);
    if (buffer == nullptr) {
      if (arguments == nullptr || arguments[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      packed->resize(end + one.bytes);
      std::memcpy(packed->data() + end, arguments[i], one.bytes);
    }
    end += one.bytes;
  }
  // A buffer may end before the parameters do: the kernel does not read what it was not given.
  packed->resize(std::max(packed->size(), end));
  out.kernel = function.described;
  if (buffer == nullptr) out.arguments = Arguments::copy(*out.kernel, arguments);
  out.module = function.module->shared_from_this();
  out.parameters = std::move(packed);
  std::copy_n(shape.grid, 3, out.grid);
  std::copy_n(shape.block, 3, out.block);
  out.shared_bytes = shape.shared_bytes;
  return CUDA_SUCCESS;
}

}  // namespace

namespace sealane::emu {

CUresult make_launch(Driver& d, CUfunction handle, const unsigned grid[3], const unsigned block[3],
                     unsigned shared_bytes, void** arguments, void** extra, LaunchOperation& out) {
  const auto function = d.functions.find(handle);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  const Shape shape{{grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, shared_bytes};
  if (!runnable(shape)) return CUDA_ERROR_INVALID_VALUE;
  if (shared_bytes > static_cast<unsigned>(function->dynamic_shared_bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (arguments != nullptr && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  out.function = handle;
  out.kernel = find_registered(function->name);
  if (!out.kernel && function->described) {
    return make_code_launch(*function, shape, arguments, extra, out);
  }
  if (!out.kernel) out.kernel = find_kernel(function->name);
  if (!out.kernel->known && function->module->machine_code && !config()->skip_machine_code) {
    return refuse_machine_code(function->name);
  }
  const void* buffer = nullptr;
  size_t bytes = 0;
  if (extra != nullptr && read_extra(extra, buffer, bytes)) {
    out.arguments = Arguments::copy_packed(*out.kernel, buffer, bytes);
  } else {
    out.arguments = Arguments::copy(*out.kernel, arguments);
  }
  if (out.arguments.count() != out.kernel->argument_bytes.size()) return CUDA_ERROR_INVALID_VALUE;
  std::copy_n(grid, 3, out.grid);
  std::copy_n(block, 3, out.block);
  out.shared_bytes = shared_bytes;
  return CUDA_SUCCESS;
}

}  // namespace sealane::emu

namespace {

CUresult launch(CUstream stream, DefaultStream mode, CUfunction function, const unsigned grid[3],
                const unsigned block[3], unsigned shared_bytes, void** arguments, void** extra,
                bool cooperative = false) {
  return on_stream(stream, mode, [&](Driver& d, ResolvedStream& s) {
    LaunchOperation operation;
    operation.cooperative = cooperative;
    const CUresult made =
        make_launch(d, function, grid, block, shared_bytes, arguments, extra, operation);
    return made == CUDA_SUCCESS ? submit(d, s, std::move(operation), false) : made;
  });
}

// Code for GPUs that had no clusters cannot tell whether its blocks are in one.
bool blind_to_clusters(CUfunction handle) {
  Driver* d = driver();
  const auto function = d != nullptr ? d->functions.find(handle) : nullptr;
  return function && function->module->code && function->module->code->target < 90;
}

CUresult launch_configured(DefaultStream mode, const CUlaunchConfig* c, CUfunction function,
                           void** arguments, void** extra) {
  if (c == nullptr || (c->numAttrs > 0 && c->attrs == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  bool cooperative = false;
  for (unsigned i = 0; i < c->numAttrs; ++i) {
    unsigned values[3];
    std::memcpy(values, &c->attrs[i].value, sizeof values);
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) cooperative = values[0] != 0;
    const bool clusters = c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    if (clusters && !blind_to_clusters(function) &&
        uint64_t{values[0]} * values[1] * values[2] > 1) {
      return unsupported("cuLaunchKernelEx with clusters");
    }
  }
  const unsigned grid[3] = {c->gridDimX, c->gridDimY, c->gridDimZ};
  const unsigned block[3] = {c->blockDimX, c->blockDimY, c->blockDimZ};
  return launch(c->hStream, mode, function, grid, block, c->sharedMemBytes, arguments, extra,
                cooperative);
}

}  // namespace

#define SHAPE                                                                            \
  unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
      unsigned block_z, unsigned shared_bytes

namespace {

CUresult launch_xyz(CUstream stream, DefaultStream mode, CUfunction function, SHAPE,
                    void** arguments, void** extra, bool cooperative = false) {
  const unsigned grid[3] = {grid_x, grid_y, grid_z};
  const unsigned block[3] = {block_x, block_y, block_z};
  return launch(stream, mode, function, grid, block, shared_bytes, arguments, extra, cooperative);
}

}  // namespace

EMU_TWINS(cuLaunchKernel, _ptsz,
          (CUfunction function, SHAPE, CUstream stream, void** arguments, void** extra),
          launch_xyz(stream, mode, function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                     shared_bytes, arguments, extra))
EMU_TWINS(cuLaunchCooperativeKernel, _ptsz,
          (CUfunction function, SHAPE, CUstream stream, void** arguments),
          launch_xyz(stream, mode, function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                     shared_bytes, arguments, nullptr, true))
EMU_TWINS(cuLaunchKernelEx, _ptsz,
          (const CUlaunchConfig* c, CUfunction function, void** arguments, void** extra),
          launch_configured(mode, c, function, arguments, extra))
#undef SHAPE
