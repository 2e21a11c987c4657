// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/config/model.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "base/text.h"

namespace sealane::emu {
namespace {

struct PathKey {
  std::string_view key;
  double PathModel::*field;
};
constexpr PathKey kPathKeys[] = {
    {"off.latency_us", &PathModel::off_latency_us},
    {"off.pageable_latency_us", &PathModel::off_pageable_latency_us},
    {"off.link_gb_per_s", &PathModel::off_link_gb_per_s},
    {"off.staging_gb_per_s", &PathModel::off_staging_gb_per_s},
    {"cc.toll_us", &PathModel::cc_toll_us},
    {"cc.pageable_toll_us", &PathModel::cc_pageable_toll_us},
    {"cc.message_us", &PathModel::cc_message_us},
    {"cc.link_gb_per_s", &PathModel::cc_link_gb_per_s},
    {"cc.staging_gb_per_s", &PathModel::cc_staging_gb_per_s},
    {"cc.stock_aead_gb_per_s", &PathModel::cc_aead_gb_per_s},
    {"cc.stock_aead_cold_gb_per_s", &PathModel::cc_aead_cold_gb_per_s},
};

struct ModelKey {
  std::string_view key;
  double Model::*field;
};
constexpr ModelKey kModelKeys[] = {
    {"cc.message_bytes_max", &Model::message_bytes_max},
    {"cc.message_ramp_bytes", &Model::message_ramp_bytes},
    {"cc.key_rotation_bytes", &Model::key_rotation_bytes},
    {"cc.key_rotation_us", &Model::key_rotation_us},
    {"cc.contexts_max", &Model::contexts_max},
    {"host.cache_bytes", &Model::host_cache_bytes},
    {"host.memcpy_gb_per_s", &Model::host_memcpy_gb_per_s},
    {"host.fast_aead_gb_per_s", &Model::host_fast_aead_gb_per_s},
    {"guard.digest_gb_per_s", &Model::guard_digest_gb_per_s},
    {"gpu.memory_bytes", &Model::gpu_memory_bytes},
    {"gpu.hardware_queues", &Model::gpu_queues},
    {"gpu.launch_off_us", &Model::gpu_launch_off_us},
    {"gpu.launch_cc_us", &Model::gpu_launch_cc_us},
    {"gpu.queue_off_us", &Model::gpu_queue_off_us},
    {"gpu.queue_cc_us", &Model::gpu_queue_cc_us},
    {"gpu.call_cc_us", &Model::gpu_call_cc_us},
    {"gpu.kernel_slowdown", &Model::gpu_kernel_slowdown},
    {"gpu.device_copy_off_us", &Model::gpu_copy_off_us},
    {"gpu.device_copy_cc_us", &Model::gpu_copy_cc_us},
    {"gpu.device_copy_gb_per_s", &Model::gpu_copy_gb_per_s},
    {"gpu.tera_ops_per_s", &Model::gpu_tera_ops_per_s},
    {"gpu.memory_gb_per_s", &Model::gpu_memory_gb_per_s},
    {"gpu.kernel_us", &Model::gpu_kernel_us},
};

template <typename Keys>
auto* find_key(const Keys& keys, std::string_view key) {
  const auto* found =
      std::find_if(std::begin(keys), std::end(keys), [&](const auto& k) { return k.key == key; });
  return found == std::end(keys) ? nullptr : found;
}

double* field_of(Model& model, std::string_view key) {
  if (const ModelKey* known = find_key(kModelKeys, key)) return &(model.*known->field);
  for (const auto& [prefix, path] : {std::pair{std::string_view("to_device."), &model.to_device},
                                     std::pair{std::string_view("to_host."), &model.to_host}}) {
    if (!key.starts_with(prefix)) continue;
    if (const PathKey* known = find_key(kPathKeys, key.substr(prefix.size()))) {
      return &(path->*known->field);
    }
  }
  return nullptr;
}

bool is_rate(std::string_view key) { return key.find("_per_s") != std::string_view::npos; }

}  // namespace

Result<Model> parse_model(std::string_view words) {
  Model model;
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    const std::string_view word = words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = word.substr(0, equals);
    const std::string_view text = word.substr(equals + 1);
    double* field = field_of(model, key);
    if (field == nullptr) continue;
    double value = -1;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
    if (!whole || !(value >= 0) || (value == 0 && is_rate(key))) {
      return usage_error(concat("SEALANE_EMU_MODEL: ", key, " is '", text, "', not a number the ",
                                "emulated GPU can use"));
    }
    *field = value;
  }
  return model;
}

}  // namespace sealane::emu
