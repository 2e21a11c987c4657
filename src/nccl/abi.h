// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// NCCL's network plugin interface, versions 8 to 12, in our own words: the layout of what NCCL 2.20
// and later hand to and expect of a libnccl-net-NAME.so. A plugin exports one table per version,
// `ncclNetPlugin_v8` …; NCCL takes the newest it knows. tests/nccl/abi_test.cc compares sizes and
// offsets with NCCL's own headers where a machine has them.
//
// Device offload (the last argument of connect and accept, getDeviceMr, irecvConsumed) is not used
// by a plugin that works on host memory; its types are opaque here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sealane::nccl {

enum Code : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

enum LogLevel : int {
  kLogNone = 0,
  kLogVersion = 1,
  kLogWarn = 2,
  kLogInfo = 3,
  kLogAbort = 4,
  kLogTrace = 5
};
constexpr unsigned long kLogInit = 0x1;
constexpr unsigned long kLogNet = 0x10;

// level, subsystem flags, function, line, printf format
using Logger = void (*)(int, unsigned long, const char*, int, const char*, ...);
using Profiler = Code (*)(void**, int, void*, int64_t, void*);

constexpr size_t kHandleBytes = 128;
constexpr int kRequestsMax = 32;  // that NCCL keeps under way on one connection
constexpr int kPointerHost = 1;
constexpr int kPointerCuda = 2;
constexpr int kPointerDmaBuf = 4;
constexpr size_t kBytesMax = size_t{1} << 40;
constexpr int kDeviceHost = 0;  // no network offload

struct CommConfig {
  int trafficClass;
};

template <int Devices>
struct VirtualDevice {
  int ndevs;
  int devs[Devices];
};

struct PropertiesV8 {
  char* name;
  char* pciPath;
  uint64_t guid;
  int ptrSupport;
  int regIsGlobal;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  int netDeviceType;
  int netDeviceVersion;
};

struct PropertiesV9 {  // and 10
  char* name;
  char* pciPath;
  uint64_t guid;
  int ptrSupport;
  int regIsGlobal;
  int forceFlush;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  int netDeviceType;
  int netDeviceVersion;
  VirtualDevice<4> vProps;
  size_t maxP2pBytes;
  size_t maxCollBytes;
};

struct PropertiesV11 {
  char* name;
  char* pciPath;
  uint64_t guid;
  int ptrSupport;
  int regIsGlobal;
  int forceFlush;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  int netDeviceType;
  int netDeviceVersion;
  VirtualDevice<4> vProps;
  size_t maxP2pBytes;
  size_t maxCollBytes;
  int maxMultiRequestSize;
};

struct PropertiesV12 {
  char* name;
  char* pciPath;
  uint64_t guid;
  int ptrSupport;
  int regIsGlobal;
  int forceFlush;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  int netDeviceType;
  int netDeviceVersion;
  VirtualDevice<8> vProps;
  size_t maxP2pBytes;
  size_t maxCollBytes;
  int maxMultiRequestSize;
  int16_t railId;
  int16_t planeId;
};

struct NetV8 {
  const char* name;
  Code (*init)(Logger);
  Code (*devices)(int* count);
  Code (*getProperties)(int device, PropertiesV8*);
  Code (*listen)(int device, void* handle, void** listen_comm);
  Code (*connect)(int device, void* handle, void** send_comm, void** device_comm);
  Code (*accept)(void* listen_comm, void** receive_comm, void** device_comm);
  Code (*regMr)(void* comm, void* data, size_t size, int type, void** memory);
  Code (*regMrDmaBuf)(void* comm, void* data, size_t size, int type, uint64_t offset, int fd,
                      void** memory);
  Code (*deregMr)(void* comm, void* memory);
  Code (*isend)(void* comm, void* data, int size, int tag, void* memory, void** request);
  Code (*irecv)(void* comm, int n, void** data, int* sizes, int* tags, void** memory,
                void** request);
  Code (*iflush)(void* comm, int n, void** data, int* sizes, void** memory, void** request);
  Code (*test)(void* request, int* done, int* sizes);
  Code (*closeSend)(void* comm);
  Code (*closeRecv)(void* comm);
  Code (*closeListen)(void* comm);
  Code (*getDeviceMr)(void* comm, void* memory, void** device_memory);
  Code (*irecvConsumed)(void* comm, int n, void* request);
};

struct NetV9 {
  const char* name;
  Code (*init)(Logger);
  Code (*devices)(int* count);
  Code (*getProperties)(int device, PropertiesV9*);
  Code (*listen)(int device, void* handle, void** listen_comm);
  Code (*connect)(int device, void* handle, void** send_comm, void** device_comm);
  Code (*accept)(void* listen_comm, void** receive_comm, void** device_comm);
  Code (*regMr)(void* comm, void* data, size_t size, int type, void** memory);
  Code (*regMrDmaBuf)(void* comm, void* data, size_t size, int type, uint64_t offset, int fd,
                      void** memory);
  Code (*deregMr)(void* comm, void* memory);
  Code (*isend)(void* comm, void* data, size_t size, int tag, void* memory, void** request);
  Code (*irecv)(void* comm, int n, void** data, size_t* sizes, int* tags, void** memory,
                void** request);
  Code (*iflush)(void* comm, int n, void** data, int* sizes, void** memory, void** request);
  Code (*test)(void* request, int* done, int* sizes);
  Code (*closeSend)(void* comm);
  Code (*closeRecv)(void* comm);
  Code (*closeListen)(void* comm);
  Code (*getDeviceMr)(void* comm, void* memory, void** device_memory);
  Code (*irecvConsumed)(void* comm, int n, void* request);
  Code (*makeVDevice)(int* device, VirtualDevice<4>*);
};

struct NetV10 {
  const char* name;
  Code (*init)(Logger, Profiler);
  Code (*devices)(int* count);
  Code (*getProperties)(int device, PropertiesV9*);
  Code (*listen)(int device, void* handle, void** listen_comm);
  Code (*connect)(int device, CommConfig*, void* handle, void** send_comm, void** device_comm);
  Code (*accept)(void* listen_comm, void** receive_comm, void** device_comm);
  Code (*regMr)(void* comm, void* data, size_t size, int type, void** memory);
  Code (*regMrDmaBuf)(void* comm, void* data, size_t size, int type, uint64_t offset, int fd,
                      void** memory);
  Code (*deregMr)(void* comm, void* memory);
  Code (*isend)(void* comm, void* data, size_t size, int tag, void* memory, void* profile,
                void** request);
  Code (*irecv)(void* comm, int n, void** data, size_t* sizes, int* tags, void** memory,
                void** profile, void** request);
  Code (*iflush)(void* comm, int n, void** data, int* sizes, void** memory, void** request);
  Code (*test)(void* request, int* done, int* sizes);
  Code (*closeSend)(void* comm);
  Code (*closeRecv)(void* comm);
  Code (*closeListen)(void* comm);
  Code (*getDeviceMr)(void* comm, void* memory, void** device_memory);
  Code (*irecvConsumed)(void* comm, int n, void* request);
  Code (*makeVDevice)(int* device, VirtualDevice<4>*);
};

// From here on there is a context per communicator.
template <typename Properties, int Devices>
struct NetWithContext {
  const char* name;
  Code (*init)(void** context, uint64_t communicator, CommConfig*, Logger, Profiler);
  Code (*devices)(int* count);
  Code (*getProperties)(int device, Properties*);
  Code (*listen)(void* context, int device, void* handle, void** listen_comm);
  Code (*connect)(void* context, int device, void* handle, void** send_comm, void** device_comm);
  Code (*accept)(void* listen_comm, void** receive_comm, void** device_comm);
  Code (*regMr)(void* comm, void* data, size_t size, int type, void** memory);
  Code (*regMrDmaBuf)(void* comm, void* data, size_t size, int type, uint64_t offset, int fd,
                      void** memory);
  Code (*deregMr)(void* comm, void* memory);
  Code (*isend)(void* comm, void* data, size_t size, int tag, void* memory, void* profile,
                void** request);
  Code (*irecv)(void* comm, int n, void** data, size_t* sizes, int* tags, void** memory,
                void** profile, void** request);
  Code (*iflush)(void* comm, int n, void** data, int* sizes, void** memory, void** request);
  Code (*test)(void* request, int* done, int* sizes);
  Code (*closeSend)(void* comm);
  Code (*closeRecv)(void* comm);
  Code (*closeListen)(void* comm);
  Code (*getDeviceMr)(void* comm, void* memory, void** device_memory);
  Code (*irecvConsumed)(void* comm, int n, void* request);
  Code (*makeVDevice)(int* device, VirtualDevice<Devices>*);
  Code (*finalize)(void* context);
  Code (*setNetAttr)(void* context, void* attributes);
};
using NetV11 = NetWithContext<PropertiesV11, 4>;
using NetV12 = NetWithContext<PropertiesV12, 8>;

}  // namespace sealane::nccl
