// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/try.h"
#include "estimate/validation_parts.h"
#include "platform/cost.h"

namespace sealane::estimate {
namespace {

constexpr const char* kFirst = "ISPASS'25 artifact";
constexpr const char* kSecond = "ISPASS'26 artifact";
constexpr const char* kBlackwell = "arXiv 2608.26575";

struct Point {
  uint64_t bytes;
  double published;
  bool calibrated = false;  // it set a toll, a latency or a rate
};
using Points = std::vector<Point>;

// Points of one machine, direction and kind of memory.
struct Series {
  const char* platform;
  bool to_device;
  HostMemory memory;
  bool cc;
  const char* source;
  bool rates;  // GB/s instead of us
  Points points;
};

constexpr bool kSet = true;  // a parameter
constexpr bool kToDevice = true;
constexpr bool kToHost = false;

// Six sizes, of which the first and the last set the parameters.
Points six(const std::vector<double>& values) {
  const std::vector<uint64_t> sizes{64_KiB, 256_KiB, 1_MiB, 4_MiB, 16_MiB, 64_MiB};
  Points points;
  for (size_t i = 0; i < values.size(); ++i) {
    points.push_back({sizes[i], values[i], i == 0 || i + 1 == values.size()});
  }
  return points;
}

// Times of the first study's machine.
Series timed(bool to_device, HostMemory memory, bool cc, Points points) {
  return {"h100-nvl-tdx", to_device, memory, cc, kFirst, false, std::move(points)};
}

// Rates, of pinned memory.
Series rated(const char* platform, bool to_device, bool cc, const char* source, Points points) {
  return {platform, to_device, HostMemory::pinned, cc, source, true, std::move(points)};
}

std::vector<Series> sealed_series() {
  constexpr HostMemory kPinned = HostMemory::pinned;
  constexpr HostMemory kPageable = HostMemory::pageable;
  const auto second = [](const char* platform, bool to_device, const std::vector<double>& values) {
    return rated(platform, to_device, true, kSecond, six(values));
  };
  const Points pinned_in{
      {64, 21.9, kSet}, {4_KiB, 24.0}, {64_KiB, 52.3, kSet}, {1_MiB, 399}, {32_MiB, 11'079, kSet}};
  const Points pinned_out{
      {64, 21.5, kSet}, {4_KiB, 23.1}, {64_KiB, 45.8, kSet}, {1_MiB, 382}, {32_MiB, 11'255, kSet}};
  const Points pageable_in{
      {4_KiB, 46.9}, {64_KiB, 95.6}, {1_MiB, 443}, {4_MiB, 1'607}, {32_MiB, 12'267, kSet}};
  const Points pageable_out{
      {4_KiB, 50.5}, {64_KiB, 83.9}, {1_MiB, 482}, {4_MiB, 1'638}, {32_MiB, 12'650, kSet}};
  const Points blackwell{{1_MiB, 7.2}, {16_MiB, 9.5, kSet}, {64_MiB, 9.5, kSet}};
  return {timed(kToDevice, kPinned, true, pinned_in),
          timed(kToHost, kPinned, true, pinned_out),
          second("h100-tdx", kToDevice, {2.1, 5.7, 8.0, 9.3, 10.1, 10.3}),
          second("h100-tdx", kToHost, {2.6, 5.7, 7.8, 9.5, 10.7, 10.7}),
          second("h100-sev", kToDevice, {1.9, 3.0, 3.6, 4.0, 4.2, 4.25}),
          second("h100-sev", kToHost, {1.9, 3.0, 3.6, 4.1, 4.2, 4.3}),
          rated("b200-tdx", kToDevice, true, kBlackwell, blackwell),
          timed(kToDevice, kPageable, true, pageable_in),
          timed(kToHost, kPageable, true, pageable_out)};
}

// A loss is against these.
std::vector<Series> open_series() {
  const auto first = [](bool to_device, HostMemory memory, Points points) {
    return timed(to_device, memory, false, std::move(points));
  };
  const auto second = [](const char* platform, bool to_device, Points points) {
    return rated(platform, to_device, false, kSecond, std::move(points));
  };
  return {
      first(kToDevice, HostMemory::pinned, {{4_KiB, 2.08}, {64_KiB, 3.51}, {1_MiB, 26.3}}),
      first(kToHost, HostMemory::pinned, {{4_KiB, 1.89}, {64_KiB, 3.0}, {1_MiB, 26.7}}),
      first(kToDevice, HostMemory::pageable, {{64_KiB, 21.1}, {1_MiB, 112}, {4_MiB, 416}}),
      second("h100-tdx", kToDevice, {{256_KiB, 25.6}, {1_MiB, 44.8}, {16_MiB, 54.6}}),
      second("h100-tdx", kToHost, {{256_KiB, 40.3}, {1_MiB, 49.2}, {16_MiB, 55.2}}),
      second("h100-sev", kToDevice, {{256_KiB, 22.2}, {1_MiB, 21.8}, {16_MiB, 27.9}}),
      second("h100-sev", kToHost, {{256_KiB, 26.0}, {1_MiB, 27.5}, {4_MiB, 28.1}}),
  };
}

std::string size_text(uint64_t bytes) {
  if (bytes >= 1_MiB) return fmt::format("{} MiB", bytes / 1_MiB);
  if (bytes >= 1_KiB) return fmt::format("{} KiB", bytes / 1_KiB);
  return fmt::format("{} B", bytes);
}

Check check_point(const Platform& platform, const Series& series, const Point& point) {
  const Path& path = series.to_device ? platform.to_device : platform.to_host;
  const Duration time = series.cc ? stock_copy_time(platform, path, series.memory, point.bytes)
                                  : open_copy_time(path, series.memory, point.bytes);
  const double us = static_cast<double>(time.count()) / 1e3;
  const bool pinned = series.memory == HostMemory::pinned;
  return {.group = series.cc ? "copies" : "copies, CC off",
          .what = fmt::format("{} {}, {}{}", series.platform,
                              series.to_device ? "to device" : "to host", pinned ? "" : "pageable ",
                              size_text(point.bytes)),
          .unit = series.rates ? "GB/s" : "us",
          .published_low = point.published,
          .published_high = point.published,
          .predicted = series.rates ? static_cast<double>(point.bytes) / us / 1e3 : us,
          .calibrated = point.calibrated,
          .source = series.source};
}

// Rates with CC on as a share of those with CC off.
Check check_share(const Platform& platform, const char* what, const Path& path, double published) {
  constexpr uint64_t kBytes = 64_MiB;
  const Duration off = open_copy_time(path, HostMemory::pinned, kBytes);
  const Duration on = stock_copy_time(platform, path, HostMemory::pinned, kBytes);
  return {.group = "copies",
          .what = what,
          .unit = "x",
          .published_low = published,
          .published_high = published,
          .predicted = static_cast<double>(off.count()) / static_cast<double>(on.count()),
          .source = "arXiv 2606.23969",
          .note = "another GPU (B200), whose link is assumed; size assumed: 64 MiB"};
}

}  // namespace

Result<std::vector<Check>> check_copies(const PlatformOf& platform_of) {
  std::vector<Check> checks;
  const auto add = [&](const std::vector<Series>& all) -> Status {
    for (const Series& series : all) {
      SEALANE_LET(const auto platform, platform_of(series.platform));
      for (const Point& point : series.points) {
        checks.push_back(check_point(platform, series, point));
      }
    }
    return {};
  };
  SEALANE_TRY(add(sealed_series()));
  SEALANE_LET(const auto blackwell, platform_of("b200-tdx"));
  checks.push_back(check_share(blackwell, "B300 to device, of CC off", blackwell.to_device, 0.203));
  checks.push_back(check_share(blackwell, "B300 to host, of CC off", blackwell.to_host, 0.211));
  SEALANE_TRY(add(open_series()));
  return checks;
}

}  // namespace sealane::estimate
