// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "platform/reader.h"

#include <fmt/core.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <variant>

namespace sealane {
namespace {

// What a parameter may be. The limits are those of any machine we can imagine, so that a slip of
// the unit (ms for us, GB/s for MB/s) is seen here and not in a strange estimate.
struct Number {
  double* to;
  double least;
  double most;
};
struct Count {
  uint64_t* to;
  uint64_t least;
  uint64_t most;
};
using Target = std::variant<Number, Count, bool*, std::string*>;

struct Field {
  std::string key;
  Target target;
};

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

// Every parameter there is: the format's definition.
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
                 {"gpu.kernel_slowdown", fraction(p.gpu.kernel_slowdown)},
                 {"gpu.device_copy_off_us", microseconds(p.gpu.device_copy_off_us)},
                 {"gpu.device_copy_cc_us", microseconds(p.gpu.device_copy_cc_us)},
                 {"gpu.device_copy_gb_per_s", rate(p.gpu.device_copy_gb_per_s)},
                 {"gpu.fp16_tflops", rate(p.gpu.fp16_tflops)},
                 {"gpu.memory_gb_per_s", rate(p.gpu.memory_gb_per_s)},
                 {"gpu.compute_efficiency", share(p.gpu.compute_efficiency)},
                 {"gpu.memory_efficiency", share(p.gpu.memory_efficiency)}});
  return fields;
}

class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file), fields_(fields_of(platform_)) {}

  Result<Platform> read(const toml::table& root) {
    for (const auto& [key, node] : root) {
      if (Status status = top_level(std::string(key.str()), node); !status) return status.error();
    }
    if (platform_.name.empty()) return missing("name");
    if (platform_.description.empty()) return missing("description");
    for (const Field& field : fields_) {
      if (!seen_.contains(field.key)) return missing(field.key);
    }
    std::stable_sort(lines_.begin(), lines_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [line, parameter] : lines_) platform_.parameters.push_back(std::move(parameter));
    return std::move(platform_);
  }

 private:
  Status top_level(const std::string& key, const toml::node& node) {
    if (key == "name") return plain_text(key, node, platform_.name);
    if (key == "description") return plain_text(key, node, platform_.description);
    return descend(key, node);
  }

  Status plain_text(const std::string& key, const toml::node& node, std::string& to) {
    const auto* text = node.as_string();
    if (text == nullptr || text->get().empty() || has_newline(text->get())) {
      return error(node, key + ": must be a line of text in quotes");
    }
    to = text->get();
    return {};
  }

  Status descend(const std::string& key, const toml::node& node) {
    const auto field =
        std::find_if(fields_.begin(), fields_.end(), [&](const Field& f) { return f.key == key; });
    if (field != fields_.end()) return parameter(*field, node);
    const toml::table* table = node.as_table();
    const bool section = std::any_of(fields_.begin(), fields_.end(),
                                     [&](const Field& f) { return f.key.starts_with(key + "."); });
    if (table == nullptr || !section) return error(node, fmt::format("unknown key '{}'", key));
    for (const auto& [name, child] : *table) {
      Status status = descend(fmt::format("{}.{}", key, name.str()), child);
      if (!status) return status;
    }
    return {};
  }

  Status parameter(const Field& field, const toml::node& node) {
    const toml::array* pair = node.as_array();
    if (pair == nullptr || pair->size() != 2 || !(*pair)[1].is_string()) {
      return error(node, fmt::format("{}: must be [value, \"source\"]", field.key));
    }
    const std::string& source = (*pair)[1].as_string()->get();
    if (source.find_first_not_of(" \t") == std::string::npos || has_newline(source)) {
      return error(node, field.key + ": the source must be a line of text");
    }
    Status status =
        std::visit([&](auto& target) { return assign(field, (*pair)[0], target); }, field.target);
    if (!status) return status;
    seen_.insert(field.key);
    lines_.emplace_back(node.source().begin.line,
                        Parameter{field.key, value_text(field.target), source});
    return {};
  }

  Status assign(const Field& field, const toml::node& node, const Number& target) {
    const auto value = node.value<double>();  // an integer will do
    if (!value || !node.is_number()) return error(node, field.key + ": must be a number");
    if (!std::isfinite(*value) || *value < target.least || *value > target.most) {
      return error(node, fmt::format("{}: must be from {} to {}, not {}", field.key, target.least,
                                     target.most, *value));
    }
    *target.to = *value;
    return {};
  }

  Status assign(const Field& field, const toml::node& node, const Count& target) {
    const auto* value = node.as_integer();
    if (value == nullptr) return error(node, field.key + ": must be a whole number");
    const int64_t number = value->get();
    if (number < 0 || static_cast<uint64_t>(number) < target.least ||
        static_cast<uint64_t>(number) > target.most) {
      return error(node, fmt::format("{}: must be from {} to {}, not {}", field.key, target.least,
                                     target.most, number));
    }
    *target.to = static_cast<uint64_t>(number);
    return {};
  }

  Status assign(const Field& field, const toml::node& node, bool* target) {
    const auto* value = node.as_boolean();
    if (value == nullptr) return error(node, field.key + ": must be true or false");
    *target = value->get();
    return {};
  }

  Status assign(const Field& field, const toml::node& node, std::string* target) {
    return plain_text(field.key, node, *target);
  }

  static std::string value_text(const Target& target) {
    if (const auto* number = std::get_if<Number>(&target)) return fmt::format("{}", *number->to);
    if (const auto* count = std::get_if<Count>(&target)) return fmt::format("{}", *count->to);
    if (const auto* flag = std::get_if<bool*>(&target)) return **flag ? "true" : "false";
    return *std::get<std::string*>(target);
  }

  static bool has_newline(std::string_view text) {
    return text.find_first_of("\r\n") != std::string_view::npos;
  }

  Error error(const toml::node& node, const std::string& what) const {
    return usage_error(fmt::format("{}:{}: {}", file_, node.source().begin.line, what));
  }

  // There is no line for what is not there.
  Error missing(const std::string& key) const {
    return usage_error(fmt::format("{}:1: missing key '{}'", file_, key));
  }

  std::string file_;
  Platform platform_;
  std::vector<Field> fields_;
  std::set<std::string> seen_;
  std::vector<std::pair<uint32_t, Parameter>> lines_;
};

}  // namespace

Result<Platform> parse_platform(std::string_view text, std::string_view file) {
  try {
    return Reader(file).read(toml::parse(text));
  } catch (const toml::parse_error& error) {
    std::string what(error.description());
    std::replace(what.begin(), what.end(), '\n', ' ');
    return usage_error(fmt::format("{}:{}: {}", file, error.source().begin.line, what));
  }
}

Result<Platform> load_platform(const std::string& path) {
  constexpr std::streamsize kFileBytesMax = 1 << 20;
  std::ifstream file(path, std::ios::binary);
  std::string text(kFileBytesMax + 1, '\0');
  if (!file || !file.read(text.data(), kFileBytesMax + 1).eof()) {
    if (file) return usage_error(fmt::format("{}: too large for a platform file", path));
    return usage_error(fmt::format("{}: cannot be read; is it a platform file?", path));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  return parse_platform(text, path);
}

}  // namespace sealane
