// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The modelled machine as plain numbers. They come from a platform file: `sealane run --emulate`
// reads it and hands its parameters over as "key=value" words in SEALANE_EMU_MODEL, so that the
// driver a program loads needs no file and no parser. Without one the numbers below hold: roughly
// an H100 in a TDX guest. What they mean for a copy: the sum of its parts, see docs/emulator.md.
//
// Plain values, shared read-only.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace sealane::emu {

// One direction between host and device memory. GB are 10^9 bytes.
struct PathModel {
  double off_latency_us = 3.5;
  double off_pageable_latency_us = 8.7;
  double off_link_gb_per_s = 55.4;
  double off_staging_gb_per_s = 14.0;
  double cc_toll_us = 15.3;
  double cc_pageable_toll_us = 36.8;
  double cc_message_us = 9.0;
  double cc_link_gb_per_s = 55.4;
  double cc_staging_gb_per_s = 28.7;
  double cc_aead_gb_per_s = 11.4;
  double cc_aead_cold_gb_per_s = 11.4;
};

struct Model {
  PathModel to_device;
  PathModel to_host;
  double message_bytes_max = 1 << 20;
  double message_ramp_bytes = 1 << 16;  // a shorter message costs its share of cc_message_us
  double key_rotation_bytes = 373e9;
  double key_rotation_us = 1000;
  double contexts_max = 18;
  double host_cache_bytes = 64 << 20;
  double host_memcpy_gb_per_s = 10.7;
  double host_fast_aead_gb_per_s = 11.4;
  double guard_digest_gb_per_s = 13.6;
  double gpu_memory_bytes = 80e9;
  double gpu_queues = 8;
  double gpu_launch_off_us = 4.9;
  double gpu_launch_cc_us = 9.9;
  double gpu_queue_off_us = 1.5;
  double gpu_queue_cc_us = 7.45;
  double gpu_call_cc_us = 22;  // added to calls that neither copy nor launch
  double gpu_kernel_slowdown = 0.0048;
  double gpu_copy_off_us = 2.6;
  double gpu_copy_cc_us = 5.1;
  double gpu_copy_gb_per_s = 1661;
  // Not in platform files: what a kernel's charges mean, and what one costs that charges nothing.
  double gpu_tera_ops_per_s = 400;
  double gpu_memory_gb_per_s = 3000;
  double gpu_kernel_us = 10;
};

// "key=value" words separated by spaces, with the keys of platform files. Keys the emulator has no
// use for are skipped; a known key with a value that is not a number above or at 0 is an error.
Result<Model> parse_model(std::string_view words);

}  // namespace sealane::emu
