// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "platform/spread.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "platform/fields.h"

namespace sealane {
namespace {

// Where the normal distribution has this share below it. The error of the approximation
// (Abramowitz and Stegun 26.2.23) is below 5e-4, of spreads that are themselves a guess.
double normal_quantile(double share) {
  const bool low = share < 0.5;
  const double t = std::sqrt(-2 * std::log(low ? share : 1 - share));
  const double value = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                               (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
  return low ? -value : value;
}

// What moves together has one name: "to_device.cc.link_gb_per_s" is "to_device.link_gb_per_s".
std::string mover_of(std::string key) {
  for (const std::string_view part : {"_cold", ".off", ".cc", "_off", "_cc"}) {
    const size_t at = key.find(part);
    if (at != std::string::npos && at > 0) key.erase(at, part.size());
  }
  return key;
}

uint64_t hash_of(std::string_view text) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

// The stratum that a number takes in a draw: a permutation of its own, the same in every draw.
uint32_t stratum(const std::string& mover, uint32_t index, uint32_t count, uint64_t seed) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  SeededRandom random(hash_of(mover) ^ seed);
  for (uint32_t i = count - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
  return order[index];
}

// Every number times what `factor` says of its mover and its spread, within the format's limits.
template <typename Factor>
Platform scaled(const Platform& platform, Factor factor) {
  Platform result = platform;
  std::unordered_map<std::string, double> spreads;
  for (const Parameter& each : platform.parameters) spreads[each.key] = each.spread;
  for (Field& field : fields_of(result)) {
    const auto* number = std::get_if<Number>(&field.target);
    if (number == nullptr) continue;
    const double times = factor(mover_of(field.key), spreads[field.key]);
    *number->to = std::clamp(*number->to * times, number->least, number->most);
  }
  return result;
}

}  // namespace

Knowledge kind_of(std::string_view source) {
  if (source.starts_with("assumed")) return Knowledge::assumed;
  return source.find("not on this machine") != std::string_view::npos ? Knowledge::elsewhere
                                                                      : Knowledge::published;
}

std::string_view to_string(Knowledge kind) {
  switch (kind) {
    case Knowledge::published:
      return "published";
    case Knowledge::elsewhere:
      return "elsewhere";
    case Knowledge::assumed:
      break;
  }
  return "assumed";
}

double usual_spread(Knowledge kind) {
  switch (kind) {
    case Knowledge::published:
      return 0.05;
    case Knowledge::elsewhere:
      return 0.20;
    case Knowledge::assumed:
      break;
  }
  return 0.30;
}

double drawn_factor(const std::string& name, double spread, uint32_t index, uint32_t count,
                    uint64_t seed) {
  SEALANE_CHECK(index < count, "a draw beyond the last");
  const double share = (stratum(name, index, count, seed) + 0.5) / count;
  return std::exp(std::log1p(spread) / normal_quantile(0.9) * normal_quantile(share));
}

std::vector<Mover> movers_of(const Platform& platform) {
  Platform copy = platform;
  std::vector<Mover> movers;
  for (const Field& field : fields_of(copy)) {
    if (std::get_if<Number>(&field.target) == nullptr) continue;
    const std::string name = mover_of(field.key);
    auto found = std::find_if(movers.begin(), movers.end(),
                              [&](const Mover& each) { return each.name == name; });
    if (found == movers.end()) found = movers.insert(found, Mover{.name = name});
    for (const Parameter& each : platform.parameters) {
      if (each.key != field.key || each.spread < found->spread) continue;
      found->spread = each.spread;
      found->kind = each.kind;
    }
  }
  return movers;
}

Platform moved(const Platform& platform, std::string_view mover, int direction) {
  return scaled(platform, [&](const std::string& name, double spread) {
    return name == mover ? std::pow(1 + spread, direction) : 1.0;
  });
}

Platform drawn(const Platform& platform, uint32_t index, uint32_t count, uint64_t seed) {
  return scaled(platform, [&](const std::string& name, double spread) {
    return drawn_factor(name, spread, index, count, seed);
  });
}

}  // namespace sealane
