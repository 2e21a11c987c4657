// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "plugin.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/log.h"
#include "net/born_here.h"
#include "net/device_memory.h"
#include "net/network.h"

namespace sealane::nccl {

#ifdef SEALANE_NCCL_PLAIN
const char* const kPluginName =
    "SealanePlain";  // for measuring what sealing costs; never installed
constexpr bool kSealed = false;
#else
const char* const kPluginName = "Sealane";
constexpr bool kSealed = true;
#endif

namespace {

using net::Attempt;
using net::Listener;
using net::Network;

std::atomic<Logger> nccl_log{nullptr};

void say(int level, const std::string& text) {
  const Logger log = nccl_log.load();
  if (log != nullptr)
    log(level, kLogNet | kLogInit, "sealane", 0, "NET/Sealane : %s", text.c_str());
}

void forward_log(sealane::LogLevel level, std::string_view line) {
  say(level == sealane::LogLevel::warn ? kLogWarn : kLogInfo, std::string(line));
}

Code code_of(const Error& error) {
  switch (error.kind) {
    case ErrorKind::usage:
      return kInvalidUsage;
    case ErrorKind::io:
      return kSystemError;
    case ErrorKind::peer:
    case ErrorKind::crypto:
      return kRemoteError;
    case ErrorKind::internal:
      break;
  }
  return kInternalError;
}

Code refuse(const Error& error) {
  say(kLogWarn, error.message);
  return code_of(error);
}

// NCCL asks again with the same memory until a connection is there. What it carries came over a
// network nobody vouches for, so the state is kept here and not in it.
struct Begun {
  uint64_t communicator = 0;
  std::shared_ptr<Attempt> attempt;
};
using Attempts = std::map<std::pair<void*, std::string>, Begun>;

struct Process {
  net::BornHere born;
  std::mutex mutex;
  std::map<uint64_t, int> users;  // of each communicator; never fewer, they are contexts
  std::shared_ptr<Network> network;
  Attempts attempts;
};

// Never destroyed: NCCL's threads may outlive exit handlers.
Process& process() {
  static auto* const one = new Process;
  return *one;
}

// Calls that may allocate, and so may throw, end here; and those of a child of fork(), where a lock
// may be held by a thread that is not there.
template <typename Body>
Code guarded(Body body) {
  try {
    if (process().born.elsewhere()) return refuse(net::of_the_parent());
    return body();
  } catch (const std::exception& thrown) {
    return refuse(internal_error(thrown.what()));
  } catch (...) {
    return refuse(internal_error("an unknown exception"));
  }
}

uint64_t communicator_of(const void* context) {
  return context == nullptr ? 0 : *static_cast<const uint64_t*>(context);
}

Result<std::shared_ptr<Network>> network() {
  const std::lock_guard lock(process().mutex);
  if (process().network == nullptr) return usage_error("the plugin was not initialised");
  return process().network;
}

// The crew lives as long as something that needs it.
template <typename Object>
struct Comm {
  std::shared_ptr<Object> object;
  std::shared_ptr<Network::Crew> crew;
};
using SendComm = Comm<net::SendEnd>;
using ReceiveComm = Comm<net::ReceiveEnd>;
using ListenComm = Comm<Listener>;

template <typename Object>
Code hand_out(std::shared_ptr<Object> object, void** comm) {
  auto owner = network();
  auto crew = owner ? (*owner)->crew() : owner.error();
  if (!crew) {
    let_go(std::move(object));
    return refuse(crew.error());
  }
  *comm = new Comm<Object>{std::move(object), std::move(*crew)};
  return kSuccess;
}

// A flush has nothing to wait for: what is delivered was written by this CPU, or by a copy that is
// over.
int flushed = 0;

}  // namespace

Code start(Logger logger, uint64_t communicator, void** context) {
  return guarded([&] {
    nccl_log.store(logger);
    set_log_sink(forward_log);
    const std::lock_guard lock(process().mutex);
    if (process().network == nullptr) {
      auto options = net::options_from_environment(kSealed);
      if (!options) return refuse(options.error());
      auto opened = Network::open(std::move(*options));
      if (!opened) return refuse(opened.error());
      process().network = std::move(*opened);
      std::string devices;
      for (const auto& one : process().network->interfaces()) devices += " " + one.name;
      say(kLogInfo,
          std::string(kSealed ? "AES-256-GCM" : "NOTHING IS SEALED") + ", devices:" + devices);
    }
    auto& [id, users] = *process().users.emplace(communicator, 0).first;
    ++users;
    // NCCL gives it back as it is.
    if (context != nullptr) *context = const_cast<uint64_t*>(&id);
    return kSuccess;
  });
}

Code stop(const void* context) {
  return guarded([&] {
    Attempts unfinished;
    std::unique_lock lock(process().mutex);
    const uint64_t communicator = communicator_of(context);
    int& users = process().users[communicator];
    if (users > 0) --users;
    if (users > 0) return kSuccess;
    for (auto at = process().attempts.begin(); at != process().attempts.end();) {
      const auto next = std::next(at);
      if (at->second.communicator == communicator)
        unfinished.insert(process().attempts.extract(at));
      at = next;
    }
    lock.unlock();
    let_go(std::move(unfinished));
    return kSuccess;
  });
}

Code count_devices(int* count) {
  if (count == nullptr) return kInvalidArgument;
  return guarded([&] {
    auto owner = network();
    if (!owner) return refuse(owner.error());
    *count = static_cast<int>((*owner)->interfaces().size());
    return kSuccess;
  });
}

Code describe(int device, DeviceFacts* facts) {
  return guarded([&] {
    auto owner = network();
    if (!owner) return refuse(owner.error());
    const auto& all = (*owner)->interfaces();
    if (device < 0 || static_cast<size_t>(device) >= all.size()) return kInvalidArgument;
    const net::Interface& one = all[static_cast<size_t>(device)];
    // NCCL's fields are not const, but it only reads them.
    facts->name = const_cast<char*>(one.name.c_str());
    facts->pci_path = one.pci_path.empty() ? nullptr : const_cast<char*>(one.pci_path.c_str());
    facts->guid = static_cast<uint64_t>(device);
    facts->pointers = kPointerHost | ((*owner)->options().device_memory ? kPointerCuda : 0);
    facts->speed = one.speed_mbps;
    return kSuccess;
  });
}

Code open_listener(const void* context, int device, void* handle, void** comm) {
  if (handle == nullptr || comm == nullptr || device < 0) return kInvalidArgument;
  return guarded([&] {
    auto owner = network();
    if (!owner) return refuse(owner.error());
    auto listener =
        (*owner)->listen(static_cast<size_t>(device), {static_cast<uint8_t*>(handle), kHandleBytes},
                         communicator_of(context));
    if (!listener) return refuse(listener.error());
    return hand_out(std::move(*listener), comm);
  });
}

Code open_sender(const void* context, void* handle, void** comm) {
  if (handle == nullptr || comm == nullptr) return kInvalidArgument;
  *comm = nullptr;
  return guarded([&] {
    auto owner = network();
    if (!owner) return refuse(owner.error());
    const auto key =
        std::make_pair(handle, std::string(static_cast<const char*>(handle), kHandleBytes));
    std::shared_ptr<Attempt> attempt;
    {
      const std::lock_guard lock(process().mutex);
      const auto known = process().attempts.find(key);
      if (known != process().attempts.end()) attempt = known->second.attempt;
    }
    if (attempt == nullptr) {
      auto made = (*owner)->connect({static_cast<const uint8_t*>(handle), kHandleBytes},
                                    communicator_of(context));
      if (!made) return refuse(made.error());
      const std::lock_guard lock(process().mutex);
      process().attempts.emplace(key, Begun{communicator_of(context), std::move(*made)});
      return kSuccess;
    }
    auto end = attempt->poll();
    if (end && *end == nullptr) return kSuccess;
    {
      const std::lock_guard lock(process().mutex);
      process().attempts.erase(key);
    }
    const Code code = end ? hand_out(std::move(*end), comm) : refuse(end.error());
    let_go(std::move(attempt));  // which kept the workers until they were handed out
    return code;
  });
}

Code open_receiver(void* listen_comm, void** comm) {
  if (listen_comm == nullptr || comm == nullptr) return kInvalidArgument;
  *comm = nullptr;
  return guarded([&] {
    auto end = static_cast<ListenComm*>(listen_comm)->object->accept();
    if (!end) return refuse(end.error());
    if (*end == nullptr) return kSuccess;
    return hand_out(std::move(*end), comm);
  });
}

namespace {

// What NCCL holds of registered GPU memory; host memory has nothing.
using Registration = std::shared_ptr<net::DeviceMemory>;

std::shared_ptr<const net::DeviceMemory> device_of(void* memory) {
  return memory == nullptr ? nullptr : *static_cast<const Registration*>(memory);
}

}  // namespace

Code register_memory(void*, void* data, size_t, int type, void** memory) {
  if (memory == nullptr) return kInvalidArgument;
  *memory = nullptr;
  if (type == kPointerHost) return kSuccess;
  return guarded([&] {
    auto owner = network();
    if (!owner) return refuse(owner.error());
    if (type != kPointerCuda || !(*owner)->options().device_memory) {
      return refuse(usage_error(
          "only host memory can be registered; SEALANE_NCCL_CUDA=1 allows GPU memory, too"));
    }
    auto device = net::DeviceMemory::of(data);
    if (!device) return refuse(device.error());
    *memory = new Registration(std::move(*device));
    return kSuccess;
  });
}

Code release_memory(void*, void* memory) {
  delete static_cast<Registration*>(memory);
  return kSuccess;
}

Code send(void* comm, void* data, size_t bytes, void* memory, void** request) {
  if (comm == nullptr || request == nullptr) return kInvalidArgument;
  *request = nullptr;
  return guarded([&] {
    auto made = static_cast<SendComm*>(comm)->object->send(data, bytes, device_of(memory));
    if (!made) return refuse(made.error());
    *request = *made;
    return kSuccess;
  });
}

Code receive(void* comm, int n, void** data, const size_t* sizes, void** memory, void** request) {
  if (comm == nullptr || request == nullptr || n != 1) return kInvalidArgument;
  *request = nullptr;
  return guarded([&] {
    void* const registered = memory == nullptr ? nullptr : memory[0];
    auto made =
        static_cast<ReceiveComm*>(comm)->object->receive(data[0], sizes[0], device_of(registered));
    if (!made) return refuse(made.error());
    *request = *made;
    return kSuccess;
  });
}

Code flush(void** request) {
  if (request != nullptr) *request = &flushed;
  return kSuccess;
}

Code test(void* request, int* done, int* sizes) {
  if (request == nullptr || done == nullptr) return kInvalidArgument;
  *done = 0;
  if (request == &flushed) {
    *done = 1;
    return kSuccess;
  }
  return guarded([&] {
    auto& one = *static_cast<net::Request*>(request);
    auto bytes = one.end->test(one);
    if (!bytes) return refuse(bytes.error());
    if (!*bytes) return kSuccess;
    *done = 1;
    if (sizes != nullptr) *sizes = static_cast<int>(**bytes);
    return kSuccess;
  });
}

namespace {

template <typename Object>
Code close_comm(void* comm) {
  if (comm == nullptr) return kSuccess;
  return guarded([&] {
    std::unique_ptr<Comm<Object>> owned(static_cast<Comm<Object>*>(comm));
    owned->object->close();
    let_go(std::move(owned));
    return kSuccess;
  });
}

}  // namespace

Code close_sender(void* comm) { return close_comm<net::SendEnd>(comm); }
Code close_receiver(void* comm) { return close_comm<net::ReceiveEnd>(comm); }
Code close_listener(void* comm) { return close_comm<Listener>(comm); }

}  // namespace sealane::nccl
