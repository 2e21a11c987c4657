// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "os/gpu_probe.h"

#include <gtest/gtest.h>

namespace sealane {
namespace {

GpuAnswers one_h100() {
  GpuAnswers answers;
  answers.cuda_found = true;
  answers.cuda_init = 0;
  answers.cuda_version = 12040;
  answers.cuda_names = {"NVIDIA H100 NVL"};
  answers.nvml_found = true;
  answers.nvml_init = 0;
  answers.driver_version = "550.127.05";
  answers.nvml_names = {"NVIDIA H100 NVL"};
  answers.conf_compute = GpuAnswers::ConfCompute{.environment = 2, .feature = 1, .dev_tools = 0};
  return answers;
}

TEST(GpuProbe, NoLibraryIsNoDriver) {
  const GpuReport report = interpret(GpuAnswers{});
  EXPECT_EQ(report.presence, GpuPresence::no_driver);
  EXPECT_EQ(report.cc, CcState::unknown);
  EXPECT_EQ(report.problem, "");
}

TEST(GpuProbe, AConfidentialGpu) {
  const GpuReport report = interpret(one_h100());
  EXPECT_EQ(report.presence, GpuPresence::ready);
  EXPECT_EQ(report.cc, CcState::on);
  EXPECT_EQ(report.cuda_version, "12.4");
  EXPECT_EQ(report.driver_version, "550.127.05");
  EXPECT_EQ(report.names, std::vector<std::string>{"NVIDIA H100 NVL"});
}

TEST(GpuProbe, EveryCcState) {
  GpuAnswers answers = one_h100();
  answers.conf_compute->dev_tools = 1;
  EXPECT_EQ(interpret(answers).cc, CcState::dev_tools);
  answers.conf_compute->environment = 1;
  EXPECT_EQ(interpret(answers).cc, CcState::simulated);
  answers.conf_compute->feature = 0;
  EXPECT_EQ(interpret(answers).cc, CcState::off);
  answers.conf_compute.reset();
  EXPECT_EQ(interpret(answers).cc, CcState::unknown);
  EXPECT_EQ(interpret(answers).presence, GpuPresence::ready);
}

TEST(GpuProbe, ADriverThatDoesNotStartNamesItsError) {
  GpuAnswers answers = one_h100();
  answers.cuda_init = 802;  // the GPU is not ready: a confidential one before its attestation
  answers.cuda_names.clear();
  const GpuReport report = interpret(answers);
  EXPECT_EQ(report.presence, GpuPresence::no_device);
  EXPECT_NE(report.problem.find("802"), std::string::npos);
  EXPECT_EQ(report.names.size(), 1u) << "NVML still knows what is in the machine";
}

TEST(GpuProbe, OneLibraryWithoutTheOther) {
  GpuAnswers answers;
  answers.nvml_found = true;
  answers.nvml_init = 0;
  EXPECT_EQ(interpret(answers).presence, GpuPresence::no_device);
  EXPECT_EQ(interpret(answers).problem, "libcuda.so.1 is not installed");

  answers = one_h100();
  answers.nvml_found = false;
  answers.nvml_init.reset();
  answers.conf_compute.reset();
  EXPECT_EQ(interpret(answers).presence, GpuPresence::ready);
  EXPECT_EQ(interpret(answers).cc, CcState::unknown);
}

TEST(GpuProbe, AHiddenGpuIsNoDevice) {
  GpuAnswers answers = one_h100();
  answers.cuda_init = 100;  // CUDA_VISIBLE_DEVICES= hides all
  answers.cuda_names.clear();
  EXPECT_EQ(interpret(answers).presence, GpuPresence::no_device);
}

TEST(GpuProbe, AskingWorksOnAnyMachine) {
  const GpuAnswers answers = ask_gpu_libraries();
  EXPECT_EQ(answers.cuda_init.has_value(), answers.cuda_found);
  EXPECT_EQ(answers.nvml_init.has_value(), answers.nvml_found);
  if (!answers.cuda_found && !answers.nvml_found) {
    EXPECT_EQ(interpret(answers).presence, GpuPresence::no_driver);
  }
}

}  // namespace
}  // namespace sealane
