// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Figures as people read them, for pages written by the rooms the preload is made of. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sealane {

std::string fixed(double value, int decimals);         // 3.14; "-" if it is not a number
std::string grouped(uint64_t value);                   // 12,345
std::string percent_of(double part, double whole);     // "12.3 %"; "-" of nothing
std::string bytes_text(uint64_t bytes);                // "640 B", "1.50 MiB"
std::string time_text(double seconds);                 // "0", "12.3 us", "4.56 ms", "78.9 s"
std::string padded(std::string text, size_t width);    // spaces behind it
std::string indented(std::string text, size_t width);  // spaces before it

size_t columns_of(std::string_view text);  // on a terminal: code points, not bytes

// The words of `text` in lines that fit between `indent` and `columns`, except where one word is
// longer; the first line continues what is already there. Ends with a newline.
std::string wrapped(const std::string& text, size_t indent, size_t columns = 80);

}  // namespace sealane
