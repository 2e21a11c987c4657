// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What tests of the runtime share: one on a fake driver, with device memory and some pinned memory
// of the program known to it.
#pragma once

#include <gtest/gtest.h>

#include "serve/fake_driver_for_tests.h"
#include "serve/runtime.h"

namespace sealane::serve {

class RuntimeTest : public testing::Test {
 protected:
  RuntimeTest() {
    Runtime::start(driver_);
    runtime_ = Runtime::get();
    runtime_->device_memory().add({FakeDriver::kDeviceBase, driver_.device.size()},
                                  {0, FakeDriver::program()});
    runtime_->host_memory().add({address(host_), sizeof host_},
                                {false, false, 0, FakeDriver::program()});
  }
  // Threads of the runtime may look at the driver until everything is done.
  ~RuntimeTest() override {
    driver_.lift();
    runtime_->drain(FakeDriver::program());
    Runtime::abandon();
  }

  static uint64_t address(const void* memory) { return reinterpret_cast<uint64_t>(memory); }
  Route copy(Direction direction, uint64_t at, uint8_t* host, uint64_t bytes) {
    return runtime_->copy({direction, FakeDriver::kDeviceBase + at, host, bytes, stream_, ++id_});
  }
  Route in(uint64_t at, uint64_t bytes) {
    return copy(Direction::to_device, at, host_ + at, bytes);
  }
  Route out(uint64_t at, uint64_t bytes) { return copy(Direction::to_host, at, host_ + at, bytes); }
  // Its context fails, and there is no room for another one.
  void break_the_only_thread() {
    EXPECT_EQ(in(0, 100), Route::carried);
    driver_.await(stream_);
    runtime_->drain(FakeDriver::program());
    driver_.contexts_max = driver_.contexts();
    driver_.break_context(1, 214);
    EXPECT_EQ(in(200, 100), Route::carried);
    driver_.await(stream_);
    runtime_->drain(FakeDriver::program());
  }

  FakeDriver& driver_ = *new FakeDriver;  // outlives the test: idle threads still know it
  Runtime* runtime_ = nullptr;
  const StreamHandle stream_ = FakeDriver::stream(4096);
  uint8_t host_[4096] = {};
  uint64_t id_ = 0;
};

}  // namespace sealane::serve
