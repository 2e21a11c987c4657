// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "platform/fields.h"

namespace sealane {
namespace {

Number rate(double& to) { return {&to, 0.01, 100'000}; }
Number microseconds(double& to) { return {&to, 0, 1'000'000}; }
Number fraction(double& to) { return {&to, 0, 10}; }
Number share(double& to) { return {&to, 0.01, 1}; }
Count bytes(uint64_t& to) { return {&to, 1, uint64_t{1} << 50}; }
Count count(uint64_t& to) { return {&to, 1, 1'000'000}; }

void add_path(std::vector<Field>& fields, const std::string& key, Path& path) {
  fields.insert(fields.end(),
                {{key + ".off.latency_us", microseconds(path.off.latency_us)},
                 {key + ".off.pageable_latency_us", microseconds(path.off.pageable_latency_us)},
                 {key + ".off.link_gb_per_s", rate(path.off.link_gb_per_s)},
                 {key + ".off.staging_gb_per_s", rate(path.off.staging_gb_per_s)},
                 {key + ".cc.toll_us", microseconds(path.cc.toll_us)},
                 {key + ".cc.pageable_toll_us", microseconds(path.cc.pageable_toll_us)},
                 {key + ".cc.message_us", microseconds(path.cc.message_us)},
                 {key + ".cc.link_gb_per_s", rate(path.cc.link_gb_per_s)},
                 {key + ".cc.staging_gb_per_s", rate(path.cc.staging_gb_per_s)},
                 {key + ".cc.stock_aead_gb_per_s", rate(path.cc.stock_aead_gb_per_s)},
                 {key + ".cc.stock_aead_cold_gb_per_s", rate(path.cc.stock_aead_cold_gb_per_s)}});
}

}  // namespace

std::vector<Field> fields_of(Platform& p) {
  constexpr uint64_t kMessageBytesMost = 1 << 20;  // the driver's, and that of a record
  std::vector<Field> fields;
  add_path(fields, "to_device", p.to_device);
  add_path(fields, "to_host", p.to_host);
  fields.insert(fields.end(),
                {{"cc.stock_aead_library", &p.cc.stock_aead_library},
                 {"cc.message_bytes_max", Count{&p.cc.message_bytes_max, 4096, kMessageBytesMost}},
                 {"cc.message_ramp_bytes", Count{&p.cc.message_ramp_bytes, 1, kMessageBytesMost}},
                 {"cc.bounce_pool_bytes", bytes(p.cc.bounce_pool_bytes)},
                 {"cc.key_rotation_bytes", bytes(p.cc.key_rotation_bytes)},
                 {"cc.key_rotation_us", microseconds(p.cc.key_rotation_us)},
                 {"cc.contexts_max", count(p.cc.contexts_max)},
                 {"cc.copies_block", &p.cc.copies_block},
                 {"host.cores", count(p.host.cores)},
                 {"host.memory_bytes", bytes(p.host.memory_bytes)},
                 {"host.cache_bytes", bytes(p.host.cache_bytes)},
                 {"host.memory_gb_per_s", rate(p.host.memory_gb_per_s)},
                 {"host.memcpy_gb_per_s", rate(p.host.memcpy_gb_per_s)},
                 {"host.safe_read_gb_per_s", rate(p.host.safe_read_gb_per_s)},
                 {"host.fast_aead_library", &p.host.fast_aead_library},
                 {"host.fast_aead_gb_per_s", rate(p.host.fast_aead_gb_per_s)},
                 {"guard.arm_us_per_mib", microseconds(p.guard.arm_us_per_mib)},
                 {"guard.rewrite_us_per_mib", microseconds(p.guard.rewrite_us_per_mib)},
                 {"guard.check_us_per_mib", microseconds(p.guard.check_us_per_mib)},
                 {"guard.digest_gb_per_s", rate(p.guard.digest_gb_per_s)},
                 {"gpu.memory_bytes", bytes(p.gpu.memory_bytes)},
                 {"gpu.hardware_queues", count(p.gpu.hardware_queues)},
                 {"gpu.launch_off_us", microseconds(p.gpu.launch_off_us)},
                 {"gpu.launch_cc_us", microseconds(p.gpu.launch_cc_us)},
                 {"gpu.queue_off_us", microseconds(p.gpu.queue_off_us)},
                 {"gpu.queue_cc_us", microseconds(p.gpu.queue_cc_us)},
                 {"gpu.call_cc_us", microseconds(p.gpu.call_cc_us)},
                 {"gpu.kernel_slowdown", fraction(p.gpu.kernel_slowdown)},
                 {"gpu.device_copy_off_us", microseconds(p.gpu.device_copy_off_us)},
                 {"gpu.device_copy_cc_us", microseconds(p.gpu.device_copy_cc_us)},
                 {"gpu.device_copy_gb_per_s", rate(p.gpu.device_copy_gb_per_s)},
                 {"gpu.fp16_tflops", rate(p.gpu.fp16_tflops)},
                 {"gpu.memory_gb_per_s", rate(p.gpu.memory_gb_per_s)},
                 {"gpu.compute_efficiency", share(p.gpu.compute_efficiency)},
                 {"gpu.memory_efficiency", share(p.gpu.memory_efficiency)},
                 {"gpu.training_tflops", rate(p.gpu.training_tflops)},
                 {"gpu.nvlink_gb_per_s", rate(p.gpu.nvlink_gb_per_s)}});
  return fields;
}

}  // namespace sealane
