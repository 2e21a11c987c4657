// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does the page of --observe follow from what was found, and does it read well?

#include "watch/findings.h"

#include <gtest/gtest.h>

#include <map>

#include "watch/observer.h"

namespace sealane::serve {
namespace {

// A program on a machine where everything is as hoped: 1 GiB in, copies of 1 MiB, 10 GB/s
// libcrypto.
Findings as_hoped() {
  Findings f;
  f.seconds = 2;
  f.waits_s = 0.25;
  f.workers = 8;
  f.fast_gb_per_s = 20;
  f.to_device = {.copies = 1024,
                 .bytes = uint64_t{1} << 30,
                 .blocked_s = 0.5,
                 .async_copies = 1024,
                 .async_blocked_s = 0.5,
                 .async_aead_s = 0.1073741824,
                 .aead_s = 0.1073741824,
                 .messages = 1024,
                 .seen_bytes = uint64_t{1} << 30,
                 .direct_bytes = uint64_t{1} << 30,
                 .own_thread_bytes = uint64_t{1} << 30,
                 .hit_bytes = uint64_t{1} << 30,
                 .judged_bytes = uint64_t{1} << 30,
                 .hits = 1024,
                 .judged = 1024};
  f.message_bytes_max = 1 << 20;
  f.updates_max = 1;
  f.channels = 1;
  f.keys = 1;
  f.ivs = 1024;
  f.guardable_bytes = 64 << 20;
  f.sources_unchanged = 96;
  f.predictor = "repetition";
  return f;
}

TEST(Findings, PageOfAMachineAsHoped) {
  EXPECT_EQ(findings_page(as_hoped(), {}), R"(
sealane --observe: nothing was changed. MEASURED

  ran 2.00 s; callers waited 500 ms in copies, 250 ms in synchronising calls

  direction      copies       bytes   callers waited        sealing
  to device       1,024    1.00 GiB           500 ms         107 ms
  to host             0         0 B                0              0

What Sealane would like to rely on
  yes        copies' bytes pass libcrypto                100.0 % of 1.00 GiB
  yes        IVs count up behind a mask                  1,024 of 1,024
                                                         messages, 1 channel
  yes        messages of at most 1 MiB                   1,024, the largest 1.00
                                                         MiB
  yes        sealed from where the program has it        every byte
  yes        sealed on the thread that copies            every byte
  yes        one update per message, no additional data  up to 1 update, 0 bytes
                                                         of additional data
  yes        no messages but those of copies             none
  yes        keys stay                                   1 key, none replaced
  yes        sources can be guarded against writes       100.0 % of 64.0 MiB
                                                         tried
  yes        sources are the same at their next copy     96 of 96
  yes        copies to the device can be foretold        100.0 % of the bytes,
                                                         by repetition

What it would have saved, at most (ESTIMATED from the above, 8 workers)
  with                     callers wait   sealing in the way of data
  as it is                       500 ms              107 ms
  engine                         446 ms             53.7 ms
  engine,async                  3.07 ms             53.7 ms
  engine,async,parallel         3.07 ms             6.71 ms
  … and speculate               3.07 ms                   0
  A program that is bound by its kernels gains less.

Verdict
Sealane can work here: engine, async and parallel answer whatever the driver
asks, by the key, IV and bytes it names. Next: sealane run --enable engine
--verify 1000, then add async and parallel, one by one.
)");
}

TEST(Findings, NothingSealedMeansThatOnlyAsyncCanHelp) {
  Findings f = as_hoped();
  f.to_device.messages = f.to_device.seen_bytes = f.ivs = 0;
  EXPECT_EQ(check(f)[0].state, Check::State::fails);
  EXPECT_NE(verdict(f).find("async can"), std::string::npos);
}

TEST(Findings, BytesThatDoNotPassAreAFailure) {
  Findings f = as_hoped();
  f.to_device.seen_bytes /= 2;
  EXPECT_EQ(check(f)[0].state, Check::State::fails);
  EXPECT_EQ(check(f)[0].found, "50.0 % of 1.00 GiB");
  EXPECT_NE(verdict(f).find("cannot see"), std::string::npos);
}

TEST(Findings, ABrokenIvLawKeepsSpeculationOff) {
  Findings f = as_hoped();
  f.ivs_broken = 2;
  EXPECT_EQ(check(f)[1].state, Check::State::fails);
  EXPECT_NE(verdict(f).find("speculation needs: leave it off"), std::string::npos);
}

TEST(Findings, NothingIsAVerdictToo) {
  EXPECT_EQ(verdict({}), "No copies between host and device were seen: nothing to win.");
  for (const Check& one : check({})) EXPECT_EQ(one.state, Check::State::unknown) << one.what;
}

// An engine slower than the driver's is never taken for a loss: it would not be used.
TEST(Findings, NoPartMakesThingsWorse) {
  Findings f = as_hoped();
  f.fast_gb_per_s = 1;
  const auto all = outlook(f, {});
  for (size_t i = 1; i < all.size(); ++i) {
    EXPECT_LE(all[i].callers_wait_s, all[0].callers_wait_s);
    EXPECT_LE(all[i].sealing_s, all[i - 1].sealing_s);
  }
}

Event message(uint64_t id, uint64_t host, uint64_t bytes, uint32_t counter) {
  Event event;
  event.kind = EventKind::message;
  event.id = id;
  event.host = host;
  event.bytes = bytes;
  event.key = 1;
  event.updates = 1;
  event.iv[0] = static_cast<uint8_t>(counter);
  event.begin = Instant(Duration(100));
  event.end = Instant(Duration(200));
  return event;
}

Event copy(uint64_t id, uint64_t host, uint64_t bytes) {
  Event event;
  event.kind = EventKind::copy;
  event.id = id;
  event.host = host;
  event.bytes = bytes;
  event.begin = Instant(Duration(50));
  event.end = Instant(Duration(300));
  return event;
}

TEST(Observer, TellsTheDriversOwnMessagesFromACopys) {
  Observer observer({});
  observer.handle(message(1, 0x1000, 100, 1));
  observer.handle(message(1, 0x9999, 8, 2));  // not the copy's
  observer.handle(message(1, 0x1064, 50, 3));
  observer.handle(copy(1, 0x1000, 150));
  const Findings found = observer.findings();
  EXPECT_EQ(found.to_device.seen_bytes, 150u);
  EXPECT_EQ(found.to_device.direct_bytes, 150u);
  EXPECT_EQ(found.to_device.extra_messages, 1u);
  EXPECT_EQ(found.ivs_broken, 0u);
}

TEST(Observer, FindsMessagesOfOtherThreadsByTheirTime) {
  Observer observer({});
  observer.handle(message(0, 0x1000, 100, 1));
  observer.handle(copy(7, 0x1000, 100));
  observer.handle(message(0, 0x1000, 64, 2));  // of nobody
  const Findings found = observer.findings();
  EXPECT_EQ(found.to_device.seen_bytes, 100u);
  EXPECT_EQ(found.to_device.own_thread_bytes, 0u);
  EXPECT_EQ(found.to_device.extra_messages, 1u);
}

TEST(Observer, NoticesAnIvThatDoesNotFollow) {
  Observer observer({});
  for (const uint32_t counter : {1, 2, 3, 5}) observer.handle(message(1, 0x1000, 10, counter));
  EXPECT_EQ(observer.findings().ivs_broken, 1u);
}

}  // namespace
}  // namespace sealane::serve
