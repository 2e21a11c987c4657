// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "watch/stock_costs.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace sealane::serve {
namespace {

struct Name {
  std::string_view key;
  double& value;
};

bool take(std::string_view word, const Name& name) {
  if (!word.starts_with(name.key) || word.substr(name.key.size(), 1) != "=") return false;
  word.remove_prefix(name.key.size() + 1);
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error == std::errc() && end == word.data() + word.size() && std::isfinite(value) &&
      value > 0) {
    name.value = value;
  }
  return true;
}

}  // namespace

double StockCosts::copy_ns(Direction direction, bool pinned, uint64_t bytes) const {
  const Path& p = path(direction);
  const auto total = static_cast<double>(bytes);
  const double messages = std::max(1.0, std::ceil(total / message_bytes_max));
  const double one = std::min(total, message_bytes_max);
  // Only the last message can be short; a short one costs its share.
  const double last = total - (messages - 1) * message_bytes_max;
  const double message_costs = messages - 1 + std::min(1.0, last / message_ramp_bytes);
  const double core = total / p.stock_aead_gb_per_s + 1e3 * p.message_us * message_costs +
                      (pinned ? 0 : total / p.staging_gb_per_s);
  const double link = total / p.link_gb_per_s;
  const double share = total == 0 ? 0 : one / total;
  const double pipelined = std::max(core + link * share, core * share + link);
  return 1e3 * (pinned ? p.toll_us : p.pageable_toll_us) + pipelined;
}

StockCosts read_stock_costs(const char* words) {
  StockCosts out;
  if (words == nullptr || *words == '\0') return out;
  out.from = "the given platform";
  const Name names[] = {
      {"to_device.cc.toll_us", out.to_device.toll_us},
      {"to_device.cc.pageable_toll_us", out.to_device.pageable_toll_us},
      {"to_device.cc.message_us", out.to_device.message_us},
      {"to_device.cc.link_gb_per_s", out.to_device.link_gb_per_s},
      {"to_device.cc.staging_gb_per_s", out.to_device.staging_gb_per_s},
      {"to_device.cc.stock_aead_gb_per_s", out.to_device.stock_aead_gb_per_s},
      {"to_host.cc.toll_us", out.to_host.toll_us},
      {"to_host.cc.pageable_toll_us", out.to_host.pageable_toll_us},
      {"to_host.cc.message_us", out.to_host.message_us},
      {"to_host.cc.link_gb_per_s", out.to_host.link_gb_per_s},
      {"to_host.cc.staging_gb_per_s", out.to_host.staging_gb_per_s},
      {"to_host.cc.stock_aead_gb_per_s", out.to_host.stock_aead_gb_per_s},
      {"cc.message_bytes_max", out.message_bytes_max},
      {"cc.message_ramp_bytes", out.message_ramp_bytes},
      {"host.memcpy_gb_per_s", out.memcpy_gb_per_s},
      {"host.fast_aead_gb_per_s", out.fast_aead_gb_per_s},
  };
  std::string_view rest = words;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (word.starts_with("platform=")) out.from = word.substr(9);
    std::any_of(std::begin(names), std::end(names), [&](const Name& n) { return take(word, n); });
  }
  return out;
}

}  // namespace sealane::serve
