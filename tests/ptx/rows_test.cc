// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole rows, which full warps load and store at once: is it what each lane would do for itself, in
// every width, space and order, and is the lane that goes wrong still the one that is named?

#include <algorithm>
#include <sstream>

#include "harness.h"

namespace sealane::ptx {
namespace {

template <typename... Parts>
std::string joined(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

struct Form {
  const char* type;
  unsigned bytes;  // of an element
  unsigned count;
};

constexpr Form kForms[] = {{"b8", 1, 1},  {"b8", 1, 2},  {"b8", 1, 4},  {"b16", 2, 1},
                           {"b16", 2, 2}, {"b16", 2, 4}, {"b32", 4, 1}, {"b32", 4, 2},
                           {"b32", 4, 4}, {"b64", 8, 1}, {"b64", 8, 2}};

std::string registers_of(const Form& form) {
  std::string out;
  for (unsigned k = 0; k < form.count; ++k) out += joined(k == 0 ? "" : ", ", "%v", k);
  return form.count == 1 ? out : joined("{", out, "}");
}

// Each lane of `lanes` moves one vector: from place (lane ^ flip) of `from` through shared memory
// to place (lane ^ flip) of `to`. Loads are of `space`, stores generic.
std::string mover(const Form& form, const char* space) {
  const std::string what = joined(form.count == 1   ? ""
                                  : form.count == 2 ? ".v2"
                                                    : ".v4",
                                  ".", form.type);
  const std::string regs = registers_of(form);
  const unsigned bytes = form.bytes * form.count;
  return joined(
      ".version 7.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry move(.param .u64 from, .param .u64 to, .param .u32 lanes, .param .u32 flip)"
      "\n{\n.reg .pred %p<2>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n.reg .",
      form.bytes == 1 ? "b16" : form.type, " %v<4>;\n.shared .align 16 .b8 held[512];\n",
      "ld.param.u64 %rd1, [from];\nld.param.u64 %rd2, [to];\n"
      "ld.param.u32 %r1, [lanes];\nld.param.u32 %r2, [flip];\nmov.u32 %r3, %tid.x;\n"
      "shr.u32 %r4, %r1, %r3;\nand.b32 %r4, %r4, 1;\nsetp.ne.u32 %p1, %r4, 0;\n"
      "xor.b32 %r5, %r3, %r2;\nmul.wide.u32 %rd3, %r5, ",
      bytes, ";\nadd.s64 %rd1, %rd1, %rd3;\nadd.s64 %rd2, %rd2, %rd3;\nmul.lo.u32 %r6, %r5, ",
      bytes, ";\nmov.u32 %r7, held;\nadd.u32 %r6, %r6, %r7;\n", "@%p1 ld", space, what, " ", regs,
      ", [%rd1];\n", "@%p1 st.shared", what, " [%r6], ", regs, ";\n", "bar.sync 0;\n",
      "@%p1 ld.shared", what, " ", regs, ", [%r6];\n", "@%p1 st", what, " [%rd2], ", regs,
      ";\nret;\n}\n");
}

TEST(Rows, AreWhatEachLaneWouldLoadAndStore) {
  for (const Form& form : kForms) {
    for (const char* space : {".global", "", ".global.nc", ".volatile.global"}) {
      Program program(mover(form, space));
      ASSERT_EQ(program.error, "");
      const unsigned bytes = form.bytes * form.count;
      std::vector<uint8_t> given(size_t{bytes} * kLanes);
      for (size_t i = 0; i < given.size(); ++i) given[i] = static_cast<uint8_t>(i * 37 + 11);
      for (const uint32_t lanes : {kAllLanes, 0x7fffffffu, 0xfffffffeu, 0x00ff00f0u, 0x80000000u}) {
        for (const uint32_t flip : {0u, 1u, 16u, 31u}) {
          const uint64_t from = program.buffer(given);
          const uint64_t to = program.buffer(std::vector<uint8_t>(given.size()));
          const Launched end =
              program.run("move", {{1, 1, 1}, {32, 1, 1}, 0}, from, to, lanes, flip);
          ASSERT_EQ(end.message, "");
          std::vector<uint8_t> wanted(given.size());
          for (unsigned lane = 0; lane < kLanes; ++lane) {
            if ((lanes >> lane & 1) == 0) continue;
            const size_t at = size_t{lane ^ flip} * bytes;
            std::copy_n(given.begin() + at, bytes, wanted.begin() + at);
          }
          ASSERT_EQ(program.values<uint8_t>(to, wanted.size()), wanted)
              << space << " " << form.type << " x" << form.count << ", lanes " << lanes << ", flip "
              << flip;
        }
      }
    }
  }
}

TEST(Rows, NameTheLaneThatLeavesItsMemoryOrIsMisaligned) {
  for (const Form& form : kForms) {
    Program program(mover(form, ".global"));
    const unsigned bytes = form.bytes * form.count;
    const uint64_t room = program.device.add(uint64_t{bytes} * kLanes);
    const uint64_t short_by_one = program.device.add(uint64_t{bytes} * kLanes - 1);
    const auto move = [&](uint64_t from, uint64_t to) {
      return program.run("move", {{1, 1, 1}, {32, 1, 1}, 0}, from, to, kAllLanes, 0u);
    };
    const auto expect = [&](const Launched& end, Fault fault, const char* thread) {
      EXPECT_EQ(end.fault, fault) << form.type << " x" << form.count << ": " << end.message;
      EXPECT_NE(end.message.find(thread), std::string::npos) << end.message;
    };
    expect(move(room, room), Fault::none, "");
    expect(move(short_by_one, room), Fault::illegal_address, "thread (31,0,0)");
    expect(move(room, short_by_one), Fault::illegal_address, "thread (31,0,0)");
    expect(move(room - bytes, room), Fault::illegal_address, "thread (0,0,0)");
    expect(move(0 - uint64_t{bytes}, room), Fault::illegal_address, "thread (0,0,0)");
    if (bytes > 1) expect(move(room, room + 1), Fault::misaligned_address, "thread (0,0,0)");
  }
}

// What pacing is told: every lane's bytes, once for the load and once for the store.
TEST(Rows, AreCountedAsTheBytesOfAllTheirLanes) {
  Program program(mover({"b32", 4, 4}, ".global"));
  const uint64_t memory = program.device.add(512);
  for (const uint32_t lanes : {kAllLanes, 0xffffu}) {
    const Launched end = program.run("move", {{1, 1, 1}, {32, 1, 1}, 0}, memory, memory, lanes, 0u);
    EXPECT_EQ(end.counts.global_bytes, lanes == kAllLanes ? 1024u : 512u);
  }
}

}  // namespace
}  // namespace sealane::ptx
