// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do the cost model and the shipped platform files reproduce the published copy times? The points
// each file was solved from are marked; the others are checks.

#include "platform/cost.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/bytes.h"
#include "platform/reader.h"

namespace sealane {
namespace {

Platform shipped(const std::string& name) {
  auto platform = find_platform(name);
  if (!platform) ADD_FAILURE() << platform.error().message;
  return platform ? *platform : Platform{};
}

double us(Duration time) { return static_cast<double>(time.count()) / 1e3; }

struct Published {
  uint64_t bytes;
  double off_us;
  double on_us;
};

void expect_copies(const Platform& platform, const Path& path, const std::vector<Published>& points,
                   double tolerance) {
  for (const Published& point : points) {
    const double off = us(open_copy_time(path, HostMemory::pinned, point.bytes));
    const double on = us(stock_copy_time(platform, path, HostMemory::pinned, point.bytes));
    EXPECT_NEAR(off / point.off_us, 1, tolerance) << platform.name << " off " << point.bytes;
    EXPECT_NEAR(on / point.on_us, 1, tolerance) << platform.name << " on " << point.bytes;
  }
}

TEST(Cost, H100NvlTdxCopyTimes) {
  const Platform p = shipped("h100-nvl-tdx");
  // Solved from 64 B, 64 KiB and 32 MiB (CC on); 64 B and 1 GiB (off).
  expect_copies(p, p.to_device,
                {{64, 2.05, 21.9},
                 {4_KiB, 2.1, 24.0},
                 {64_KiB, 3.5, 52.3},
                 {1_MiB, 26.3, 399},
                 {32_MiB, 781, 11'079}},
                0.05);
  expect_copies(
      p, p.to_host,
      {{64, 1.94, 21.5},
       {4_KiB, 1.9, 23.1},
       {64_KiB, 3.0, 45.8},
       {1_MiB, 26.7, 382},
       {32_MiB, 860, 11'255}},
      0.22);  // off at 64 KiB the link is faster than its bulk rate; the rest is within 8 %
}

TEST(Cost, H100NvlTdxPageableCopyTimes) {
  const Platform p = shipped("h100-nvl-tdx");
  EXPECT_NEAR(us(open_copy_time(p.to_device, HostMemory::pageable, 64)), 8.7, 0.1);
  EXPECT_NEAR(us(open_copy_time(p.to_device, HostMemory::pageable, 1_MiB)), 112, 6);
  EXPECT_NEAR(us(stock_copy_time(p, p.to_device, HostMemory::pageable, 64)), 36.9, 0.2);
  const double bulk = us(stock_copy_time(p, p.to_device, HostMemory::pageable, 32_MiB));
  EXPECT_NEAR(33'554.432 / bulk, 2.74, 0.05);  // GB/s
}

// Published as GB/s at 64 KiB, 256 KiB, 1, 4, 16 and 64 MiB; solved from 64 KiB and 64 MiB.
std::vector<Published> from_rates(const std::vector<double>& off, const std::vector<double>& on) {
  const uint64_t sizes[] = {64_KiB, 256_KiB, 1_MiB, 4_MiB, 16_MiB, 64_MiB};
  std::vector<Published> points;
  for (size_t i = 0; i < off.size(); ++i) {
    const double bytes = static_cast<double>(sizes[i]);
    points.push_back({sizes[i], bytes / off[i] / 1e3, bytes / on[i] / 1e3});
  }
  return points;
}

TEST(Cost, H100TdxCopyRates) {
  const Platform p = shipped("h100-tdx");
  expect_copies(p, p.to_device,
                from_rates({13.9, 25.6, 44.8, 52.6, 54.6, 55.4}, {2.1, 5.7, 8.0, 9.3, 10.1, 10.3}),
                0.20);
  expect_copies(p, p.to_host,
                from_rates({22.0, 40.3, 49.2, 53.8, 55.2, 55.5}, {2.6, 5.7, 7.8, 9.5, 10.7, 10.7}),
                0.08);
}

TEST(Cost, H100SevCopyRates) {
  const Platform p = shipped("h100-sev");
  expect_copies(p, p.to_device,
                from_rates({14.0, 22.2, 21.8, 25.9, 27.9, 28.3}, {1.9, 3.0, 3.6, 4.0, 4.2, 4.25}),
                0.18);
  expect_copies(p, p.to_host,
                from_rates({20.7, 26.0, 27.5, 28.1, 28.2, 25.7}, {1.9, 3.0, 3.6, 4.1, 4.2, 4.3}),
                0.10);
}

// The raw measurements, where they are at hand: pinned copies of at least 64 KiB.
TEST(Cost, RawMeasurements) {
  const auto directory = std::filesystem::path(SEALANE_SHARED_DATA) / "copies";
  if (!std::filesystem::exists(directory)) GTEST_SKIP() << "no measurements in " << directory;
  for (const char* name : {"h100-nvl-tdx", "h100-tdx", "h100-sev"}) {
    const Platform p = shipped(name);
    std::ifstream file(directory / (std::string(name) + ".csv"));
    std::string line;
    std::getline(file, line);
    const bool has_time = line.find("us_per_copy") != std::string::npos;
    size_t points = 0;
    while (std::getline(file, line)) {
      std::istringstream cells(line);
      std::string direction, memory, cc, bytes_text, number;
      std::getline(cells, direction, ',');
      std::getline(cells, memory, ',');
      std::getline(cells, cc, ',');
      std::getline(cells, bytes_text, ',');
      std::getline(cells, number, ',');
      const uint64_t bytes = std::stoull(bytes_text);
      if (memory != "pinned" || bytes < 64_KiB) continue;
      const double value = std::stod(number);
      const double measured = has_time ? value : static_cast<double>(bytes) / value / 1e3;
      const Path& path = direction == "h2d" ? p.to_device : p.to_host;
      const Duration model = cc == "on" ? stock_copy_time(p, path, HostMemory::pinned, bytes)
                                        : open_copy_time(path, HostMemory::pinned, bytes);
      EXPECT_NEAR(us(model) / measured, 1, 0.22) << name << ": " << line;
      ++points;
    }
    EXPECT_GT(points, 20u) << name;
  }
}

TEST(Cost, MessagesOfACopy) {
  ConfidentialMode cc;
  cc.message_bytes_max = 1_MiB;
  EXPECT_EQ(message_count(cc, 0), 1u);
  EXPECT_EQ(message_count(cc, 1), 1u);
  EXPECT_EQ(message_count(cc, 1_MiB), 1u);
  EXPECT_EQ(message_count(cc, 1_MiB + 1), 2u);
}

// The closed form is the two-stage pipeline it claims to be, for any sizes and rates.
RC_GTEST_PROP(Cost, StockCopyIsAPipelineOverItsMessages, ()) {
  Platform p = shipped("h100-nvl-tdx");
  p.to_device.cc.link_gb_per_s = *rc::gen::element(0.5, 3.0, 50.0);
  p.cc.message_bytes_max = *rc::gen::element<uint64_t>(64_KiB, 1_MiB);
  const auto bytes = *rc::gen::inRange<uint64_t>(0, 20_MiB);
  const SealedPath& path = p.to_device.cc;

  Duration core{0};
  Duration link{0};
  for (uint64_t left = bytes; left > 0;) {
    const uint64_t message = std::min(left, p.cc.message_bytes_max);
    core += stock_aead_time(p, path, message, bytes) + message_time(p.cc, path, message);
    link = std::max(link, core) + link_time(path, message);
    left -= message;
  }
  const Duration total = toll_time(path, HostMemory::pinned) + link;
  RC_ASSERT(stock_copy_time(p, p.to_device, HostMemory::pinned, bytes) == total);
}

RC_GTEST_PROP(Cost, MoreBytesNeverTakeLess, (uint32_t a, uint32_t b)) {
  static const Platform p = shipped("h100-tdx");
  const auto [less, more] = std::minmax(a, b);
  RC_ASSERT(stock_copy_time(p, p.to_host, HostMemory::pageable, less) <=
            stock_copy_time(p, p.to_host, HostMemory::pageable, more));
}

TEST(Cost, MemoryBoundsTheSealingCores) {
  Host host;
  host.cores = 64;
  host.fast_aead_gb_per_s = 5;
  host.memory_gb_per_s = 100;
  EXPECT_EQ(sealing_cores_max(host), 10u);
  host.cores = 4;
  EXPECT_EQ(sealing_cores_max(host), 4u);
  host.memory_gb_per_s = 1;
  EXPECT_EQ(sealing_cores_max(host), 1u);
}

}  // namespace
}  // namespace sealane
