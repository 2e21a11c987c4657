// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Does each operation give what an independent reference says, on edge values and on random ones,
// under full and partial masks, compiled for every CPU it may be compiled for?

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <random>

#include "harness.h"
#include "ptx/ops/lanes.h"

namespace sealane::ptx {
namespace {

constexpr uint32_t kCount = 256;

// d = instruction of a, b, c, as PTX. `types`: of d, a, b, c.
struct Operation {
  const char* text;
  const char* types[4];
  std::function<uint64_t(uint64_t, uint64_t, uint64_t)> wanted;
};

unsigned bytes(const char* type) { return bytes_of(type_named(type)); }

std::string source(const Operation& op) {
  std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".entry run(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd, .param .u32 "
      "skip)\n{\n"
      ".reg .b64 %p0, %p1, %p2, %p3, %at;\n.reg .b32 %t, %s;\n.reg .pred %off;\n";
  const char* names[] = {"%d", "%a", "%b", "%c"};
  for (int i = 0; i < 4; ++i) text += std::string(".reg .") + op.types[i] + " " + names[i] + ";\n";
  text +=
      "ld.param.u64 %p0, [pa];\nld.param.u64 %p1, [pb];\nld.param.u64 %p2, [pc];\nld.param.u64 "
      "%p3, [pd];\n"
      "ld.param.u32 %s, [skip];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %at, %t, 8;\n"
      "add.u64 %p0, %p0, %at;\nadd.u64 %p1, %p1, %at;\nadd.u64 %p2, %p2, %at;\nadd.u64 %p3, %p3, "
      "%at;\n";
  for (int i = 1; i < 4; ++i) {
    text += std::string("ld.global.") + op.types[i] + " " + names[i] + ", [%p" +
            std::to_string(i - 1) + "];\n";
  }
  text += "rem.u32 %t, %t, %s;\nsetp.eq.u32 %off, %t, 1;\n@%off bra DONE;\n";
  text += std::string(op.text) + "\n";
  text += std::string("st.global.") + op.types[0] + " [%p3], %d;\nDONE:\nret;\n}\n";
  return text;
}

std::vector<uint64_t> inputs(const char* type, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> edges = {0,          1,         2,          31,
                                 32,         63,        64,         ~uint64_t{0},
                                 0x80,       0x8000,    0x80000000, uint64_t{1} << 63,
                                 0x7fffffff, INT64_MAX, 0x7fff,     255};
  const std::string name = type;
  if (name == "f32") {
    for (const float f : {1.0f, -1.0f, 0.5f, -0.0f, 1e-40f, INFINITY, -INFINITY, NAN, 3e9f, -3e9f,
                          2.5f, 3.5f, 65520.0f}) {
      edges.push_back(std::bit_cast<uint32_t>(f));
    }
  }
  if (name == "f64") {
    for (const double f :
         {1.0, -1.0, 0.5, -0.0, 1e-310, double{INFINITY}, double{NAN}, 3e19, 2.5, 3.5}) {
      edges.push_back(std::bit_cast<uint64_t>(f));
    }
  }
  std::vector<uint64_t> out(kCount);
  for (auto& value : out) {
    const uint64_t r = random();
    value = r % 3 == 0 ? edges[random() % edges.size()] : random();
    if (r % 3 == 1 && name == "f32")
      value = std::bit_cast<uint32_t>(
          static_cast<float>(static_cast<int64_t>(random() % 2000001) - 1000000) / 128);
    if (r % 3 == 1 && name == "f64")
      value = std::bit_cast<uint64_t>(
          static_cast<double>(static_cast<int64_t>(random() % 2000001) - 1000000) / 128);
    if (bytes(type) < 8) value &= (uint64_t{1} << (bytes(type) * 8)) - 1;
  }
  return out;
}

bool is_nan(const char* type, uint64_t bits) {
  if (std::string(type) == "f32")
    return std::isnan(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  return std::string(type) == "f64" && std::isnan(std::bit_cast<double>(bits));
}

void check(const Operation& op) {
  SCOPED_TRACE(op.text);
  Program program(source(op));
  ASSERT_EQ(program.error, "");
  for (const uint32_t skip : {1000u, 3u}) {
    const auto a = inputs(op.types[1], 1 + skip), b = inputs(op.types[2], 2),
               c = inputs(op.types[3], 3);
    const uint64_t pa = program.buffer(a), pb = program.buffer(b), pc = program.buffer(c),
                   pd = program.buffer(std::vector<uint64_t>(kCount, 0x5555));
    const Launched done = program.run("run", {{1, 1, 1}, {kCount, 1, 1}, 0}, pa, pb, pc, pd, skip);
    ASSERT_EQ(done.fault, Fault::none) << done.message;
    const auto d = program.values<uint64_t>(pd, kCount);
    const unsigned width = bytes(op.types[0]);
    const uint64_t cut = width == 8 ? ~uint64_t{0} : (uint64_t{1} << (width * 8)) - 1;
    for (uint32_t i = 0; i < kCount; ++i) {
      const uint64_t wanted = i % skip == 1 ? 0x5555 : op.wanted(a[i], b[i], c[i]) & cut;
      if (is_nan(op.types[0], wanted) && is_nan(op.types[0], d[i] & cut)) continue;
      ASSERT_EQ(d[i] & cut, wanted & cut)
          << std::hex << "a " << a[i] << " b " << b[i] << " c " << c[i];
    }
  }
}

using U = uint64_t;
int32_t s32(U v) { return static_cast<int32_t>(v); }
uint32_t u32(U v) { return static_cast<uint32_t>(v); }
int64_t s64(U v) { return static_cast<int64_t>(v); }
int16_t s16(U v) { return static_cast<int16_t>(v); }
float f32(U v) { return std::bit_cast<float>(static_cast<uint32_t>(v)); }
double f64(U v) { return std::bit_cast<double>(v); }
U of(float f) { return std::bit_cast<uint32_t>(f); }
U of(double f) { return std::bit_cast<uint64_t>(f); }
__extension__ using Wide = __int128;
__extension__ using UWide = unsigned __int128;

TEST(Operations, Integers) {
  const Operation table[] = {
      {"add.u32 %d, %a, %b;", {"u32", "u32", "u32", "u32"}, [](U a, U b, U) { return a + b; }},
      {"sub.s64 %d, %a, %b;", {"s64", "s64", "s64", "s64"}, [](U a, U b, U) { return a - b; }},
      {"add.sat.s32 %d, %a, %b;",
       {"s32", "s32", "s32", "s32"},
       [](U a, U b, U) {
         return static_cast<U>(
             std::min<int64_t>(INT32_MAX, std::max<int64_t>(INT32_MIN, int64_t{s32(a)} + s32(b))));
       }},
      {"mul.lo.u16 %d, %a, %b;", {"u16", "u16", "u16", "u16"}, [](U a, U b, U) { return a * b; }},
      {"mul.hi.s32 %d, %a, %b;",
       {"s32", "s32", "s32", "s32"},
       [](U a, U b, U) { return static_cast<U>((int64_t{s32(a)} * s32(b)) >> 32); }},
      {"mul.hi.u64 %d, %a, %b;",
       {"u64", "u64", "u64", "u64"},
       [](U a, U b, U) { return static_cast<U>((UWide{a} * b) >> 64); }},
      {"mul.hi.s64 %d, %a, %b;",
       {"s64", "s64", "s64", "s64"},
       [](U a, U b, U) { return static_cast<U>((Wide{s64(a)} * s64(b)) >> 64); }},
      {"mul.wide.s16 %d, %a, %b;",
       {"s32", "s16", "s16", "s16"},
       [](U a, U b, U) { return static_cast<U>(s16(a) * s16(b)); }},
      {"mad.wide.u32 %d, %a, %b, %c;",
       {"u64", "u32", "u32", "u64"},
       [](U a, U b, U c) { return a * b + c; }},
      {"mad.lo.s32 %d, %a, %b, %c;",
       {"s32", "s32", "s32", "s32"},
       [](U a, U b, U c) { return a * b + c; }},
      {"mad.hi.u32 %d, %a, %b, %c;",
       {"u32", "u32", "u32", "u32"},
       [](U a, U b, U c) { return (a * b >> 32) + c; }},
      {"div.s32 %d, %a, %b;",
       {"s32", "s32", "s32", "s32"},
       [](U a, U b, U) { return s32(b) == 0 ? ~U{0} : static_cast<U>(int64_t{s32(a)} / s32(b)); }},
      {"rem.u64 %d, %a, %b;",
       {"u64", "u64", "u64", "u64"},
       [](U a, U b, U) { return b == 0 ? a : a % b; }},
      {"rem.s16 %d, %a, %b;",
       {"s16", "s16", "s16", "s16"},
       [](U a, U b, U) { return s16(b) == 0 ? a : static_cast<U>(s16(a) % s16(b)); }},
      {"abs.s32 %d, %a;",
       {"s32", "s32", "s32", "s32"},
       [](U a, U, U) { return s32(a) < 0 ? 0 - a : a; }},
      {"min.s64 %d, %a, %b;",
       {"s64", "s64", "s64", "s64"},
       [](U a, U b, U) { return s64(a) < s64(b) ? a : b; }},
      {"max.u32 %d, %a, %b;",
       {"u32", "u32", "u32", "u32"},
       [](U a, U b, U) { return std::max(a, b); }},
      {"sad.s32 %d, %a, %b, %c;",
       {"u32", "s32", "s32", "u32"},
       [](U a, U b, U c) { return c + static_cast<U>(std::abs(int64_t{s32(a)} - s32(b))); }},
      {"add.cc.u32 %d, %a, %b;\naddc.u32 %d, %d, %c;",
       {"u32", "u32", "u32", "u32"},
       [](U a, U b, U c) { return u32(a + b) + c + (a + b > UINT32_MAX ? 1 : 0); }},
      {"sub.cc.u32 %d, %a, %b;\nsubc.u32 %d, %c, %a;",
       {"u32", "u32", "u32", "u32"},
       [](U a, U b, U c) { return c - a - (a < b ? 1 : 0); }},
  };
  for (const Operation& op : table) check(op);
}

TEST(Operations, Bits) {
  const auto prmt = [](U a, U b, U c) {
    const U both = b << 32 | a;
    U out = 0;
    for (int k = 0; k < 4; ++k) {
      const U selector = c >> (4 * k) & 15;
      U byte = both >> (8 * (selector & 7)) & 255;
      if ((selector & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;
      out |= byte << (8 * k);
    }
    return out;
  };
  const Operation table[] = {
      {"and.b32 %d, %a, %b;", {"b32", "b32", "b32", "b32"}, [](U a, U b, U) { return a & b; }},
      {"xor.b64 %d, %a, %b;", {"b64", "b64", "b64", "b64"}, [](U a, U b, U) { return a ^ b; }},
      {"not.b16 %d, %a;", {"b16", "b16", "b16", "b16"}, [](U a, U, U) { return ~a; }},
      {"cnot.b32 %d, %a;", {"b32", "b32", "b32", "b32"}, [](U a, U, U) { return U{a == 0}; }},
      {"shl.b32 %d, %a, %b;",
       {"b32", "b32", "u32", "b32"},
       [](U a, U b, U) { return b > 31 ? 0 : a << b; }},
      {"shr.s64 %d, %a, %b;",
       {"s64", "s64", "u32", "b32"},
       [](U a, U b, U) { return static_cast<U>(s64(a) >> std::min<U>(b, 63)); }},
      {"shr.u32 %d, %a, %b;",
       {"u32", "u32", "u32", "b32"},
       [](U a, U b, U) { return b > 31 ? 0 : a >> b; }},
      {"shr.s16 %d, %a, %b;",
       {"s16", "s16", "u32", "b32"},
       [](U a, U b, U) { return static_cast<U>(s16(a) >> std::min<U>(b, 15)); }},
      {"popc.b64 %d, %a;",
       {"u32", "b64", "b64", "b64"},
       [](U a, U, U) { return static_cast<U>(std::popcount(a)); }},
      {"clz.b32 %d, %a;",
       {"u32", "b32", "b32", "b32"},
       [](U a, U, U) { return static_cast<U>(std::countl_zero(u32(a))); }},
      {"bfind.u32 %d, %a;",
       {"u32", "u32", "u32", "u32"},
       [](U a, U, U) { return a == 0 ? ~U{0} : static_cast<U>(31 - std::countl_zero(u32(a))); }},
      {"brev.b32 %d, %a;",
       {"b32", "b32", "b32", "b32"},
       [](U a, U, U) {
         U out = 0;
         for (int i = 0; i < 32; ++i) out |= (a >> i & 1) << (31 - i);
         return out;
       }},
      {"bfe.u32 %d, %a, 5, 9;",
       {"u32", "u32", "u32", "u32"},
       [](U a, U, U) { return a >> 5 & 0x1ff; }},
      {"bfe.s32 %d, %a, 20, 20;",
       {"s32", "s32", "s32", "s32"},
       [](U a, U, U) { return static_cast<U>(s32(a) >> 20); }},
      {"bfi.b32 %d, %a, %b, 4, 8;",
       {"b32", "b32", "b32", "b32"},
       [](U a, U b, U) { return (b & ~U{0xff0}) | (a & 0xff) << 4; }},
      {"prmt.b32 %d, %a, %b, %c;", {"b32", "b32", "b32", "b32"}, prmt},
      {"lop3.b32 %d, %a, %b, %c, 0xe8;",
       {"b32", "b32", "b32", "b32"},
       [](U a, U b, U c) { return (a & b) | (b & c) | (a & c); }},
      {"shf.l.wrap.b32 %d, %a, %b, %c;",
       {"b32", "b32", "b32", "u32"},
       [](U a, U b, U c) { return (b << 32 | a) << (c & 31) >> 32; }},
      {"shf.r.clamp.b32 %d, %a, %b, %c;",
       {"b32", "b32", "b32", "u32"},
       [](U a, U b, U c) { return (b << 32 | a) >> std::min<U>(c, 32); }},
      {"dp4a.s32.u32 %d, %a, %b, %c;",
       {"s32", "b32", "b32", "s32"},
       [](U a, U b, U c) {
         for (int i = 0; i < 32; i += 8)
           c += static_cast<U>(static_cast<int8_t>(a >> i) * static_cast<uint8_t>(b >> i));
         return c;
       }},
  };
  for (const Operation& op : table) check(op);
}

TEST(Operations, Floats) {
  const auto flush = [](float f) { return std::fabs(f) < 0x1p-126f ? std::copysign(0.0f, f) : f; };
  const Operation table[] = {
      {"add.f32 %d, %a, %b;",
       {"f32", "f32", "f32", "f32"},
       [](U a, U b, U) { return of(f32(a) + f32(b)); }},
      {"mul.ftz.f32 %d, %a, %b;",
       {"f32", "f32", "f32", "f32"},
       [=](U a, U b, U) { return of(flush(flush(f32(a)) * flush(f32(b)))); }},
      {"add.sat.f32 %d, %a, %b;",
       {"f32", "f32", "f32", "f32"},
       [](U a, U b, U) {
         const float s = f32(a) + f32(b);
         return of(s > 0 ? std::min(s, 1.0f) : 0.0f);
       }},
      {"fma.rn.f32 %d, %a, %b, %c;",
       {"f32", "f32", "f32", "f32"},
       [](U a, U b, U c) { return of(std::fma(f32(a), f32(b), f32(c))); }},
      {"fma.rn.f64 %d, %a, %b, %c;",
       {"f64", "f64", "f64", "f64"},
       [](U a, U b, U c) { return of(std::fma(f64(a), f64(b), f64(c))); }},
      {"div.rn.f32 %d, %a, %b;",
       {"f32", "f32", "f32", "f32"},
       [](U a, U b, U) { return of(f32(a) / f32(b)); }},
      {"sqrt.rn.f64 %d, %a;",
       {"f64", "f64", "f64", "f64"},
       [](U a, U, U) { return of(std::sqrt(f64(a))); }},
      {"neg.f32 %d, %a;", {"f32", "f32", "f32", "f32"}, [](U a, U, U) { return a ^ 0x80000000; }},
      {"min.f32 %d, %a, %b;",
       {"f32", "f32", "f32", "f32"},
       [](U a, U b, U) {
         const float x = f32(a), y = f32(b);
         if (std::isnan(x)) return b;
         if (std::isnan(y)) return a;
         if (x == y) return std::signbit(x) ? a : b;
         return x < y ? a : b;
       }},
      {"max.NaN.f32 %d, %a, %b;",
       {"f32", "f32", "f32", "f32"},
       [](U a, U b, U) {
         const float x = f32(a), y = f32(b);
         if (std::isnan(x)) return a;
         if (std::isnan(y)) return b;
         if (x == y) return std::signbit(x) ? b : a;
         return x > y ? a : b;
       }},
      {"copysign.f32 %d, %a, %b;",
       {"f32", "f32", "f32", "f32"},
       [](U a, U b, U) { return of(std::copysign(f32(b), f32(a))); }},
      {"{.reg .pred %q; setp.ltu.f32 %q, %a, %b; selp.b32 %d, 1, 0, %q;}",
       {"b32", "f32", "f32", "f32"},
       [](U a, U b, U) { return U{!(f32(a) >= f32(b))}; }},
      {"{.reg .pred %q; setp.ne.f64 %q, %a, %b; selp.b32 %d, 1, 0, %q;}",
       {"b32", "f64", "f64", "f64"},
       [](U a, U b, U) { return U{f64(a) < f64(b) || f64(a) > f64(b)}; }},
  };
  for (const Operation& op : table) check(op);
}

TEST(Operations, PairsOfFloats) {
  // Numbers only: which NaN comes out is nobody's promise.
  constexpr U kFinite = 0xbf7fffffbf7fffff;
  const std::string masks =
      "and.b64 %a, %a, 0xbf7fffffbf7fffff;\nand.b64 %b, %b, 0xbf7fffffbf7fffff;\n"
      "and.b64 %c, %c, 0xbf7fffffbf7fffff;\n";
  const auto each = [](auto work) {
    return [=](U a, U b, U c) {
      a &= kFinite, b &= kFinite, c &= kFinite;
      return of(work(f32(a), f32(b), f32(c))) | of(work(f32(a >> 32), f32(b >> 32), f32(c >> 32)))
                                                    << 32;
    };
  };
  const auto flush = [](float f) { return std::fabs(f) < 0x1p-126f ? std::copysign(0.0f, f) : f; };
  const auto test = [&](const char* text, auto work) {
    check({(masks + text).c_str(), {"b64", "b64", "b64", "b64"}, each(work)});
  };
  test("add.f32x2 %d, %a, %b;", [](float a, float b, float) { return a + b; });
  test("sub.rn.f32x2 %d, %a, %b;", [](float a, float b, float) { return a - b; });
  test("mul.ftz.f32x2 %d, %a, %b;",
       [=](float a, float b, float) { return flush(flush(a) * flush(b)); });
  test("fma.rn.f32x2 %d, %a, %b, %c;", [](float a, float b, float c) { return std::fma(a, b, c); });
  test("add.rz.f32x2 %d, %a, %b;", [](float a, float b, float) {
    std::fesetround(FE_TOWARDZERO);
    const volatile float x = a, y = b;  // neither addition nor reading moves across
    const volatile float sum = x + y;
    std::fesetround(FE_TONEAREST);
    return float{sum};
  });
}

TEST(Operations, TheLargestOfThreeAlsoWhereItOverwritesOne) {
  const auto wanted = [](U a, U b, U c) {
    return of(std::fmax(std::fmax(f32(a), f32(b)), f32(c)));
  };
  // Zeros have signs, which fmax() may mix up: they are added away.
  for (const char* text :
       {"max.f32 %d, %a, %b, %c;\nadd.f32 %d, %d, 0f00000000;",
        "mov.f32 %d, %c;\nmax.f32 %d, %a, %b, %d;\nadd.f32 %d, %d, 0f00000000;",
        "mov.f32 %d, %b;\nmax.f32 %d, %a, %d, %c;\nadd.f32 %d, %d, 0f00000000;",
        "mov.f32 %d, %a;\nmax.f32 %d, %d, %b, %c;\nadd.f32 %d, %d, 0f00000000;"}) {
    check({text, {"f32", "f32", "f32", "f32"}, [=](U a, U b, U c) {
             return of(f32(wanted(a, b, c)) + 0.0f);
           }});
  }
}

TEST(Operations, CacheHintsChangeNothing) {
  check(
      {"{.reg .b64 %hint; createpolicy.fractional.L2::evict_first.b64 %hint, 1.0;\n"
       "ld.global.L1::evict_last.L2::cache_hint.u64 %d, [%p1], %hint;\n"
       "st.global.L2::cache_hint.u64 [%p3], %d, %hint;}",
       {"u64", "u64", "u64", "u64"},
       [](U, U b, U) { return b; }});
}

TEST(Operations, Conversions) {
  const auto clamp = [](double v, double low, double high) {
    return std::isnan(v) ? 0 : std::min(std::max(v, low), high);
  };
  const Operation table[] = {
      {"cvt.u32.u16 %d, %a;", {"u32", "u16", "u16", "u16"}, [](U a, U, U) { return a; }},
      {"cvt.s64.s32 %d, %a;",
       {"s64", "s32", "s32", "s32"},
       [](U a, U, U) { return static_cast<U>(int64_t{s32(a)}); }},
      {"cvt.s32.s8 %d, %a;",
       {"s32", "b32", "b32", "b32"},
       [](U a, U, U) { return static_cast<U>(static_cast<int8_t>(a)); }},
      {"cvt.sat.u8.s32 %d, %a;",
       {"b32", "s32", "s32", "s32"},
       [](U a, U, U) { return static_cast<U>(std::min(255, std::max(0, s32(a)))); }},
      {"cvt.rn.f32.s32 %d, %a;",
       {"f32", "s32", "s32", "s32"},
       [](U a, U, U) { return of(static_cast<float>(s32(a))); }},
      {"cvt.rn.f64.u64 %d, %a;",
       {"f64", "u64", "u64", "u64"},
       [](U a, U, U) { return of(static_cast<double>(a)); }},
      {"cvt.rzi.s32.f32 %d, %a;",
       {"s32", "f32", "f32", "f32"},
       [=](U a, U, U) {
         return static_cast<U>(
             static_cast<int64_t>(clamp(std::trunc(f32(a)), INT32_MIN, INT32_MAX)));
       }},
      {"cvt.rni.u32.f64 %d, %a;",
       {"u32", "f64", "f64", "f64"},
       [=](U a, U, U) { return static_cast<U>(clamp(std::nearbyint(f64(a)), 0, UINT32_MAX)); }},
      {"cvt.rmi.f32.f32 %d, %a;",
       {"f32", "f32", "f32", "f32"},
       [](U a, U, U) { return of(std::floor(f32(a))); }},
      {"cvt.rn.f32.f64 %d, %a;",
       {"f32", "f64", "f64", "f64"},
       [](U a, U, U) { return of(static_cast<float>(f64(a))); }},
      {"cvt.rz.f32.f64 %d, %a;",
       {"f32", "f64", "f64", "f64"},
       [](U a, U, U) {
         const double v = f64(a);
         float f = static_cast<float>(v);
         if (std::isfinite(v) && std::fabs(static_cast<double>(f)) > std::fabs(v))
           f = std::nextafterf(f, 0.0f);
         return of(f);
       }},
      {"cvt.f64.f32 %d, %a;",
       {"f64", "f32", "f32", "f32"},
       [](U a, U, U) { return of(static_cast<double>(f32(a))); }},
  };
  for (const Operation& op : table) check(op);
}

// Every half there is, to float and back, and what lies between two of them.
TEST(Operations, HalvesRoundTripAndRoundToEven) {
  Program program(
      ".version 8.0\n.target sm_80\n.address_size 64\n.entry run(.param .u64 out)\n{\n.reg .b64 "
      "%p, %at;\n"
      ".reg .b32 %t, %c, %n, %s;\n.reg .b16 %h, %g;\n.reg .f32 %f, %k;\n"
      "ld.param.u64 %p, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %c, %ctaid.x;\nmov.u32 %n, %ntid.x;\n"
      "mad.lo.u32 %t, %c, %n, %t;\nmul.wide.u32 %at, %t, 4;\nadd.u64 %p, %p, %at;\n"
      "cvt.u16.u32 %h, %t;\ncvt.f32.f16 %f, %h;\ncvt.rn.f16.f32 %g, %f;\n"
      "st.global.b16 [%p], %g;\nmul.f32 %k, %f, 0f3F802000;\ncvt.rn.f16.f32 %g, %k;\nst.global.b16 "
      "[%p+2], %g;\nret;\n}\n");
  ASSERT_EQ(program.error, "");
  const uint64_t out = program.device.add(4 << 16);
  const Launched done = program.run("run", {{256, 1, 1}, {256, 1, 1}, 0}, out);
  ASSERT_EQ(done.fault, Fault::none) << done.message;
  const auto got = program.values<uint16_t>(out, 2 << 16);
  for (uint32_t h = 0; h < 65536; ++h) {
    const int exponent = static_cast<int>(h >> 10 & 31);
    if (exponent == 31 && (h & 0x3ff) != 0) continue;  // NaN
    ASSERT_EQ(got[2 * h], h);
    if (exponent == 31 || exponent < 2) continue;
    // times 1 + 2^-10: to the nearest multiple of the value's last place, ties to even.
    const double size = std::ldexp(1024.0 + (h & 0x3ff), exponent - 25) * (1 + 0x1p-10);
    const double unit = std::ldexp(1.0, exponent - 25);
    const double rounded = size >= std::ldexp(2048, exponent - 25)
                               ? std::nearbyint(size / (2 * unit)) * 2 * unit
                               : std::nearbyint(size / unit) * unit;
    const double made = (got[2 * h + 1] & 0x7fff) >= 0x7c00
                            ? 65536.0
                            : std::ldexp(1024.0 + (got[2 * h + 1] & 0x3ff),
                                         static_cast<int>(got[2 * h + 1] >> 10 & 31) - 25);
    ASSERT_EQ(made, rounded) << h;
  }
}

// f of the low and of the high halves.
template <typename T, typename F>
U halves(U a, U b, F f) {
  const auto one = [&](unsigned shift) {
    const T made = static_cast<T>(f(T(a >> shift), T(b >> shift)));
    return static_cast<U>(static_cast<uint16_t>(made)) << shift;
  };
  return one(0) | one(16);
}

template <typename T>
U apart(U a, U b, unsigned byte) {
  return static_cast<U>(std::abs(int{T(a >> 8 * byte)} - int{T(b >> 8 * byte)}));
}

// What __fns is documented to do, step by step.
U nth_set(U bits, U base, int32_t offset) {
  if (offset == 0) return (bits >> base & 1) != 0 ? base : ~U{0};
  int64_t left = std::abs(int64_t{offset});
  for (int at = static_cast<int>(base); at >= 0 && at < 32; at += offset < 0 ? -1 : 1) {
    left -= static_cast<int64_t>(bits >> at & 1);
    if (left == 0) return static_cast<U>(at);
  }
  return ~U{0};
}

// What nvcc makes of intrinsics: of pairs of halves, of bytes, of the nth bit.
TEST(Operations, PartsOfWords) {
  const auto least = [](auto x, auto y) { return std::min(x, y); };
  const auto most = [](auto x, auto y) { return std::max(x, y); };
  const auto sum = [](auto x, auto y) { return x + y; };
  const Operation table[] = {
      {"add.u16x2 %d, %a, %b;",
       {"u32", "u32", "u32", "u32"},
       [=](U a, U b, U) { return halves<uint16_t>(a, b, sum); }},
      {"add.s16x2 %d, %a, %b;",
       {"u32", "u32", "u32", "u32"},
       [=](U a, U b, U) { return halves<int16_t>(a, b, sum); }},
      {"min.u16x2 %d, %a, %b;",
       {"u32", "u32", "u32", "u32"},
       [=](U a, U b, U) { return halves<uint16_t>(a, b, least); }},
      {"max.s16x2 %d, %a, %b;",
       {"u32", "u32", "u32", "u32"},
       [=](U a, U b, U) { return halves<int16_t>(a, b, most); }},
      {"min.s16x2.relu %d, %a, %b;",
       {"u32", "u32", "u32", "u32"},
       [=](U a, U b, U) {
         return halves<int16_t>(
             a, b, [](int16_t x, int16_t y) { return std::max<int>(0, std::min(x, y)); });
       }},
      {"max.s32.relu %d, %a, %b;",
       {"s32", "s32", "s32", "s32"},
       [](U a, U b, U) {
         return static_cast<U>(std::max({0, s32(a), s32(b)}));
       }},
      {"min.s32.relu %d, %a, %b;",
       {"s32", "s32", "s32", "s32"},
       [](U a, U b, U) { return static_cast<U>(std::max(0, std::min(s32(a), s32(b)))); }},
      {"vabsdiff4.u32.u32.u32 %d, %a, %b, %c;",
       {"u32", "u32", "u32", "u32"},
       [](U a, U b, U) {
         U out = 0;
         for (unsigned i = 0; i < 4; ++i) out |= apart<uint8_t>(a, b, i) << 8 * i;
         return out;
       }},
      {"vabsdiff4.u32.s32.s32.add %d, %a, %b, %c;",
       {"u32", "u32", "u32", "u32"},
       [](U a, U b, U c) {
         for (unsigned i = 0; i < 4; ++i) c += apart<int8_t>(a, b, i);
         return c;
       }},
      {"and.b32 %b, %b, 31;\nrem.s32 %c, %c, 9;\nfns.b32 %d, %a, %b, %c;",
       {"b32", "b32", "b32", "b32"},
       [](U a, U b, U c) { return nth_set(a, b & 31, s32(c) % 9); }},
  };
  for (const Operation& op : table) check(op);
}

// As atomicAdd of float2 and float4 is compiled; a source may also be a destination.
TEST(Operations, AtomicsOfVectorsAddEveryElement) {
  Program program(
      ".version 8.1\n.target sm_90\n.address_size 64\n.entry k(.param .u64 at)\n{\n"
      ".reg .f32 %f<8>;\n.reg .b32 %r<3>;\n.reg .b64 %rd;\nld.param.u64 %rd, [at];\n"
      "mov.f32 %f1, 0f3f800000;\nmov.f32 %f2, 0f40000000;\n"
      "atom.global.add.v2.f32 {%f2, %f1}, [%rd+8], {%f1, %f2};\n"
      "red.global.add.v4.f32 [%rd+16], {%f2, %f1, %f2, %f1};\n"
      "mov.b32 %r1, 0x3c003c00;\nred.global.add.noftz.v2.f16x2 [%rd], {%r1, %r1};\nret;\n}\n");
  ASSERT_EQ(program.error, "");
  std::vector<float> memory = {0, 0, 10, 20, 1, 2, 3, 4};
  const uint64_t at = program.buffer(memory);
  const Launched done = program.run("k", {{1, 1, 1}, {1, 1, 1}, 0}, at);
  ASSERT_EQ(done.fault, Fault::none) << done.message;
  const auto got = program.values<float>(at, 8);
  EXPECT_EQ(program.values<uint32_t>(at, 2), (std::vector<uint32_t>{0x3c003c00, 0x3c003c00}));
  EXPECT_EQ(std::vector<float>(got.begin() + 2, got.end()),
            (std::vector<float>{11, 22, 1 + 10, 2 + 20, 3 + 10, 4 + 20}));
}

TEST(Operations, ASingleRegisterMayStandInBraces) {
  check({"ld.relaxed.gpu.global.u64 {%d}, [%p1];", {"u64", "u64", "u64", "u64"}, [](U, U b, U) {
           return b;
         }});
  check({"st.global.u64 [%p3], {%a};\nld.global.u64 %d, [%p3];",
         {"u64", "u64", "u64", "u64"},
         [](U a, U, U) { return a; }});
}

TEST(Operations, WhatIsUnknownIsNamedWithItsLine) {
  Program program(
      ".version 8.0\n.target sm_80\n.address_size 64\n.entry good() { ret; }\n"
      ".entry bad()\n{\n.reg .b32 %r;\nmov.u32 %r, 1;\nwgmma.fence.sync.aligned;\nret;\n}\n"
      ".entry odd()\n{\n.reg .b32 %r;\nadd.fancy.u32 %r, %r, %r;\nret;\n}\n"
      ".entry clipped()\n{\n.reg .b32 %r;\nmax.u32.relu %r, %r, %r;\nret;\n}\n"
      ".entry picture()\n{\n.reg .f32 %f<6>;\n.reg .b64 %t;\n"
      "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%f4, %f5}];\nret;\n}\n");
  ASSERT_EQ(program.error, "");
  EXPECT_TRUE(program.kernel("good").ok());
  EXPECT_EQ(program.kernel("bad").error().message,
            "line 9: wgmma.fence.sync.aligned: unknown instruction");
  EXPECT_EQ(program.kernel("odd").error().message,
            "line 15: add.fancy.u32: '.fancy' is not supported");
  EXPECT_EQ(program.kernel("clipped").error().message,
            "line 21: max.u32.relu: '.relu' is not supported");
  EXPECT_EQ(program.kernel("picture").error().message,
            "line 28: tex.2d.v4.f32.f32: ',' where ']' belongs");
}

TEST(Operations, BothBuildsOfTheArithmeticAreThere) {
  EXPECT_NE(plain_lanes().find({Op::fma, Type::f32}), nullptr);
  const Lanes* wide = avx2_lanes();
  if (wide == nullptr) GTEST_SKIP() << "no AVX2 here";
  EXPECT_NE(wide->find({Op::fma, Type::f32}), plain_lanes().find({Op::fma, Type::f32}));
}

}  // namespace
}  // namespace sealane::ptx
