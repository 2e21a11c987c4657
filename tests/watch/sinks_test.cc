// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do --stats and --trace say what happened, in files that others can read?

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <set>
#include <thread>
#include <vector>

#include "watch/chrome_trace.h"
#include "watch/scratch.h"
#include "watch/stats.h"

namespace sealane::serve {
namespace {

using nlohmann::json;
using test::contents;
using test::Scratch;

Instant at_us(int64_t us) { return Instant(std::chrono::microseconds(us)); }

Event copy_event(Direction direction, Route route, uint64_t bytes, int64_t begin_us,
                 int64_t end_us) {
  Event event;
  event.kind = EventKind::copy;
  event.direction = direction;
  event.route = route;
  event.asynchronous = true;
  event.pinned = true;
  event.bytes = bytes;
  event.begin = at_us(begin_us);
  event.end = at_us(end_us);
  return event;
}

Event message_event(Direction direction, Answer answer, uint64_t bytes) {
  Event event;
  event.kind = EventKind::message;
  event.direction = direction;
  event.answer = answer;
  event.bytes = bytes;
  event.begin = at_us(1000);
  event.end = at_us(1100);
  return event;
}

TEST(Stats, CountsByKindAndRoute) {
  const Scratch scratch;
  Stats stats({.path = scratch.file("s.json"), .summary = false, .costs = {}});
  stats.handle(copy_event(Direction::to_device, Route::carried, 1 << 20, 1000, 1010));
  stats.handle(copy_event(Direction::to_device, Route::carried, 1 << 20, 2000, 2010));
  stats.handle(copy_event(Direction::to_host, Route::passed_capture, 64, 3000, 3500));
  stats.handle(message_event(Direction::to_device, Answer::slot, 3 << 20));
  stats.handle(message_event(Direction::to_device, Answer::real, 1 << 20));
  stats.finish();

  const json found = json::parse(contents(scratch.file("s.json")));
  EXPECT_EQ(found["to_device"]["copies"], 2);
  EXPECT_EQ(found["to_device"]["bytes"], 2 << 20);
  EXPECT_EQ(found["to_device"]["carried_bytes"], 2 << 20);
  EXPECT_DOUBLE_EQ(found["to_device"]["blocked_s"], 20e-6);
  EXPECT_EQ(found["to_host"]["passed_copies"], 1);
  EXPECT_DOUBLE_EQ(found["to_host"]["blocked_s"], 500e-6);
  ASSERT_EQ(found["copies"].size(), 2u);
  EXPECT_EQ(found["copies"][1]["route"], "passed_capture");
  EXPECT_EQ(found["copies"][1]["direction"], "to_host");
  EXPECT_EQ(found["copies"][0]["memory"], "pinned");
  EXPECT_DOUBLE_EQ(found["speculation"]["hit_rate"], 0.75);
  EXPECT_DOUBLE_EQ(found["seconds"], 2500e-6);
}

TEST(Stats, EstimatesStockFromThePlatform) {
  // One message of 1 MiB from pinned memory: toll + message + AEAD + link.
  const StockCosts costs = read_stock_costs(
      "platform=toy to_device.cc.toll_us=10 to_device.cc.message_us=5 "
      "to_device.cc.stock_aead_gb_per_s=1.048576 to_device.cc.link_gb_per_s=10.48576 "
      "cc.message_bytes_max=1048576 cc.message_ramp_bytes=65536");
  EXPECT_EQ(costs.from, "toy");
  EXPECT_NEAR(costs.copy_ns(Direction::to_device, true, 1 << 20), 10e3 + 5e3 + 1000e3 + 100e3, 1);
  // Four messages: the link works on the one before.
  EXPECT_NEAR(costs.copy_ns(Direction::to_device, true, 4 << 20), 10e3 + 4 * 1005e3 + 100e3, 1);
  // A short message costs its share.
  EXPECT_NEAR(costs.copy_ns(Direction::to_device, true, 32768),
              10e3 + 2.5e3 + 1000e3 / 32 + 100e3 / 32, 1);

  Stats stats({.path = {}, .summary = false, .costs = costs});
  stats.handle(copy_event(Direction::to_device, Route::carried, 1 << 20, 1000, 1001));
  const json found = json::parse(stats.json());
  EXPECT_NEAR(found["to_device"]["stock_blocked_s_estimate"], 1115e-6, 1e-9);
  EXPECT_EQ(found["stock_estimate"]["platform"], "toy");
}

TEST(Stats, NonsenseAmongCostsKeepsTheDefault) {
  const StockCosts costs = read_stock_costs("to_device.cc.toll_us=x to_host.cc.toll_us=-3 = a=");
  EXPECT_EQ(costs.to_device.toll_us, StockCosts().to_device.toll_us);
  EXPECT_EQ(costs.to_host.toll_us, StockCosts().to_host.toll_us);
}

TEST(Stats, TellsDeviceTime) {
  Stats stats({.path = {}, .summary = false, .costs = {}, .dilation = [] { return 20.0; }});
  stats.handle(copy_event(Direction::to_device, Route::passed, 64, 1000, 3000));
  const json found = json::parse(stats.json());
  EXPECT_DOUBLE_EQ(found["to_device"]["blocked_s"], 100e-6);
  EXPECT_EQ(found["dilation"], 20.0);
}

Event profile_event(Call call, int64_t at) {
  Event event;
  event.kind = EventKind::call;
  event.call = call;
  event.text = call == Call::start_profile ? "cuProfilerStart" : "cuProfilerStop";
  event.begin = at_us(at);
  event.end = at_us(at + 1);
  return event;
}

TEST(Stats, TellsApartWhatTheProgramProfiles) {
  Stats stats({.path = {}, .summary = false, .costs = {}});
  const auto copy = [&](uint64_t bytes, Answer answer, int64_t at) {
    stats.handle(copy_event(Direction::to_device, Route::carried, bytes, at, at + 10));
    stats.handle(message_event(Direction::to_device, answer, bytes));
  };
  copy(4096, Answer::engine, 1000);
  EXPECT_FALSE(json::parse(stats.json()).contains("profiled"));
  EXPECT_EQ(stats.summary().find("profiled"), std::string::npos);

  stats.handle(profile_event(Call::stop_profile, 1500));  // without a start
  stats.handle(profile_event(Call::start_profile, 2000));
  copy(1 << 20, Answer::slot, 2100);
  stats.handle(profile_event(Call::start_profile, 2200));  // goes on
  copy(1 << 20, Answer::engine, 2300);
  EXPECT_EQ(json::parse(stats.json())["profiled"]["to_device"]["copies"], 2);  // so far
  stats.handle(profile_event(Call::stop_profile, 2500));
  copy(8192, Answer::engine, 3000);
  stats.handle(profile_event(Call::start_profile, 4000));
  copy(2 << 20, Answer::slot, 4100);
  stats.handle(profile_event(Call::stop_profile, 4200));

  const json found = json::parse(stats.json());
  EXPECT_EQ(found["to_device"]["copies"], 5);
  const json& profiled = found["profiled"];
  EXPECT_EQ(profiled["to_device"]["copies"], 3);
  EXPECT_EQ(profiled["to_device"]["bytes"], 4 << 20);
  EXPECT_DOUBLE_EQ(profiled["to_device"]["blocked_s"], 30e-6);
  EXPECT_DOUBLE_EQ(profiled["seconds"], 700e-6);
  EXPECT_DOUBLE_EQ(profiled["speculation"]["hit_rate"], 0.75);
  EXPECT_LT(found["speculation"]["hit_rate"], 0.75);
  EXPECT_EQ(profiled["calls"].value("cuProfilerStart", 0), 1);  // the one in mid-range
  ASSERT_EQ(profiled["copies"].size(), 1u);
  EXPECT_EQ(profiled["copies"][0]["copies"], 3);
  EXPECT_NE(stats.summary().find("  of these, profiled (700 us)\n"
                                 "  to device          3    4.00 MiB   100.0 %         30.0 us"),
            std::string::npos)
      << stats.summary();
}

// A lane of GPU 1 that has sealed ahead for a while, then for a while longer.
bool later = false;
std::vector<SpeculationStats> a_lane() {
  SpeculationStats lane{
      .device = 1, .lane = 4, .answered = 9, .answered_ahead = 6, .slot_bytes = 1 << 20};
  lane.pipeline = {.requests = 10, .hits = 5, .guesses = 7, .messages = 12};
  lane.pipeline.voided = 3;
  lane.pipeline.voided_for[static_cast<size_t>(VoidReason::stale)] = 1;
  lane.pipeline.voided_for[static_cast<size_t>(VoidReason::budget)] = 2;
  lane.pipeline.padded = 4;
  lane.pipeline.held = 1;
  lane.slot_bytes_peak = 3 << 20;
  lane.leader = "fifo";
  lane.predictors = {{"fifo", 0.5, 0.9, 5, 5}, {"lifo", 0, 0, 0, 10}};
  if (later) {
    lane.pipeline.requests += 10;
    lane.pipeline.hits += 10;
    lane.pipeline.messages += 20;
    lane.answered_ahead += 20;
    lane.pipeline.voided_for[static_cast<size_t>(VoidReason::stale)] += 2;
    lane.pipeline.voided += 2;
    lane.leader = {};
  }
  return {lane};
}

TEST(Stats, TellWhatSealingAheadDidLaneByLane) {
  later = false;
  Stats stats({.path = {}, .summary = true, .costs = {}, .lanes = &a_lane});
  stats.handle(copy_event(Direction::to_device, Route::carried, 1 << 20, 1000, 1010));
  const json before = json::parse(stats.json())["speculation"];
  ASSERT_EQ(before["lanes"].size(), 1u);
  const json& lane = before["lanes"][0];
  EXPECT_EQ(lane["device"], 1);
  EXPECT_EQ(lane["lane"], 4);
  EXPECT_EQ(lane["leader"], "fifo");
  EXPECT_EQ(lane["hits"], 5);
  EXPECT_EQ(lane["misses"], 5);
  EXPECT_EQ(lane["guesses"], 7);
  EXPECT_EQ(lane["pads"], 4);
  EXPECT_EQ(lane["holds"], 1);
  EXPECT_DOUBLE_EQ(lane["foreseen_rate"], 0.5);
  EXPECT_DOUBLE_EQ(lane["hit_rate"], 0.5);
  EXPECT_EQ(lane["voided"]["stale"], 1);
  EXPECT_EQ(lane["voided"]["passed"], 0);
  EXPECT_EQ(lane["voided"]["budget"], 2);
  EXPECT_EQ(lane["slot_bytes"], 1 << 20);
  EXPECT_EQ(lane["slot_bytes_peak"], 3 << 20);
  EXPECT_EQ(lane["predictors"][0]["name"], "fifo");
  EXPECT_EQ(lane["predictors"][1]["misses"], 10);
  EXPECT_NE(stats.summary().find(
                "  sealing ahead on lane 4 of GPU 1: 5 of 10 bulk copies foreseen, 50.0 % of\n"
                "  their messages sealed ahead\n"
                "    fifo leads; voided 3 slots (stale 1, budget 2), 4 pads, 1 holds, at most\n"
                "    3.00 MiB in slots\n"),
            std::string::npos)
      << stats.summary();

  stats.handle(profile_event(Call::start_profile, 2000));
  later = true;
  stats.handle(profile_event(Call::stop_profile, 3000));
  const json found = json::parse(stats.json());
  const json& profiled = found["profiled"]["speculation"]["lanes"][0];
  EXPECT_EQ(profiled["requests"], 10);
  EXPECT_EQ(profiled["hits"], 10);
  EXPECT_DOUBLE_EQ(profiled["hit_rate"], 1);
  EXPECT_EQ(profiled["voided"]["stale"], 2);
  EXPECT_EQ(profiled["voided"]["budget"], 0);
  EXPECT_EQ(found["speculation"]["requests"], 20);
  EXPECT_EQ(found["speculation"]["hits"], 15);
  EXPECT_EQ(found["speculation"]["lanes"][0]["leader"], "");
  EXPECT_NE(stats.summary().find("    profiled: 10 of 10 bulk copies foreseen, 100.0 %"),
            std::string::npos)
      << stats.summary();
  EXPECT_NE(stats.summary().find("no predictor leads"), std::string::npos);
}

TEST(Stats, SaysNothingIfNothingHappened) {
  const Scratch scratch;
  Stats stats({.path = scratch.file("s.json"), .summary = true, .costs = {}});
  testing::internal::CaptureStderr();
  stats.finish();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_FALSE(std::filesystem::exists(scratch.file("s.json")));
}

TEST(Stats, CountsEveryEventOfManyThreads) {
  Stats stats({.path = {}, .summary = false, .costs = {}});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        stats.handle(copy_event(Direction::to_device, Route::carried, 3, 1000 + i, 1001 + i));
        Event call;
        call.kind = EventKind::call;
        call.text = "cuLaunchKernel";
        stats.handle(call);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const json found = json::parse(stats.json());
  EXPECT_EQ(found["to_device"]["copies"], 20000);
  EXPECT_EQ(found["to_device"]["bytes"], 60000);
  EXPECT_EQ(found["calls"]["cuLaunchKernel"], 20000);
}

TEST(Stats, SummaryReadsWell) {
  Stats stats({.path = {}, .summary = true, .costs = {}});
  stats.handle(copy_event(Direction::to_device, Route::carried, 64 << 20, 1000, 1250));
  stats.handle(copy_event(Direction::to_host, Route::passed, 4096, 2000, 2040));
  EXPECT_EQ(stats.summary(),
            "sealane: 1.04 ms from the first GPU call to the last\n"
            "  direction     copies       bytes   carried  callers waited  stock, estimated\n"
            "  to device          1    64.0 MiB   100.0 %          250 us           6.52 ms\n"
            "  to host            1    4.00 KiB     0.0 %         40.0 us           11.1 us\n"
            "  waiting calls 0, 0; own threads' CPU 0\n");
}

TEST(Stats, AFileThatCannotBeWrittenIsOneLine) {
  Stats stats({.path = "/nowhere/at/all.json", .summary = false, .costs = {}});
  stats.handle(copy_event(Direction::to_device, Route::carried, 1, 1, 2));
  testing::internal::CaptureStderr();
  stats.finish();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "sealane: cannot write /nowhere/at/all.json: No such file or directory\n");
}

// Events of one name, of a track.
std::vector<json> named(const json& trace, const std::string& category) {
  std::vector<json> out;
  for (const json& event : trace["traceEvents"]) {
    if (event.value("cat", "") == category && event["ph"] == "X") out.push_back(event);
  }
  return out;
}

std::set<std::string> names_of(const json& trace, const std::string& what) {
  std::set<std::string> out;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == what) out.insert(event["args"]["name"]);
  }
  return out;
}

TEST(ChromeTrace, ShowsThreadsLanesWorkersAndTheDevice) {
  const Scratch scratch;
  ChromeTrace trace(scratch.file("t.json"), at_us(500), nullptr);
  std::thread application([&] {
    Event event = copy_event(Direction::to_device, Route::carried, 2 << 20, 1000, 1004);
    event.id = 7;
    trace.handle(event);
    Event wait;
    wait.kind = EventKind::wait;
    wait.text = "cuStreamSynchronize";
    wait.begin = at_us(1010);
    wait.end = at_us(1800);
    trace.handle(wait);
  });
  application.join();
  std::thread worker([&] {
    Event part;
    part.kind = EventKind::part;
    part.bytes = 1 << 18;
    part.begin = at_us(1100);
    part.end = at_us(1150);
    trace.handle(part);
  });
  worker.join();
  std::thread lane([&] {
    trace.handle(message_event(Direction::to_device, Answer::parallel, 1 << 20));
    Event carried = copy_event(Direction::to_device, Route::carried, 2 << 20, 1050, 1700);
    carried.kind = EventKind::carried;
    carried.id = 7;
    trace.handle(carried);
  });
  lane.join();
  trace.finish();

  const json found = json::parse(contents(scratch.file("t.json")));
  const auto copies = named(found, "copy");
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0]["name"], "copy to device 2.00 MiB");
  EXPECT_EQ(copies[0]["ts"], 500.0);
  EXPECT_EQ(copies[0]["dur"], 4.0);
  EXPECT_EQ(copies[0]["args"]["route"], "carried");
  ASSERT_EQ(named(found, "wait").size(), 1u);
  EXPECT_EQ(named(found, "wait")[0]["name"], "cuStreamSynchronize");
  ASSERT_EQ(named(found, "bus").size(), 1u);
  EXPECT_EQ(named(found, "bus")[0]["pid"], 100);

  const auto threads = names_of(found, "thread_name");
  for (const std::string role : {"application ", "worker ", "lane "}) {
    EXPECT_TRUE(std::any_of(threads.begin(), threads.end(), [&](const std::string& name) {
      return name.starts_with(role);
    })) << role;
  }
  EXPECT_EQ(names_of(found, "process_name"), (std::set<std::string>{"program", "GPU 0"}));

  int arrows = 0;
  for (const json& event : found["traceEvents"]) {
    arrows += (event["ph"] == "s" || event["ph"] == "f") && event["id"] == 7 ? 1 : 0;
  }
  EXPECT_EQ(arrows, 2);
}

TEST(ChromeTrace, ShowsSealingAhead) {
  const Scratch scratch;
  ChromeTrace trace(scratch.file("t.json"), at_us(0), nullptr);
  Event event;
  event.kind = EventKind::leader;
  event.device = 2;
  event.lane = 5;
  event.text = "markov";
  event.begin = event.end = at_us(10);
  trace.handle(event);
  event.text = "";
  event.begin = event.end = at_us(20);
  trace.handle(event);
  event.kind = EventKind::slots;
  event.bytes = 4096;
  event.begin = event.end = at_us(30);
  trace.handle(event);
  event.kind = EventKind::sealed;
  event.asynchronous = true;
  event.begin = at_us(40);
  event.end = at_us(45);
  std::thread([&] { trace.handle(event); }).join();
  event.asynchronous = false;
  std::thread([&] { trace.handle(event); }).join();
  trace.handle(message_event(Direction::to_device, Answer::slot, 1 << 20));
  trace.finish();

  const json found = json::parse(contents(scratch.file("t.json")));
  std::vector<json> leaders;
  std::vector<json> counters;
  for (const json& one : found["traceEvents"]) {
    if (one["ph"] == "i") leaders.push_back(one);
    if (one["ph"] == "C") counters.push_back(one);
  }
  ASSERT_EQ(leaders.size(), 2u);
  EXPECT_EQ(leaders[0]["name"], "lane 5: markov leads");
  EXPECT_EQ(leaders[0]["pid"], 102);
  EXPECT_EQ(leaders[0]["s"], "t");
  EXPECT_EQ(leaders[1]["name"], "lane 5: nobody leads");
  ASSERT_EQ(counters.size(), 1u);
  EXPECT_EQ(counters[0]["args"]["bytes"], 4096);
  EXPECT_EQ(counters[0]["name"], "slots of lane 5");
  EXPECT_EQ(counters[0]["ts"], 30.0);
  const auto sealed = named(found, "ahead");
  ASSERT_EQ(sealed.size(), 2u);
  EXPECT_EQ(sealed[0]["name"], "seal ahead 4.00 KiB");
  EXPECT_EQ(sealed[0]["dur"], 5.0);
  EXPECT_EQ(sealed[1]["name"], "seal 4.00 KiB");
  EXPECT_EQ(named(found, "message")[0]["name"], "hit 1.00 MiB");
  EXPECT_TRUE(names_of(found, "thread_name").contains("prediction"));
}

TEST(ChromeTrace, GoesOnAfterItsEnd) {
  const Scratch scratch;
  ChromeTrace trace(scratch.file("t.json"), at_us(0), nullptr);
  trace.handle(copy_event(Direction::to_device, Route::passed, 1, 1, 2));
  trace.finish();
  EXPECT_EQ(named(json::parse(contents(scratch.file("t.json"))), "copy").size(), 1u);
  trace.handle(copy_event(Direction::to_device, Route::passed, 1, 3, 4));
  trace.finish();
  EXPECT_EQ(named(json::parse(contents(scratch.file("t.json"))), "copy").size(), 2u);
}

}  // namespace
}  // namespace sealane::serve
