// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Do messages come from and go to GPU memory, through the driver that the process has loaded? Run
// on the emulated GPU, whose memory the host cannot read.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "nccl/ranks.h"

namespace sealane::nccl {
namespace {

// The driver as a program has it; every rank loads its own.
class Gpu {
 public:
  using Pointer = unsigned long long;

  static Result<Gpu> open() {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) return usage_error("no libcuda.so.1");
    Gpu gpu(library);
    int device = 0;
    void* context = nullptr;
    if (gpu.call<int(unsigned)>("cuInit")(0) != 0 ||
        gpu.call<int(int*, int)>("cuDeviceGet")(&device, 0) != 0 ||
        gpu.call<int(void**, unsigned, int)>("cuCtxCreate_v2")(&context, 0, device) != 0) {
      return io_error("no context on the GPU");
    }
    return gpu;
  }
  void* allocate(size_t bytes) const {
    Pointer pointer = 0;
    call<int(Pointer*, size_t)>("cuMemAlloc_v2")(&pointer, bytes);
    return reinterpret_cast<void*>(pointer);
  }
  void put(void* device, Bytes from) const {
    call<int(Pointer, const void*, size_t)>("cuMemcpyHtoD_v2")(reinterpret_cast<Pointer>(device),
                                                               from.data(), from.size());
  }
  std::vector<uint8_t> get(const void* device, size_t bytes) const {
    std::vector<uint8_t> out(bytes);
    call<int(void*, Pointer, size_t)>("cuMemcpyDtoH_v2")(out.data(),
                                                         reinterpret_cast<Pointer>(device), bytes);
    return out;
  }

 private:
  explicit Gpu(void* library) : library_(library) {}
  template <typename Function>
  Function* call(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  void* library_;
};

std::vector<std::string> with_device_memory() {
  auto environment = sealed_environment();
  environment.emplace_back("SEALANE_NCCL_CUDA=1");
  return environment;
}

constexpr size_t kBytes = 3'000'001;

// From a GPU to a GPU, to the host, and from the host: any of the four pairs.
Status exchange(Player& player, bool from_device, bool to_device) {
  auto gpu = Gpu::open();
  if (!gpu) return gpu.error();
  void* const device = gpu->allocate(kBytes);
  std::vector<uint8_t> host(kBytes);
  const PluginTable& plugin = player.plugin();
  const bool sends = player.seat().rank() == 0;
  const bool on_device = sends ? from_device : to_device;
  auto comm = sends ? player.connect_to(1) : player.accept_from(0);
  if (!comm) return comm.error();
  void* const data = on_device ? device : host.data();
  void* memory = nullptr;
  const int type = on_device ? kPointerCuda : kPointerHost;
  if (const Code code = plugin.register_memory(*comm, data, kBytes, &memory, type);
      code != kSuccess) {
    return failed("regMr", code);
  }
  for (uint64_t message = 0; message < 4; ++message) {
    if (sends) {
      fill_pattern(host, message);
      if (on_device) gpu->put(device, host);
    }
    auto request = sends ? player.send(*comm, data, kBytes, memory)
                         : player.receive(*comm, data, kBytes, memory);
    if (!request) return request.error();
    if (auto size = player.wait(*request); !size) return size.error();
    if (sends) continue;
    if (on_device) host = gpu->get(device, kBytes);
    if (Status status = check_pattern(host, message); !status) return status;
  }
  player.seat().reach(0);
  const Status status = player.seat().await(sends ? 1 : 0, 0, patience());
  plugin.release_memory(*comm, memory);
  if (sends) player.close_send(*comm);
  if (!sends) player.close_receive(*comm);
  return status;
}

TEST(DeviceMemory, MessagesComeFromItAndGoToIt) {
  for (const auto& [from, to] : {std::pair(true, true), {true, false}, {false, true}}) {
    const auto outcomes = play(2, with_device_memory(), [&, f = from, t = to](Player& player) {
      return exchange(player, f, t);
    });
    for (const Outcome& outcome : outcomes) {
      EXPECT_TRUE(outcome.passed) << from << to << ": " << outcome.words << outcome.plugin_line;
    }
  }
}

TEST(DeviceMemory, IsOfferedOnlyWhereItWasAskedFor) {
  for (const bool asked : {false, true}) {
    const auto outcomes =
        play(1, asked ? with_device_memory() : sealed_environment(), [&](Player& player) -> Status {
          DeviceProperties properties;
          player.plugin().properties(0, &properties);
          const bool offered = (properties.pointer_support & kPointerCuda) != 0;
          if (offered != asked) return internal_error(offered ? "offered" : "not offered");
          std::vector<uint8_t> host(100);
          void* memory = nullptr;
          const Code code = player.plugin().register_memory(nullptr, host.data(), host.size(),
                                                            &memory, kPointerCuda);
          return code == kInvalidUsage ? Status() : Status(internal_error("host memory was taken"));
        });
    EXPECT_TRUE(outcomes[0].passed) << outcomes[0].words;
    EXPECT_FALSE(outcomes[0].plugin_line.empty());
  }
}

}  // namespace
}  // namespace sealane::nccl
