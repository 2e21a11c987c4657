// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Nsight exports as programs: what is read, what is guessed, what is refused.

#include "workload/nsys.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "workload/program_checker.h"
#include "workload/trace.h"

namespace sealane::workload {
namespace {

constexpr const char* kApi =
    "Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid,T-Pri,Thread Name\n"
    "100,50,cudaMallocHost,0,1,7,7,20,program\n"
    "1000,100,cudaMemcpy,0,2,7,7,20,program\n"
    "1200,9000,cudaLaunchKernel,0,3,7,7,20,program\n"
    "10300,20,cudaEventRecord,0,4,7,7,20,program\n"
    "10400,30,cudaEventSynchronize,0,5,7,7,20,program\n"
    "10500,40,cudaFree,0,6,7,7,20,program\n"
    "10600,100,cudaMemcpyAsync,0,7,7,7,20,program\n"
    "10800,100,cudaDeviceSynchronize,0,8,7,7,20,program\n";
constexpr const char* kGpu =
    "Start (ns),Duration (ns),CorrId,Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Ctx,Strm,Name\n"
    "1050,40,2,4.000,100000,Pinned,Device,1,7,[CUDA memcpy Host-to-Device]\n"
    "10250,30,3,,,,,1,7,\"kernel(float *, int)\"\n"
    "10650,1000,7,0.000,12.000,Device,Pageable,1,7,[CUDA memcpy Device-to-Host]\n";

Result<Program> parse(const std::string& api, const std::string& gpu) {
  std::istringstream api_in(api);
  std::istringstream gpu_in(gpu);
  return parse_nsys(api_in, "run_cuda_api_trace.csv", gpu_in, "run_cuda_gpu_trace.csv");
}

std::string error_of(const std::string& api, const std::string& gpu) {
  const auto program = parse(api, gpu);
  if (program) return "accepted";
  EXPECT_EQ(program.error().kind, ErrorKind::usage);
  return program.error().message;
}

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Nsys, NumbersOfContextsAreNamesHoweverLarge) {
  const auto large = parse(kApi, changed(kGpu, "Pinned,Device,1,", "Pinned,Device,4000000000,"));
  ASSERT_TRUE(large) << large.error().message;
  EXPECT_EQ(format_trace(*large).find("c4000000000"), std::string::npos);
  EXPECT_NE(format_trace(*large).find("create context c65536 "), std::string::npos);
}

TEST(Nsys, BecomesAProgram) {
  const auto program = parse(kApi, kGpu);
  ASSERT_TRUE(program) << program.error().message;
  std::string text;
  for (const Operation& operation : *program) {
    text += to_text(operation.action) + " +" + std::to_string(operation.think.count()) + "\n";
  }
  EXPECT_EQ(text,
            "create context c1 +0\n"
            "create stream s1 c1 blocking +0\n"
            "copy h2d s1 0x300000000 0x7f0000000000 4000000 pinned sync +0\n"
            "launch s1 30 +100\n"
            "create event e1 +100\n"
            "record e1 s1 +0\n"
            "sync event e1 +80\n"
            "copy d2h s1 0x7f00003d2000 0x300000000 12 pageable async +170\n"  // the free's time
            "sync context c1 +100\n");
  ProgramChecker checker;
  for (const Operation& operation : *program) EXPECT_TRUE(checker.check(operation));
}

// With CC these calls take longer, so the program has them; without, they take what they took.
TEST(Nsys, CallsThatReachTheDeviceAreCalls) {
  const auto program = parse(
      "Start (ns),Duration (ns),Name,CorrID,Tid\n"
      "100,50,cudaMalloc,1,7\n"
      "1000,100,cudaMemcpy,2,7\n"
      "1200,9000,cudaLaunchKernel,3,7\n"
      "10300,20,cudaEventCreate,4,7\n"
      "10400,30,cudaMalloc,5,7\n"
      "10500,40,cudaMallocHost,6,7\n"
      "10600,50,cudaFree,8,7\n"
      "10700,60,cudaFree,9,7\n"
      "10800,10,cudaDeviceSynchronize,10,7\n",
      kGpu);
  ASSERT_TRUE(program) << program.error().message;
  std::string text;
  for (size_t i = 4; i < program->size(); ++i) {
    const Operation& operation = (*program)[i];
    text += to_text(operation.action) + " +" + std::to_string(operation.think.count()) + "\n";
  }
  EXPECT_EQ(text,
            "create event e1025 +120\n"
            "alloc device c1 0x800001000 4096 +110\n"
            "free device 0x800001000 +220\n"  // the pinned allocation's time is in it
            "sync context c1 +150\n");        // and here that of a free of something older
  ProgramChecker checker;
  for (const Operation& operation : *program) EXPECT_TRUE(checker.check(operation));
}

TEST(Nsys, UnitsComeFromTheHeader) {
  const std::string api =
      changed(changed(kApi, "Start (ns)", "Start (us)"), "Duration (ns)", "Duration (us)");
  const std::string gpu =
      changed(changed(kGpu, "Bytes (MB)", "Bytes (KiB)"), "Duration (ns)", "Duration (ms)");
  const auto program = parse(api, gpu);
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_EQ(std::get<Copy>((*program)[2].action).host.bytes, 4096u);
  EXPECT_EQ(std::get<Launch>((*program)[3].action).run_time, Duration(30'000'000));
  EXPECT_EQ((*program)[3].think, Duration(100'000));
}

TEST(Nsys, WhatIsWrongIsNamedWithFileAndLine) {
  const std::string file = "run_cuda_api_trace.csv:";
  EXPECT_EQ(error_of("", kGpu), file + "1: the file is empty");
  EXPECT_EQ(error_of(changed(kApi, "CorrID", "Corr"), kGpu),
            file + "1: the column 'CorrID' is missing");
  EXPECT_EQ(error_of(changed(kApi, "1000,100", "1000,-100"), kGpu),
            file + "3: 'Duration (ns)' is negative");
  EXPECT_EQ(error_of(changed(kApi, "1000,100", "soon,100"), kGpu),
            file + "3: 'Start (ns)' is not a number: 'soon'");
  EXPECT_EQ(error_of(std::string(kApi) + "11000,5", kGpu),
            file + "10: the row has 2 fields, the header has 9: the file may be cut off");
  EXPECT_EQ(error_of(changed(kApi, "(ns)", "(weeks)"), kGpu),
            file + "1: a time in unknown units: 'weeks'");
  EXPECT_EQ(error_of(kApi, changed(kGpu, "SrcMemKd", "Src")),
            "run_cuda_gpu_trace.csv:1: the column 'SrcMemKd' is missing");
  EXPECT_EQ(error_of(kApi, std::string(kGpu) + "1,2,3,,,,,1,7,\"kernel("),
            "run_cuda_gpu_trace.csv:5: a quoted field does not end in this line: the file may be "
            "cut off");
  EXPECT_EQ(error_of("Start (ns),Duration (ns),Name,CorrID,Tid\n1,2,cudaFree,3,4\n", kGpu),
            "run_cuda_api_trace.csv: no copy and no launch in it");
  const std::string on = changed(changed(kGpu, "Pinned,Device", "Managed,Device"), "Host-to-Device",
                                 "Device-to-Device");
  EXPECT_NE(error_of(kApi, on).find("export one with CC off"), std::string::npos);
}

TEST(Nsys, AnyOfThreeNamesWill) {
  std::string folder = testing::TempDir() + "/nsys-test-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string prefix = folder + "/export";
  std::ofstream(prefix + "_cuda_api_trace.csv") << kApi;
  std::ofstream(prefix + "_cuda_gpu_trace.csv") << kGpu;
  for (const char* suffix : {"", "_cuda_api_trace.csv", "_cuda_gpu_trace.csv"}) {
    EXPECT_TRUE(is_nsys(prefix + suffix)) << suffix;
    EXPECT_TRUE(load_nsys(prefix + suffix)) << suffix;
  }
  EXPECT_FALSE(is_nsys(prefix + ".trace"));
  const auto span = nsys_span(prefix);
  ASSERT_TRUE(span);
  EXPECT_EQ(*span, Duration(11'650 - 1'000 - 9'000));  // the first launch loads the module
  std::filesystem::remove(prefix + "_cuda_gpu_trace.csv");
  EXPECT_EQ(load_nsys(prefix).error().message, prefix + "_cuda_gpu_trace.csv: cannot be read");
  std::filesystem::remove_all(folder);
}

// Whatever is cut, swapped or repeated in an export: a program, or one line.
RC_GTEST_PROP(Nsys, AnyDamageIsSurvived, ()) {
  std::string api = kApi;
  std::string gpu = kGpu;
  std::string& damaged = *rc::gen::arbitrary<bool>() ? api : gpu;
  const auto times = *rc::gen::inRange(1, 4);
  for (int i = 0; i < times; ++i) {
    const auto at = *rc::gen::inRange<size_t>(0, damaged.size());
    const auto length = *rc::gen::inRange<size_t>(0, 20);
    damaged.replace(
        at, length,
        *rc::gen::container<std::string>(rc::gen::elementOf(std::string("0123456789,.-\"\n()eE"))));
    if (damaged.empty()) break;
  }
  const auto program = parse(api, gpu);
  if (!program) {
    RC_ASSERT(program.error().message.find('\n') == std::string::npos);
    return;
  }
  ProgramChecker checker;
  for (const Operation& operation : *program)
    RC_ASSERT(static_cast<bool>(checker.check(operation)));
}

}  // namespace
}  // namespace sealane::workload
