// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Plays a trace on the emulated GPU:
//     scenario_player TRACE [waits:PERCENT] [INDEX:DISTURBANCE...]
// A disturbance (sealane_emu.h) happens just before the operation of that index. With waits,
// kernels and thinking really take that part of their time. Prints "violation: ..." if wrong bytes
// were delivered and "error: ..." if a call failed, each once; exit code 0 whatever it saw.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "scenario/player/kernels.h"
#include "scenario/player/player.h"
#include "workload/trace.h"

int main(int argc, char** argv) {
  using namespace sealane;
  const auto program = argc >= 2 ? workload::load_trace(argv[1]) : usage_error("which trace?");
  if (!program) {
    std::fprintf(stderr, "scenario_player: %s\n", program.error().message.c_str());
    return 2;
  }
  test::Player player(*program);
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string what = word.substr(word.find(':') + 1);
    if (word.starts_with("waits:")) {
      test::set_waits(static_cast<unsigned>(std::atoi(what.c_str())));
    } else {
      player.disturb_before(std::strtoul(word.c_str(), nullptr, 10), what);
    }
  }
  player.play();
  return 0;
}
