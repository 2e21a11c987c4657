// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How many workers a crew may have at work, now: what the cores and their load leave (cores.h),
// within what all processes of the user may have together (shared_units.h). Looked at again now and
// then; who rests gives its slots back.
//
// Threads: one at a time.
#pragma once

#include <memory>
#include <string>

#include "os/cores.h"
#include "os/shared_units.h"

namespace sealane {

class Workforce {
 public:
  Workforce(Cores cores, KernelFiles files, const std::string& slots_folder);
  // Of this process.
  static std::unique_ptr<Workforce> make();

  // Besides the thread that asks, as below.
  unsigned workers_max() const { return cores_.workers_max() - 1; }
  // How many may work from now on; `used`: cores' worth of time they took since the last time.
  unsigned consider(double used);
  // Nobody has asked for anything for a while: one stays, for whoever comes next.
  unsigned rest();
  void forget() { slots_.forget(); }

  const Cores& cores() const { return cores_; }

 private:
  const Cores cores_;
  CoreLoad load_;
  SharedUnits slots_;
};

}  // namespace sealane
