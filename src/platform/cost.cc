// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "platform/cost.h"

#include <algorithm>
#include <cmath>

namespace sealane {
namespace {

constexpr double kBytesPerMib = 1 << 20;

Duration per_mib(double us_per_mib, uint64_t bytes) {
  return from_us(us_per_mib * static_cast<double>(bytes) / kBytesPerMib);
}

// The two stages of one message of a stock copy.
struct Stages {
  Duration core;
  Duration link;
};

Stages stock_stages(const Platform& platform, const SealedPath& path, HostMemory memory,
                    uint64_t message_bytes, uint64_t copy_bytes) {
  return {stock_aead_time(platform, path, message_bytes, copy_bytes) +
              message_time(platform.cc, path, message_bytes) +
              staging_time(path, memory, message_bytes),
          link_time(path, message_bytes)};
}

}  // namespace

Duration time_at(double gb_per_s, uint64_t bytes) {
  return Duration(std::llround(static_cast<double>(bytes) / gb_per_s));  // 1 GB/s is 1 byte/ns
}

Duration from_us(double us) { return Duration(std::llround(us * 1e3)); }

Duration open_copy_time(const Path& path, HostMemory memory, uint64_t bytes) {
  const Duration link = time_at(path.off.link_gb_per_s, bytes);
  if (memory == HostMemory::pinned) return from_us(path.off.latency_us) + link;
  return from_us(path.off.pageable_latency_us) + link + time_at(path.off.staging_gb_per_s, bytes);
}

Duration stock_copy_time(const Platform& platform, const Path& path, HostMemory memory,
                         uint64_t bytes) {
  const SealedPath& sealed = path.cc;
  const uint64_t whole = bytes / platform.cc.message_bytes_max;
  const uint64_t rest = bytes % platform.cc.message_bytes_max;
  const Stages each = stock_stages(platform, sealed, memory, platform.cc.message_bytes_max, bytes);
  const Stages last = stock_stages(platform, sealed, memory, rest, bytes);

  // Equal jobs through two machines: the slower stage sets the pace, the other shows once.
  Duration core_done{0};
  Duration link_done{0};
  if (whole > 0) {
    core_done = each.core * static_cast<int64_t>(whole);
    link_done =
        each.core + each.link + std::max(each.core, each.link) * static_cast<int64_t>(whole - 1);
  }
  return toll_time(sealed, memory) + std::max(link_done, core_done + last.core) + last.link;
}

Duration device_copy_time(const Gpu& gpu, bool cc, uint64_t bytes) {
  return from_us(cc ? gpu.device_copy_cc_us : gpu.device_copy_off_us) +
         time_at(gpu.device_copy_gb_per_s, bytes);
}

uint64_t message_count(const ConfidentialMode& cc, uint64_t copy_bytes) {
  if (copy_bytes == 0) return 1;
  return (copy_bytes - 1) / cc.message_bytes_max + 1;
}

Duration toll_time(const SealedPath& path, HostMemory memory) {
  return from_us(memory == HostMemory::pinned ? path.toll_us : path.pageable_toll_us);
}

Duration staging_time(const SealedPath& path, HostMemory memory, uint64_t bytes) {
  return memory == HostMemory::pinned ? Duration(0) : time_at(path.staging_gb_per_s, bytes);
}

Duration message_time(const ConfidentialMode& cc, const SealedPath& path, uint64_t message_bytes) {
  const double share =
      static_cast<double>(message_bytes) / static_cast<double>(cc.message_ramp_bytes);
  return from_us(path.message_us * std::min(share, 1.0));
}

Duration link_time(const SealedPath& path, uint64_t message_bytes) {
  return time_at(path.link_gb_per_s, message_bytes);
}

Duration stock_aead_time(const Platform& platform, const SealedPath& path, uint64_t message_bytes,
                         uint64_t copy_bytes) {
  const bool cold = copy_bytes > platform.host.cache_bytes;
  return time_at(cold ? path.stock_aead_cold_gb_per_s : path.stock_aead_gb_per_s, message_bytes);
}

Duration fast_aead_time(const Host& host, uint64_t bytes) {
  return time_at(host.fast_aead_gb_per_s, bytes);
}

Duration memcpy_time(const Host& host, uint64_t bytes) {
  return time_at(host.memcpy_gb_per_s, bytes);
}

Duration safe_read_time(const Host& host, uint64_t bytes) {
  return time_at(host.safe_read_gb_per_s, bytes);
}

uint64_t sealing_cores_max(const Host& host) {
  const double each = 2 * host.fast_aead_gb_per_s;  // a read and a write
  const auto by_memory = static_cast<uint64_t>(host.memory_gb_per_s / each);
  return std::clamp<uint64_t>(by_memory, 1, host.cores);
}

Duration guard_arm_time(const GuardCosts& guard, uint64_t bytes) {
  return per_mib(guard.arm_us_per_mib, bytes);
}

Duration guard_rewrite_time(const GuardCosts& guard, uint64_t bytes) {
  return per_mib(guard.rewrite_us_per_mib, bytes);
}

Duration guard_check_time(const GuardCosts& guard, uint64_t bytes) {
  return per_mib(guard.check_us_per_mib, bytes);
}

Duration digest_time(const GuardCosts& guard, uint64_t bytes) {
  return time_at(guard.digest_gb_per_s, bytes);
}

Duration launch_time(const Gpu& gpu, bool cc) {
  return from_us(cc ? gpu.launch_cc_us : gpu.launch_off_us);
}

Duration call_surcharge(const Gpu& gpu, bool cc) {
  return cc ? from_us(gpu.call_cc_us) : Duration{0};
}

Duration queue_time(const Gpu& gpu, bool cc) {
  return from_us(cc ? gpu.queue_cc_us : gpu.queue_off_us);
}

Duration queue_gap(const Gpu& gpu) { return queue_time(gpu, false); }

Duration kernel_time(const Gpu& gpu, bool cc, Duration open_time) {
  if (!cc) return open_time;
  return open_time +
         Duration(std::llround(static_cast<double>(open_time.count()) * gpu.kernel_slowdown));
}

}  // namespace sealane
