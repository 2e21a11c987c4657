// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/pinned_proxy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <set>
#include <vector>

namespace sealane::serve {
namespace {

// Copies as a driver does in CC mode: message by message, asking us for each where its bytes are.
// What kind of driver it is says how much of that it really does.
class SealingDriver final : public GpuDriver {
 public:
  enum Kind { direct, staging, last_first, twice, hasty, beyond };
  explicit SealingDriver(Kind kind) : kind_(kind) {}

  std::vector<uint8_t> device = std::vector<uint8_t>(40_MiB);
  std::set<const void*> pinned;
  std::vector<const void*> copied_from;
  Code next_copy = kSuccess;

  Code copy(const CopyContext&, Direction direction, uint64_t address, void* host,
            uint64_t bytes) override {
    copied_from.push_back(host);
    if (next_copy != kSuccess) return next_copy;
    auto* const memory = static_cast<uint8_t*>(host);
    if (kind_ == staging || kind_ == hasty) {
      const uint64_t outside = kind_ == staging ? bytes : bytes / 2;
      move(direction, address, memory, outside);
      for (uint64_t at = outside; at < bytes; at += kMessage)
        message(direction, address + at, memory + at, std::min(kMessage, bytes - at));
      return kSuccess;
    }
    const uint64_t messages = (bytes + kMessage - 1) / kMessage;
    for (uint64_t i = 0; i < messages; ++i) {
      const uint64_t at = (kind_ == last_first ? messages - 1 - i : i) * kMessage;
      message(direction, address + at, memory + at, std::min(kMessage, bytes - at));
      if (kind_ == twice && i == 0) message(direction, address, memory, std::min(kMessage, bytes));
    }
    // The last message once more, and more of it than there is.
    if (kind_ == beyond && pinned.contains(host)) {
      const uint64_t at = (messages - 1) * kMessage;
      const uint8_t* const from = real_source(memory + at, bytes - at + 1);
      if (direction == Direction::to_device) std::memcpy(&device[address + at], from, bytes - at);
    }
    return kSuccess;
  }
  Code allocate_host(const CopyContext&, uint64_t bytes, void*& out) override {
    if (refuses_memory) return 2;
    out = new uint8_t[bytes]();
    pinned.insert(out);
    return kSuccess;
  }
  void free_host(void* memory) override {
    pinned.erase(memory);
    delete[] static_cast<uint8_t*>(memory);
  }
  bool refuses_memory = false;

  Code make_context(int, CopyContext&) override { return kSuccess; }
  void enter_thread() override {}
  void drop_context(const CopyContext&) override {}
  Code allocate(const CopyContext&, uint64_t, uint64_t&) override { return kNotSupported; }
  Code move_within(const CopyContext&, std::span<const DeviceMove>) override {
    return kNotSupported;
  }
  Code set_word(const CopyContext&, uint64_t, uint32_t) override { return kNotSupported; }
  bool knows(uint64_t) override { return false; }
  Code context_of(StreamHandle, ContextHandle&) override { return kNotSupported; }
  Code device_of(ContextHandle, int&) override { return kNotSupported; }
  Code make_event(ContextHandle, EventHandle&) override { return kNotSupported; }
  void drop_event(EventHandle) override {}
  Code record(EventHandle, StreamHandle) override { return kNotSupported; }
  Code query(EventHandle) override { return kNotSupported; }
  Code wait_word(StreamHandle, uint64_t, uint32_t) override { return kNotSupported; }
  Code run_on_host(StreamHandle, void (*)(void*), void*) override { return kNotSupported; }
  Code synchronise(ContextHandle) override { return kNotSupported; }
  Code fail_context(ContextHandle, uint64_t) override { return kSuccess; }
  Code set_word_there(ContextHandle, uint64_t, uint32_t) override { return kNotSupported; }

 private:
  static constexpr uint64_t kMessage = 1_MiB;
  void move(Direction direction, uint64_t address, uint8_t* host, uint64_t bytes) {
    if (direction == Direction::to_device) {
      std::memcpy(&device[address], host, bytes);
    } else {
      std::memcpy(host, &device[address], bytes);
    }
  }
  void message(Direction direction, uint64_t address, uint8_t* host, uint64_t bytes) {
    if (direction == Direction::to_device) {
      std::memcpy(&device[address], real_source(host, bytes), bytes);
    } else {
      std::memcpy(real_destination(host, bytes), &device[address], bytes);
    }
  }
  const Kind kind_;
};

std::vector<uint8_t> pattern(uint64_t bytes, uint8_t first) {
  std::vector<uint8_t> made(bytes);
  std::iota(made.begin(), made.end(), first);
  return made;
}

class PinnedProxyTest : public testing::TestWithParam<SealingDriver::Kind> {};

// Whatever a driver does, the right bytes arrive.
TEST_P(PinnedProxyTest, CarriesTheRightBytesToTheDevice) {
  for (const uint64_t bytes : {uint64_t{1}, 64_KiB, 64_KiB + 1, 3_MiB + 5, 17_MiB}) {
    SealingDriver driver(GetParam());
    PinnedProxy proxy(driver, Direction::to_device);
    for (uint8_t round = 1; round <= 3; ++round) {
      auto source = pattern(bytes, round);
      ASSERT_EQ(proxy.copy({}, 100, source.data(), bytes), kSuccess);
      ASSERT_EQ(std::memcmp(&driver.device[100], source.data(), bytes), 0) << bytes;
    }
    proxy.drop();
    EXPECT_TRUE(driver.pinned.empty());
  }
}

TEST_P(PinnedProxyTest, CarriesTheRightBytesToTheHost) {
  for (const uint64_t bytes : {uint64_t{1}, 64_KiB, 64_KiB + 1, 3_MiB + 5, 17_MiB}) {
    SealingDriver driver(GetParam());
    PinnedProxy proxy(driver, Direction::to_host);
    for (uint8_t round = 1; round <= 3; ++round) {
      const auto source = pattern(bytes, round);
      std::copy(source.begin(), source.end(), driver.device.begin() + 100);
      std::vector<uint8_t> destination(bytes);
      ASSERT_EQ(proxy.copy({}, 100, destination.data(), bytes), kSuccess);
      ASSERT_EQ(destination, source);
    }
    proxy.drop();
  }
}

INSTANTIATE_TEST_SUITE_P(Drivers, PinnedProxyTest,
                         testing::Values(SealingDriver::direct, SealingDriver::staging,
                                         SealingDriver::last_first, SealingDriver::twice,
                                         SealingDriver::hasty, SealingDriver::beyond));

TEST(PinnedProxy, TheDriverSeesOnlyItsOwnMemory) {
  SealingDriver driver(SealingDriver::direct);
  PinnedProxy proxy(driver, Direction::to_device);
  auto source = pattern(20_MiB, 1);
  proxy.copy({}, 0, source.data(), source.size());
  ASSERT_EQ(driver.copied_from.size(), 2u);  // in pieces
  for (const void* from : driver.copied_from) EXPECT_TRUE(driver.pinned.contains(from));
  proxy.drop();
}

TEST(PinnedProxy, ADriverThatStagesIsTriedOnce) {
  SealingDriver driver(SealingDriver::staging);
  PinnedProxy proxy(driver, Direction::to_device);
  auto source = pattern(2_MiB, 1);
  for (int i = 0; i < 3; ++i) proxy.copy({}, 0, source.data(), source.size());
  ASSERT_EQ(driver.copied_from.size(), 4u);
  EXPECT_NE(driver.copied_from[0], source.data());
  for (int i = 1; i < 4; ++i) EXPECT_EQ(driver.copied_from[i], source.data());
  proxy.drop();
}

TEST(PinnedProxy, WithoutMemoryTheDriverGetsTheRealPlace) {
  SealingDriver driver(SealingDriver::direct);
  driver.refuses_memory = true;
  PinnedProxy proxy(driver, Direction::to_device);
  auto source = pattern(2_MiB, 1);
  EXPECT_EQ(proxy.copy({}, 0, source.data(), source.size()), kSuccess);
  EXPECT_EQ(driver.copied_from[0], source.data());
}

TEST(PinnedProxy, AnErrorOfTheDriverIsTheCopys) {
  SealingDriver driver(SealingDriver::direct);
  driver.next_copy = kForged;
  PinnedProxy proxy(driver, Direction::to_device);
  auto source = pattern(2_MiB, 1);
  EXPECT_EQ(proxy.copy({}, 0, source.data(), source.size()), kForged);
  EXPECT_EQ(driver.copied_from.size(), 1u);  // not tried again
  proxy.drop();
}

TEST(PinnedProxy, OtherAddressesStayWhatTheyAre) {
  uint8_t byte = 0;
  EXPECT_EQ(real_source(&byte, 1), &byte);
  EXPECT_EQ(real_destination(&byte, 1), &byte);
}

}  // namespace
}  // namespace sealane::serve
