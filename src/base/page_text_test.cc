// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does what is written for programs parse, and does what is written for people read well?

#include <gtest/gtest.h>

#include <cmath>

#include "base/figures.h"
#include "base/json_writer.h"

namespace sealane {
namespace {

TEST(JsonWriter, NestsAndSeparates) {
  JsonWriter json;
  json.begin_object().field("copies", 3).begin_array("routes").element("carried").element(7);
  json.begin_object().end_object().end_array().field("on", true).field("rate", 2.5);
  json.field("none", nullptr).end_object();
  EXPECT_EQ(
      json.text(),
      R"({"copies": 3, "routes": ["carried", 7, {}], "on": true, "rate": 2.5, "none": null})");
}

TEST(JsonWriter, EscapesWhatJsonDoesNotAllow) {
  JsonWriter json;
  json.element(
      "a\"b\\c\nd\x01"
      "e");
  EXPECT_EQ(json.text(), R"("a\"b\\c\nd\u0001e")");
}

TEST(JsonWriter, KeepsUtf8AndReplacesWhatIsNot) {
  JsonWriter json;
  json.element("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80|\xC0\xAF|\xED\xA0\x80|\xC3");
  EXPECT_EQ(json.text(),
            "\"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80|\xEF\xBF\xBD\xEF\xBF\xBD|"
            "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD|\xEF\xBF\xBD\"");
}

TEST(JsonWriter, WritesNoNumberThatIsNone) {
  JsonWriter json;
  json.begin_array().element(std::nan("")).element(INFINITY).element(UINT64_MAX).end_array();
  EXPECT_EQ(json.text(), "[null, null, 18446744073709551615]");
}

TEST(Figures, ReadWell) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(bytes_text(640), "640 B");
  EXPECT_EQ(bytes_text(1536 * 1024), "1.50 MiB");
  EXPECT_EQ(bytes_text(uint64_t{200} << 30), "200 GiB");
  EXPECT_EQ(time_text(0), "0");
  EXPECT_EQ(time_text(12.34e-6), "12.3 us");
  EXPECT_EQ(time_text(0.00456), "4.56 ms");
  EXPECT_EQ(time_text(78.94), "78.9 s");
  EXPECT_EQ(percent_of(1, 8), "12.5 %");
  EXPECT_EQ(percent_of(1, 0), "-");
  EXPECT_EQ(fixed(NAN, 2), "-");
}

}  // namespace
}  // namespace sealane
