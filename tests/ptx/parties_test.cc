// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Lanes of one instruction may name different lanes, as parts of a warp do (tiles, labelled
// partitions): is each part a party of its own, also when the warp's lanes come one after another?

#include <algorithm>

#include "harness.h"

namespace sealane::ptx {
namespace {

// Every lane's mask, value and vote come from memory; results go there. With `apart` lanes above
// that number come later.
constexpr const char* kText = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry parts(.param .u64 masks, .param .u64 values, .param .u64 out, .param .u32 apart)
{
  .reg .pred %p<6>;
  .reg .b32 %r<20>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [masks];
  ld.param.u64 %rd2, [values];
  ld.param.u64 %rd3, [out];
  ld.param.u32 %r1, [apart];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd4, %r2, 4;
  add.u64 %rd1, %rd1, %rd4;
  add.u64 %rd2, %rd2, %rd4;
  ld.global.u32 %r3, [%rd1];
  ld.global.u32 %r4, [%rd2];
  setp.gt.s32 %p1, %r4, 0;
  setp.lt.u32 %p2, %r2, %r1;
  @%p2 bra NOW;
  mov.u32 %r5, 100;
LATER:
  sub.u32 %r5, %r5, 1;
  setp.ne.u32 %p3, %r5, 0;
  @%p3 bra LATER;
NOW:
  redux.sync.max.s32 %r6, %r4, %r3;
  redux.sync.add.s32 %r7, %r4, %r3;
  vote.sync.ballot.b32 %r8, %p1, %r3;
  vote.sync.all.pred %p4, %p1, %r3;
  selp.u32 %r9, 1, 0, %p4;
  vote.sync.any.pred %p4, %p1, %r3;
  selp.u32 %r10, 1, 0, %p4;
  and.b32 %r11, %r4, 3;
  match.any.sync.b32 %r12, %r11, %r3;
  match.all.sync.b32 %r13|%p5, %r11, %r3;
  mul.wide.u32 %rd5, %r2, 32;
  add.u64 %rd3, %rd3, %rd5;
  st.global.v4.u32 [%rd3], {%r6, %r7, %r8, %r9};
  st.global.v4.u32 [%rd3+16], {%r10, %r12, %r13, %r13};
  ret;
}
)";

void check(const std::vector<uint32_t>& masks, int value_step, uint32_t apart) {
  Program program(kText);
  ASSERT_EQ(program.error, "");
  std::vector<int32_t> values(32);
  for (int i = 0; i < 32; ++i) values[i] = (i * value_step) % 17 - 8;
  const uint64_t out = program.device.add(32 * 32);
  const Launched done = program.run("parts", {{1, 1, 1}, {32, 1, 1}, 0}, program.buffer(masks),
                                    program.buffer(values), out, apart);
  ASSERT_EQ(done.fault, Fault::none) << done.message;
  const auto got = program.values<uint32_t>(out, 32 * 8);
  for (int i = 0; i < 32; ++i) {
    int32_t most = INT32_MIN, sum = 0;
    uint32_t yes = 0, alike = 0;
    for (int k = 0; k < 32; ++k) {
      if ((masks[i] >> k & 1) == 0) continue;
      most = std::max(most, values[k]);
      sum += values[k];
      yes |= uint32_t{values[k] > 0} << k;
      alike |= uint32_t{(values[k] & 3) == (values[i] & 3)} << k;
    }
    const uint32_t* mine = got.data() + i * 8;
    ASSERT_EQ(static_cast<int32_t>(mine[0]), most) << i;
    ASSERT_EQ(static_cast<int32_t>(mine[1]), sum) << i;
    ASSERT_EQ(mine[2], yes) << i;
    ASSERT_EQ(mine[3], uint32_t{yes == masks[i]}) << i;
    ASSERT_EQ(mine[4], uint32_t{yes != 0}) << i;
    ASSERT_EQ(mine[5], alike) << i;
    ASSERT_EQ(mine[6], alike == masks[i] ? masks[i] : 0u) << i;
  }
}

TEST(Parties, OfTilesAndLabelsAreEachTheirOwn) {
  for (const unsigned tile : {1u, 2u, 8u, 16u, 32u}) {
    std::vector<uint32_t> masks(32);
    for (unsigned i = 0; i < 32; ++i) {
      const uint32_t ones = tile == 32 ? UINT32_MAX : (1u << tile) - 1;
      masks[i] = ones << (i / tile * tile);
    }
    for (const uint32_t apart : {32u, 16u, 5u}) check(masks, 7, apart);
  }
  std::vector<uint32_t> labels(32);
  for (unsigned i = 0; i < 32; ++i) {
    for (unsigned k = 0; k < 32; ++k) labels[i] |= uint32_t{i * i % 5 == k * k % 5} << k;
  }
  for (const uint32_t apart : {32u, 16u, 5u}) check(labels, 5, apart);
}

}  // namespace
}  // namespace sealane::ptx
