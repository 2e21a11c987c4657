// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What really happened, counted where it happened: the numbers tests and benchmarks judge others
// by. Written as JSON to SEALANE_EMU_STATS when the process ends.
//
// Relaxed atomics: exact once the threads that count have finished.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace sealane::emu {

using Counter = std::atomic<uint64_t>;

struct DirectionCounters {
  Counter copies{0};
  Counter bytes{0};
  Counter blocked_ns{0};      // on the modelled clock, callers in copies of this direction
  Counter messages{0};        // on the bus, the driver's own included
  Counter own_messages{0};    // of the driver
  Counter own_altered{0};     // of those, sealed properly but saying something else
  Counter sealed_bytes{0};    // plaintext bytes that crossed sealed
  Counter verified_bytes{0};  // of them, accepted by the other side
  Counter positions{0};       // IVs used
  Counter rejected{0};        // messages the receiver refused
  Counter rotations{0};       // new keys
};

struct Counters {
  DirectionCounters to_device;
  DirectionCounters to_host;
  Counter device_copies{0};
  Counter device_copy_bytes{0};
  Counter peer_copies{0};
  Counter fills{0};
  Counter launches{0};
  Counter unknown_launches{0};  // of kernels nobody registered
  Counter host_functions{0};
  Counter synchronisations{0};
  Counter answered_bytes{0};  // AEAD work somebody else did in libcrypto's place
  Counter contexts{0};        // ever created
  Counter contexts_failed{0};
  Counter attacks{0};  // what the adversary did
};

Counters& counters();

// The program says what it measures (cuProfilerStart, cuProfilerStop): copies, bytes and blocked
// time of that part are told apart. A second start, or a stop without one, does nothing.
void start_profile();
void stop_profile();

std::string counters_json();

// To SEALANE_EMU_STATS, if set and if the driver was used. A file that cannot be written is one
// line on stderr.
void write_counters();

}  // namespace sealane::emu
