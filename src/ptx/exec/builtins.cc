// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "ptx/exec/builtins.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/text.h"
#include "ptx/exec/access.h"
#include "ptx/exec/grid.h"
#include "ptx/exec/handlers.h"

namespace sealane::ptx {
namespace {

constexpr size_t kTextMax = 1 << 16;

struct Call {
  Warp& w;
  const Instr& in;
  unsigned lane;

  uint8_t* place(unsigned index) const {
    const int64_t at = w.kernel->lists[in.list + index];
    return w.stack + size_t{lane} * w.stack_bytes + w.frame->stack_base + at;
  }
  uint64_t argument(unsigned index, unsigned bytes) const {
    uint64_t value = 0;
    std::memcpy(&value, place(static_cast<unsigned>(in.d) + index), bytes);
    return value;
  }
  void give_back(uint64_t value, unsigned bytes) const {
    if (in.d > 0) std::memcpy(place(0), &value, bytes);
  }
  // A C string of the device; empty with the grid failed if it is nowhere.
  std::string text(uint64_t address) const {
    std::string out;
    while (out.size() < kTextMax) {
      const uint8_t* c = lane_memory(w, in, lane, Space::generic, address++, 1);
      if (c == nullptr || *c == 0) break;
      out += static_cast<char>(*c);
    }
    return out;
  }
};

// printf of a lane: each conversion is done by the host's, with the argument's bytes.
class Formatter {
 public:
  Formatter(const Call& call, uint64_t arguments) : call_(call), at_(arguments) {}

  std::string format(const std::string& text) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '%') {
        out_ += text[i];
        continue;
      }
      if (i + 1 < text.size() && text[i + 1] == '%') {
        out_ += '%';
        ++i;
        continue;
      }
      i = conversion(text, i);
      if (out_.size() > kTextMax) break;
    }
    return std::move(out_);
  }

 private:
  uint64_t next(unsigned bytes) {
    at_ = (at_ + bytes - 1) & ~uint64_t{bytes - 1};
    const uint8_t* memory = lane_memory(call_.w, call_.in, call_.lane, Space::generic, at_, bytes);
    at_ += bytes;
    uint64_t value = 0;
    if (memory != nullptr) std::memcpy(&value, memory, bytes);
    return value;
  }

  size_t conversion(const std::string& text, size_t i) {
    std::string spec = "%";
    bool wide = false;
    for (++i; i < text.size() && std::strchr("-+ #0123456789.*hlLzjt", text[i]) != nullptr; ++i) {
      if (text[i] == '*') {
        const int width = static_cast<int>(next(4));
        spec += std::to_string(std::clamp(width, -1000, 1000));
      } else if (std::strchr("lzjt", text[i]) != nullptr) {
        wide = true;
      } else if (text[i] != 'h' && text[i] != 'L') {
        spec += text[i];
      }
      if (spec.size() > 32) return i;
    }
    // A width of the program must not become gigabytes of ours.
    if (i >= text.size() || longest_number(spec) > 1000) return i;
    char buffer[2048];
    const char kind = text[i];
    if (std::strchr("di", kind) != nullptr) {
      const uint64_t value = next(wide ? 8 : 4);
      const long long number = wide ? static_cast<long long>(value) : static_cast<int32_t>(value);
      append(buffer, std::snprintf(buffer, sizeof buffer, (spec + "lld").c_str(), number));
    } else if (std::strchr("uxXoc", kind) != nullptr) {
      const uint64_t value = next(wide ? 8 : 4);
      if (kind == 'c') {
        append(buffer,
               std::snprintf(buffer, sizeof buffer, (spec + "c").c_str(), static_cast<int>(value)));
      } else {
        append(buffer, std::snprintf(buffer, sizeof buffer, (spec + "ll" + kind).c_str(),
                                     static_cast<unsigned long long>(value)));
      }
    } else if (std::strchr("fFeEgGaA", kind) != nullptr) {
      const double value = std::bit_cast<double>(next(8));
      append(buffer, std::snprintf(buffer, sizeof buffer, (spec + kind).c_str(), value));
    } else if (kind == 'p') {
      append(buffer, std::snprintf(buffer, sizeof buffer, (spec + "p").c_str(),
                                   reinterpret_cast<void*>(next(8))));
    } else if (kind == 's') {
      const std::string argument = call_.text(next(8));
      append(buffer, std::snprintf(buffer, sizeof buffer, (spec + "s").c_str(), argument.c_str()));
    } else {
      out_ += spec + kind;
    }
    return i;
  }

  static int longest_number(const std::string& spec) {
    int longest = 0, number = 0;
    for (const char c : spec) {
      number = c >= '0' && c <= '9' ? std::min(number * 10 + (c - '0'), 100000) : 0;
      longest = std::max(longest, number);
    }
    return longest;
  }

  void append(const char* buffer, int length) {
    if (length > 0) out_.append(buffer, std::min<size_t>(static_cast<size_t>(length), 2047));
  }

  const Call& call_;
  uint64_t at_;
  std::string out_;
};

Flow assertion(const Call& call) {
  const std::string message = call.text(call.argument(0, 8));
  const std::string file = call.text(call.argument(1, 8));
  const auto line = static_cast<uint32_t>(call.argument(2, 4));
  const std::string function = call.text(call.argument(3, 8));
  call.w.grid->fail(Fault::assertion, call.w, &call.in, 1u << call.lane,
                    concat(file, ":", line, ": ", function, ": Assertion `", message, "` failed."));
  return Flow::fault;
}

}  // namespace

Builtin builtin_named(std::string_view name) {
  if (name == "vprintf") return Builtin::vprintf;
  if (name == "__assertfail") return Builtin::assertfail;
  if (name == "malloc") return Builtin::malloc;
  if (name == "free") return Builtin::free;
  return Builtin::none;
}

Flow call_builtin(Warp& w, const Instr& in, uint32_t mask, Builtin which) {
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const Call call{w, in, static_cast<unsigned>(std::countr_zero(left))};
    switch (which) {
      case Builtin::vprintf: {
        const std::string format = call.text(call.argument(0, 8));
        w.block->printed += Formatter(call, call.argument(1, 8)).format(format);
        call.give_back(0, 4);
        break;
      }
      case Builtin::assertfail:
        return assertion(call);
      case Builtin::malloc:
        call.give_back(w.grid->device->allocate(call.argument(0, 8)), 8);
        break;
      case Builtin::free: {
        const uint64_t address = call.argument(0, 8);
        if (address != 0 && !w.grid->device->release(address)) {
          w.grid->fail(Fault::illegal_address, w, &in, 1u << call.lane,
                       "free of what malloc did not give", &address);
        }
        for (Window& window : w.block->recent) window = {};
        break;
      }
      case Builtin::none:
        break;
    }
    if (w.grid->failed()) return Flow::fault;
  }
  return Flow::next;
}

}  // namespace sealane::ptx
