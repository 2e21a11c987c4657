// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One table per version of NCCL's interface. The newest is the plugin's own shape; the older ones
// differ by arguments and properties, and by nothing else.

#include <algorithm>
#include <array>
#include <cstddef>

#include "plugin.h"

#define SEALANE_EXPORT extern "C" [[gnu::visibility("default")]]

namespace sealane::nccl {
namespace {

constexpr int kCommsMax = 65536;

template <typename Properties>
Code fill_common(int device, Properties* out) {
  if (out == nullptr) return kInvalidArgument;
  *out = {};
  DeviceFacts facts{};
  if (const Code code = describe(device, &facts); code != kSuccess) return code;
  out->name = facts.name;
  out->pciPath = facts.pci_path;
  out->guid = facts.guid;
  out->ptrSupport = facts.pointers;
  out->regIsGlobal = 1;
  out->speed = facts.speed;
  out->port = 0;
  out->latency = 0;
  out->maxComms = kCommsMax;
  out->maxRecvs = 1;
  out->netDeviceType = kDeviceHost;
  out->netDeviceVersion = 0;
  return kSuccess;
}

template <typename Properties>
Code properties(int device, Properties* out) {
  const Code code = fill_common(device, out);
  if constexpr (requires { out->vProps; }) {
    if (code == kSuccess) {
      out->vProps.ndevs = 1;
      out->vProps.devs[0] = device;
      out->maxP2pBytes = kBytesMax;
      out->maxCollBytes = kBytesMax;
    }
  }
  if constexpr (requires { out->maxMultiRequestSize; }) {
    if (code == kSuccess) out->maxMultiRequestSize = 1;
  }
  if constexpr (requires { out->railId; }) {
    if (code == kSuccess) out->railId = out->planeId = -1;
  }
  return code;
}

Code init_old(Logger logger) { return start(logger); }
Code init_v10(Logger logger, Profiler) { return start(logger); }

Code init_context(void** context, uint64_t communicator, CommConfig*, Logger logger, Profiler) {
  return start(logger, communicator, context);
}
Code finalize(void* context) { return stop(context); }
Code set_attributes(void*, void*) { return kSuccess; }

Code listen_old(int device, void* handle, void** comm) {
  return open_listener(nullptr, device, handle, comm);
}
Code listen_context(void* context, int device, void* handle, void** comm) {
  return open_listener(context, device, handle, comm);
}

Code connect_context(void* context, int, void* handle, void** comm, void** offload) {
  if (offload != nullptr) *offload = nullptr;
  return open_sender(context, handle, comm);
}
Code connect_old(int device, void* handle, void** comm, void** offload) {
  return connect_context(nullptr, device, handle, comm, offload);
}
Code connect_v10(int device, CommConfig*, void* handle, void** comm, void** offload) {
  return connect_old(device, handle, comm, offload);
}
Code accept(void* listen_comm, void** comm, void** offload) {
  if (offload != nullptr) *offload = nullptr;
  return open_receiver(listen_comm, comm);
}

Code register_dma(void*, void*, size_t, int, uint64_t, int, void**) { return kInvalidUsage; }

Code send_v8(void* comm, void* data, int size, int, void* memory, void** request) {
  if (size < 0) return kInvalidArgument;
  return send(comm, data, static_cast<size_t>(size), memory, request);
}
Code send_v9(void* comm, void* data, size_t size, int, void* memory, void** request) {
  return send(comm, data, size, memory, request);
}
Code send_v10(void* comm, void* data, size_t size, int, void* memory, void*, void** request) {
  return send(comm, data, size, memory, request);
}

Code receive_v8(void* comm, int n, void** data, int* sizes, int*, void** memory, void** request) {
  if (n != 1 || sizes == nullptr || sizes[0] < 0) return kInvalidArgument;
  const auto size = static_cast<size_t>(sizes[0]);
  return receive(comm, n, data, &size, memory, request);
}
Code receive_v9(void* comm, int n, void** data, size_t* sizes, int*, void** memory,
                void** request) {
  if (sizes == nullptr) return kInvalidArgument;
  return receive(comm, n, data, sizes, memory, request);
}
Code receive_v10(void* comm, int n, void** data, size_t* sizes, int*, void** memory, void**,
                 void** request) {
  if (sizes == nullptr) return kInvalidArgument;
  return receive(comm, n, data, sizes, memory, request);
}
Code flush_any(void*, int, void**, int*, void**, void** request) { return flush(request); }

// Device offload is not ours. A null pointer says so: NCCL asks whom there is to ask, and takes a
// refusal for the end of its communicator.
constexpr std::nullptr_t no_device_memory = nullptr;
constexpr std::nullptr_t no_consumer = nullptr;
template <int Devices>
Code no_virtual_device(int*, VirtualDevice<Devices>*) {
  return kInvalidUsage;
}

template <typename Net, typename Properties, int Devices>
constexpr Net with_context() {
  return {kPluginName,    init_context,
          count_devices,  properties<Properties>,
          listen_context, connect_context,
          accept,         register_memory,
          register_dma,   release_memory,
          send_v10,       receive_v10,
          flush_any,      test,
          close_sender,   close_receiver,
          close_listener, no_device_memory,
          no_consumer,    no_virtual_device<Devices>,
          finalize,       set_attributes};
}

}  // namespace
}  // namespace sealane::nccl

using namespace sealane::nccl;  // NOLINT: this file is nothing else

SEALANE_EXPORT const NetV12 ncclNetPlugin_v12;
SEALANE_EXPORT const NetV11 ncclNetPlugin_v11;
SEALANE_EXPORT const NetV10 ncclNetPlugin_v10;
SEALANE_EXPORT const NetV9 ncclNetPlugin_v9;
SEALANE_EXPORT const NetV8 ncclNetPlugin_v8;

const NetV12 ncclNetPlugin_v12 = with_context<NetV12, PropertiesV12, 8>();
const NetV11 ncclNetPlugin_v11 = with_context<NetV11, PropertiesV11, 4>();
const NetV10 ncclNetPlugin_v10 = {kPluginName,    init_v10,
                                  count_devices,  properties<PropertiesV9>,
                                  listen_old,     connect_v10,
                                  accept,         register_memory,
                                  register_dma,   release_memory,
                                  send_v10,       receive_v10,
                                  flush_any,      test,
                                  close_sender,   close_receiver,
                                  close_listener, no_device_memory,
                                  no_consumer,    no_virtual_device<4>};
const NetV9 ncclNetPlugin_v9 = {kPluginName,    init_old,
                                count_devices,  properties<PropertiesV9>,
                                listen_old,     connect_old,
                                accept,         register_memory,
                                register_dma,   release_memory,
                                send_v9,        receive_v9,
                                flush_any,      test,
                                close_sender,   close_receiver,
                                close_listener, no_device_memory,
                                no_consumer,    no_virtual_device<4>};
const NetV8 ncclNetPlugin_v8 = {kPluginName,    init_old,
                                count_devices,  properties<PropertiesV8>,
                                listen_old,     connect_old,
                                accept,         register_memory,
                                register_dma,   release_memory,
                                send_v8,        receive_v8,
                                flush_any,      test,
                                close_sender,   close_receiver,
                                close_listener, no_device_memory,
                                no_consumer};
