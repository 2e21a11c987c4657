// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "estimate/loss_parts.h"

namespace sealane::estimate {
namespace {

constexpr double kNoTime = 100'000;  // GB/s, the most a platform file may say

void open_up(Path& path) {
  path.cc = {.toll_us = path.off.latency_us,
             .pageable_toll_us = path.off.pageable_latency_us,
             .message_us = 0,
             .link_gb_per_s = path.off.link_gb_per_s,
             .staging_gb_per_s = path.off.staging_gb_per_s,
             .stock_aead_gb_per_s = kNoTime,
             .stock_aead_cold_gb_per_s = kNoTime};
}

}  // namespace

Platform with_open_launches(const Platform& platform) {
  Platform result = platform;
  Gpu& gpu = result.gpu;
  gpu.launch_cc_us = gpu.launch_off_us;
  gpu.queue_cc_us = gpu.queue_off_us;
  gpu.device_copy_cc_us = gpu.device_copy_off_us;
  gpu.call_cc_us = 0;
  gpu.kernel_slowdown = 0;
  return result;
}

Platform with_open_copies(const Platform& platform) {
  Platform result = platform;
  open_up(result.to_device);
  open_up(result.to_host);
  result.cc.key_rotation_us = 0;
  result.host.fast_aead_gb_per_s = kNoTime;
  return result;
}

}  // namespace sealane::estimate
