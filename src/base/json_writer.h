// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// JSON, written from front to back, for the rooms the preload is made of (they link no library for
// it). Commas and escapes are its business, matching brackets are the caller's. Text that is not
// UTF-8 comes out as U+FFFD, a number that is not finite as null: what is written always parses.
//
//   JsonWriter json;
//   json.begin_object().field("copies", 3).begin_array("routes").element("carried").end_array();
//   json.end_object();
//   json.text() == R"({"copies": 3, "routes": ["carried"]})"
//
// Not synchronised.
#pragma once

#include <cmath>
#include <concepts>
#include <string>
#include <string_view>

#include "base/text.h"

namespace sealane {

class JsonWriter {
 public:
  JsonWriter& begin_object(std::string_view name = {}) { return begin(name, '{'); }
  JsonWriter& end_object() { return end('}'); }
  JsonWriter& begin_array(std::string_view name = {}) { return begin(name, '['); }
  JsonWriter& end_array() { return end(']'); }

  template <typename Value>
  JsonWriter& field(std::string_view name, const Value& value) {
    separate();
    string(name);
    out_ += ": ";
    return write(value);
  }

  template <typename Value>
  JsonWriter& element(const Value& value) {
    separate();
    return write(value);
  }

  const std::string& text() const { return out_; }
  void clear() {
    out_.clear();
    first_ = true;
  }

 private:
  JsonWriter& begin(std::string_view name, char bracket) {
    separate();
    if (!name.empty()) {
      string(name);
      out_ += ": ";
    }
    out_ += bracket;
    first_ = true;
    return *this;
  }
  JsonWriter& end(char bracket) {
    out_ += bracket;
    first_ = false;
    return *this;
  }
  void separate() {
    if (!first_) out_ += ", ";
    first_ = false;
  }

  JsonWriter& write(std::string_view value) { return string(value); }
  JsonWriter& write(const char* value) { return string(value); }
  JsonWriter& write(const std::string& value) { return string(value); }
  JsonWriter& write(bool value) {
    out_ += value ? "true" : "false";
    return *this;
  }
  JsonWriter& write(std::nullptr_t) {
    out_ += "null";
    return *this;
  }
  template <std::integral Int>
  JsonWriter& write(Int value) {
    append_text(out_, value);
    return *this;
  }
  JsonWriter& write(double value) {
    if (!std::isfinite(value)) return write(nullptr);
    char digits[32];
    out_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    return *this;
  }
  JsonWriter& string(std::string_view value);

  std::string out_;
  bool first_ = true;  // of its object or array
};

}  // namespace sealane
