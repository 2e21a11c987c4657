// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Should small copies that wait together travel together? As one crossing they pay one toll. What
// that costs instead: the bytes are gathered in the host where they do not lie end to end there,
// and scattered (or, on the way to the host, gathered) on the device where they do not lie end to
// end there.
//
// Use: begin() with the copy whose turn it is, then admit() those that wait behind it, in order.
// Pure: no threads, no clock, no I/O, no allocation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/time.h"
#include "core/copy.h"

namespace sealane {

class CopyTable;
struct CopyThread;

struct CrossingCosts {
  Duration toll{20'000};            // a crossing, whatever its size
  Duration scatter{6'000};          // a copy within the device (5.1 to 7.7 us were measured)
  double copy_ns_per_byte = 0.094;  // within the host, one core
  uint64_t bytes_max = 64_KiB;      // of one crossing
  size_t copies_max = 32;
};

class Gathering {
 public:
  explicit Gathering(const CrossingCosts& costs) : costs_(costs) {}

  void begin(Range host, uint64_t device);
  bool admit(Range host, uint64_t device);  // true: it travels with those before

  size_t copies() const { return copies_; }
  uint64_t bytes() const { return bytes_; }
  // How many stretches without a gap they make, in order.
  size_t host_pieces() const { return host_pieces_; }
  size_t device_pieces() const { return device_pieces_; }

 private:
  Duration cost() const;

  CrossingCosts costs_;
  size_t copies_ = 0;
  uint64_t bytes_ = 0;
  size_t host_pieces_ = 0;
  size_t device_pieces_ = 0;
  uint64_t host_end_ = 0;
  uint64_t device_end_ = 0;
};

// With the copy of the thread whose turn it is, its crossing, those that wait behind it, if all
// they must not overtake has ended or travels before them.
void gather(const CopyTable& copies, CopyThread& thread, size_t first, const CrossingCosts& costs);

// Is there one behind it in the thread's queue that would travel with it?
bool has_company(const CopyTable& copies, const CopyThread& thread, size_t at,
                 const CrossingCosts& costs);

}  // namespace sealane
