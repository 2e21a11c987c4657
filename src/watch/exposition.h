// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Prometheus's text exposition format 0.0.4, written from front to back: families of samples, each
// with its HELP and TYPE. Escapes are its business; names are the caller's, and are as they must
// be. Values of labels are UTF-8, or a scraper refuses the whole file: what may not be goes through
// printable(). A family without a sample leaves no trace.
//
//   Exposition out({{"pid", "17"}});
//   out.family("sealane_copy_bytes_total", Exposition::counter, "Bytes of copies.");
//   out.sample({{"direction", "to_device"}}, uint64_t{4096});
//   out.text() ends in: sealane_copy_bytes_total{pid="17",direction="to_device"} 4096
//
// Not synchronised.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace sealane::serve {

class Exposition {
 public:
  enum Type : uint8_t { counter, gauge };
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  explicit Exposition(Labels of_every_sample) { append_labels(common_, of_every_sample); }

  // The samples that follow are of this family.
  void family(std::string_view name, Type type, std::string_view help);
  void sample(Labels labels, uint64_t value);
  void sample(Labels labels, double value);

  const std::string& text() const { return text_; }

 private:
  static void append_labels(std::string& out, Labels labels);
  void begin_sample(Labels labels);

  std::string common_;  // labels as they stand between the braces
  std::string name_;    // of the family,
  std::string header_;  // and what goes before its first sample
  std::string text_;
};

}  // namespace sealane::serve
