// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "nccl/plugin_table.h"

#include <dlfcn.h>

#include <cstring>
#include <type_traits>

#include "base/text.h"

namespace sealane::nccl {
namespace {

template <typename Net>
constexpr bool kHasContext = std::is_same_v<Net, NetV11> || std::is_same_v<Net, NetV12>;

template <typename Net>
constexpr bool kHasProfile = std::is_same_v<Net, NetV10> || kHasContext<Net>;

// The pointers of a table behind its name, in order.
template <typename Net>
constexpr size_t kFunctions = sizeof(Net) / sizeof(void*) - 1;

}  // namespace

std::string_view code_name(Code code) {
  switch (code) {
    case kSuccess:
      return "ncclSuccess";
    case kUnhandledCudaError:
      return "ncclUnhandledCudaError";
    case kSystemError:
      return "ncclSystemError";
    case kInternalError:
      return "ncclInternalError";
    case kInvalidArgument:
      return "ncclInvalidArgument";
    case kInvalidUsage:
      return "ncclInvalidUsage";
    case kRemoteError:
      return "ncclRemoteError";
    case kInProgress:
      return "ncclInProgress";
  }
  return "an unknown code";
}

template <typename Body>
auto PluginTable::with(Body body) const {
  switch (version_) {
    case 8:
      return body(*static_cast<const NetV8*>(table_));
    case 9:
      return body(*static_cast<const NetV9*>(table_));
    case 10:
      return body(*static_cast<const NetV10*>(table_));
    case 11:
      return body(*static_cast<const NetV11*>(table_));
    default:
      return body(*static_cast<const NetV12*>(table_));
  }
}

Result<std::unique_ptr<PluginTable>> PluginTable::load(const std::string& path, int version) {
  if (version != 0 && (version < kOldest || version > kNewest)) {
    return usage_error(concat("version ", version, " of NCCL's interface is not played; there are ",
                              kOldest, " to ", kNewest));
  }
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return usage_error(concat("cannot load the plugin: ", dlerror()));
  for (int candidate = kNewest; candidate >= kOldest; --candidate) {
    if (version != 0 && candidate != version) continue;
    const void* table = dlsym(library, concat("ncclNetPlugin_v", candidate).c_str());
    if (table != nullptr) {
      return std::unique_ptr<PluginTable>(new PluginTable(library, table, candidate));
    }
  }
  dlclose(library);
  return usage_error(version == 0 ? concat(path, " has no ncclNetPlugin_v", kOldest, " or later")
                                  : concat(path, " has no ncclNetPlugin_v", version));
}

// A plugin's threads may still be ending: it stays loaded, as under NCCL.
PluginTable::~PluginTable() = default;

const char* PluginTable::name() const {
  return with([](const auto& net) { return net.name; });
}

std::optional<std::string> PluginTable::missing() const {
  return with([](const auto& net) -> std::optional<std::string> {
    using Net = std::decay_t<decltype(net)>;
    // What NCCL calls without looking; the rest may be null where it has no use.
    constexpr size_t kAlways = 16;
    std::array<void*, kFunctions<Net> + 1> pointers;
    std::memcpy(pointers.data(), &net, sizeof net);
    constexpr std::array<const char*, kAlways + 1> kNames = {
        "name",   "init",  "devices",     "getProperties", "listen",     "connect",
        "accept", "regMr", "regMrDmaBuf", "deregMr",       "isend",      "irecv",
        "iflush", "test",  "closeSend",   "closeRecv",     "closeListen"};
    for (size_t i = 0; i < kNames.size(); ++i) {
      if (pointers[i] == nullptr && i != 8) return kNames[i];
    }
    return std::nullopt;
  });
}

Code PluginTable::init(void** context, uint64_t communicator, Logger logger) const {
  *context = nullptr;
  return with([&](const auto& net) {
    using Net = std::decay_t<decltype(net)>;
    if constexpr (kHasContext<Net>) {
      CommConfig config{-1};
      return net.init(context, communicator, &config, logger, nullptr);
    } else if constexpr (kHasProfile<Net>) {
      return net.init(logger, nullptr);
    } else {
      return net.init(logger);
    }
  });
}

Code PluginTable::finalize(void* context) const {
  return with([&](const auto& net) {
    if constexpr (kHasContext<std::decay_t<decltype(net)>>) return net.finalize(context);
    return kSuccess;
  });
}

Code PluginTable::devices(int* count) const {
  return with([&](const auto& net) { return net.devices(count); });
}

Code PluginTable::properties(int device, DeviceProperties* out) const {
  const auto read = [&](auto properties, const auto& net) {
    const Code code = net.getProperties(device, &properties);
    if (code != kSuccess) return code;
    out->name = properties.name == nullptr ? "" : properties.name;
    out->pointer_support = properties.ptrSupport;
    out->receives_max = properties.maxRecvs;
    if constexpr (requires { properties.maxP2pBytes; }) out->bytes_max = properties.maxP2pBytes;
    return code;
  };
  switch (version_) {
    case 8:
      return read(PropertiesV8{}, *static_cast<const NetV8*>(table_));
    case 9:
      return read(PropertiesV9{}, *static_cast<const NetV9*>(table_));
    case 10:
      return read(PropertiesV9{}, *static_cast<const NetV10*>(table_));
    case 11:
      return read(PropertiesV11{}, *static_cast<const NetV11*>(table_));
    default:
      return read(PropertiesV12{}, *static_cast<const NetV12*>(table_));
  }
}

Code PluginTable::listen(void* context, int device, HandleBytes& handle, void** comm) const {
  return with([&](const auto& net) {
    if constexpr (kHasContext<std::decay_t<decltype(net)>>) {
      return net.listen(context, device, handle.data(), comm);
    } else {
      return net.listen(device, handle.data(), comm);
    }
  });
}

Code PluginTable::connect(void* context, int device, HandleBytes& handle, void** comm) const {
  void* offload = nullptr;
  return with([&](const auto& net) {
    using Net = std::decay_t<decltype(net)>;
    if constexpr (kHasContext<Net>) {
      return net.connect(context, device, handle.data(), comm, &offload);
    } else if constexpr (kHasProfile<Net>) {
      CommConfig config{-1};
      return net.connect(device, &config, handle.data(), comm, &offload);
    } else {
      return net.connect(device, handle.data(), comm, &offload);
    }
  });
}

Code PluginTable::accept(void* listen_comm, void** comm) const {
  void* offload = nullptr;
  return with([&](const auto& net) { return net.accept(listen_comm, comm, &offload); });
}

Code PluginTable::register_memory(void* comm, void* data, size_t bytes, void** memory,
                                  int type) const {
  return with([&](const auto& net) { return net.regMr(comm, data, bytes, type, memory); });
}

Code PluginTable::release_memory(void* comm, void* memory) const {
  return with([&](const auto& net) { return net.deregMr(comm, memory); });
}

Code PluginTable::isend(void* comm, void* data, size_t bytes, void* memory, void** request) const {
  constexpr int kTag = 0;
  return with([&](const auto& net) {
    using Net = std::decay_t<decltype(net)>;
    if constexpr (std::is_same_v<Net, NetV8>) {
      return net.isend(comm, data, static_cast<int>(bytes), kTag, memory, request);
    } else if constexpr (kHasProfile<Net>) {
      return net.isend(comm, data, bytes, kTag, memory, nullptr, request);
    } else {
      return net.isend(comm, data, bytes, kTag, memory, request);
    }
  });
}

Code PluginTable::irecv(void* comm, void* data, size_t bytes, void* memory, void** request) const {
  int tag = 0;
  void* profile = nullptr;
  return with([&](const auto& net) {
    using Net = std::decay_t<decltype(net)>;
    if constexpr (std::is_same_v<Net, NetV8>) {
      int size = static_cast<int>(bytes);
      return net.irecv(comm, 1, &data, &size, &tag, &memory, request);
    } else if constexpr (kHasProfile<Net>) {
      return net.irecv(comm, 1, &data, &bytes, &tag, &memory, &profile, request);
    } else {
      return net.irecv(comm, 1, &data, &bytes, &tag, &memory, request);
    }
  });
}

Code PluginTable::iflush(void* comm, void* data, size_t bytes, void* memory, void** request) const {
  int size = static_cast<int>(bytes);
  return with([&](const auto& net) { return net.iflush(comm, 1, &data, &size, &memory, request); });
}

Code PluginTable::test(void* request, int* done, int* size) const {
  return with([&](const auto& net) { return net.test(request, done, size); });
}

Code PluginTable::consumed(void* comm, void* request) const {
  return with([&](const auto& net) {
    return net.irecvConsumed == nullptr ? kSuccess : net.irecvConsumed(comm, 1, request);
  });
}

Code PluginTable::close_send(void* comm) const {
  return with([&](const auto& net) { return net.closeSend(comm); });
}
Code PluginTable::close_receive(void* comm) const {
  return with([&](const auto& net) { return net.closeRecv(comm); });
}
Code PluginTable::close_listen(void* comm) const {
  return with([&](const auto& net) { return net.closeListen(comm); });
}

}  // namespace sealane::nccl
