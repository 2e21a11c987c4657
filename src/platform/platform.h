// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A machine as numbers: what copies, sealing, guards and launches cost on it, with confidential
// computing (CC) off and on. Read from a platform file (platforms/*.toml), where every number
// carries its source; see reader.h. What the numbers mean for a copy is said in cost.h.
//
// Plain values: build one, then share it read-only between threads. GB are 10^9 bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sealane {

// One direction of the way between host and device memory, CC off.
struct OpenPath {
  double latency_us = 0;  // a copy of pinned memory, beyond its bytes
  double pageable_latency_us = 0;
  double link_gb_per_s = 0;
  double staging_gb_per_s = 0;  // pageable bytes also pass through the driver's pinned buffer
};

// The same direction with CC on: a core seals (or opens) message by message while the copy engine
// moves the others.
struct SealedPath {
  double toll_us = 0;  // fixed cost of one crossing from pinned memory
  double pageable_toll_us = 0;
  double message_us = 0;                // of each message of message_ramp_bytes or more
  double link_gb_per_s = 0;             // the copy engine's, its own decryption included
  double staging_gb_per_s = 0;          // as in OpenPath
  double stock_aead_gb_per_s = 0;       // the driver's library, one core, host bytes in cache
  double stock_aead_cold_gb_per_s = 0;  // host bytes from memory
};

struct Path {
  OpenPath off;
  SealedPath cc;
};

struct ConfidentialMode {
  std::string stock_aead_library;   // name and version of what the driver seals with
  uint64_t message_bytes_max = 0;   // a larger copy is several messages
  uint64_t message_ramp_bytes = 0;  // a shorter message costs its share of message_us
  uint64_t bounce_pool_bytes = 0;   // shared memory the driver stages ciphertext in
  uint64_t key_rotation_bytes = 0;  // per key
  double key_rotation_us = 0;       // the lane stands still meanwhile
  uint64_t contexts_max = 0;
  bool copies_block = false;  // asynchronous copies return when their stream has drained
};

struct Host {
  uint64_t cores = 0;             // that the guest may use
  uint64_t memory_bytes = 0;      // what offloaded models and KV have to fit into
  uint64_t cache_bytes = 0;       // a copy beyond this finds its bytes in memory, not in cache
  double memory_gb_per_s = 0;     // all cores together, reads and writes counted
  double memcpy_gb_per_s = 0;     // one core, bytes copied
  double safe_read_gb_per_s = 0;  // one core, process_vm_readv
  std::string fast_aead_library;
  double fast_aead_gb_per_s = 0;  // our engine, one core, from memory
};

struct GuardCosts {
  double arm_us_per_mib = 0;      // write-protect
  double rewrite_us_per_mib = 0;  // what the program pays to write to protected pages
  double check_us_per_mib = 0;    // ask which pages were written
  double digest_gb_per_s = 0;     // the guard for memory that cannot be protected
};

struct Gpu {
  uint64_t memory_bytes = 0;
  uint64_t hardware_queues = 0;  // streams beyond this share one, in order
  double launch_off_us = 0;      // the launching call
  double launch_cc_us = 0;
  double queue_off_us = 0;  // from the launch to the start on an idle device
  double queue_cc_us = 0;
  double call_cc_us = 0;          // what CC adds to other calls that hand something to the device
  double kernel_slowdown = 0;     // added to the run time of a kernel with CC, as a fraction
  double device_copy_off_us = 0;  // device to device, fixed part
  double device_copy_cc_us = 0;
  double device_copy_gb_per_s = 0;
  // The roofline of kernels.
  double fp16_tflops = 0;  // dense, at its peak
  double memory_gb_per_s = 0;
  double compute_efficiency = 0;  // what kernels reach of the peak, as a fraction
  double memory_efficiency = 0;
  // Data-parallel training.
  double training_tflops = 0;  // what an iteration reaches
  double nvlink_gb_per_s = 0;  // bus bandwidth of an all-reduce between GPUs of a machine, CC off
};

// How a number is known; see spread.h.
enum class Knowledge : uint8_t {
  published,  // measured on that machine, or its maker's word
  elsewhere,  // measured, on another machine
  assumed,
};

// Where one number came from, and how far it may be off.
struct Parameter {
  std::string key;  // "to_device.cc.toll_us"
  std::string value;
  std::string source;
  Knowledge kind = Knowledge::assumed;
  // The truth is expected within a factor of 1 + spread, up or down, four times out of five.
  double spread = 0;
};

struct Platform {
  std::string name;
  std::string description;
  Path to_device;
  Path to_host;
  ConfidentialMode cc;
  Host host;
  GuardCosts guard;
  Gpu gpu;
  std::vector<Parameter> parameters;  // in file order
};

}  // namespace sealane
