// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How far a platform's numbers may be off, and platforms drawn from that.
//
// A number's spread says: four times out of five the truth is within a factor of 1 + spread. Where
// a file does not say it, it follows from the source: 5 % for what was published of that machine,
// 20 % for what was measured on another, 30 % for what is assumed. Counts and switches (cores,
// bytes of a message) do not vary: whoever plans knows them.
//
// Numbers that are one thing under two names (a link with CC off and on, a library's rate from
// cache and from memory) move together. Draws are stratified: of n, each number takes each of n
// equally likely strata once. Pure and the same on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "platform/platform.h"

namespace sealane {

constexpr double kSpreadMost = 3;

Knowledge kind_of(std::string_view source);
std::string_view to_string(Knowledge kind);  // "published"
double usual_spread(Knowledge kind);

// What a number is multiplied with in draw `index` of `count`.
double drawn_factor(const std::string& name, double spread, uint32_t index, uint32_t count,
                    uint64_t seed = 1);

// A number, or several that move together, and what is known of the least known of them.
struct Mover {
  std::string name;
  Knowledge kind = Knowledge::published;
  double spread = 0;
};
std::vector<Mover> movers_of(const Platform& platform);

// The platform with one mover above (1) or below (-1) what is written, by its spread.
Platform moved(const Platform& platform, std::string_view mover, int direction);

// Draw `index` of `count`. Limits of the format hold for what is drawn.
Platform drawn(const Platform& platform, uint32_t index, uint32_t count, uint64_t seed = 1);

}  // namespace sealane
