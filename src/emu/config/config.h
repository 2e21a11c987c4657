// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Every switch of the emulated GPU, read once from SEALANE_EMU_* variables (docs/emulator.md lists
// them; `sealane run --emulate` sets them from flags). A value that cannot be understood is one
// line on stderr and makes cuInit fail: running on with another meaning would spoil somebody's
// test.
//
// Immutable after the first config().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "emu/config/model.h"

namespace sealane::emu {

// How the host side reaches libcrypto. What the real driver does is unconfirmed.
enum class Reach : uint8_t {
  helper,    // a helper library that links libcrypto, opened RTLD_LOCAL
  deepbind,  // the same, opened RTLD_DEEPBIND
  dlsym,     // dlopen of libcrypto and dlsym of each function
  linked,    // the driver itself is linked to libcrypto (another build of it: lib/emu/linked)
  own,       // not at all: the driver has AES-GCM of its own, out of everybody's sight
};

enum class Attack : uint8_t { none, flip, drop, duplicate, swap, truncate, replay };
enum class Direction : uint8_t { to_device, to_host };

struct Adversary {
  Attack attack = Attack::none;
  uint64_t message = 0;  // which message of the direction, from 1, counted over all contexts
  Direction direction = Direction::to_device;
};

struct Config {
  bool cc = true;
  int gpus = 1;
  std::vector<int> visible;   // those of them CUDA shows this process, in its order
  uint64_t memory_bytes = 0;  // of each GPU
  std::string gpu_name = "Sealane Emulated GPU";

  // What nobody has confirmed about the real driver.
  Reach reach = Reach::helper;
  bool staged = false;           // the source is copied to a private buffer before it is sealed
  bool additional_data = false;  // messages carry 16 bytes of additional data
  int updates = 1;               // EVP updates per message
  bool fresh_contexts = false;   // a new EVP context for every message
  bool seal_thread = false;      // sealing happens on a thread of the driver
  bool wipes = true;             // what it opened of a forged message; else as libcrypto leaves it
  int chatter = 0;               // a message of the driver's own before every Nth message; 0: none
  int queues = 8;                // hardware queues per context
  bool stream_memory_operations = true;
  bool pageable_async = false;  // a pageable source is staged and the caller goes on, in CC mode
  bool mapped_live = false;     // kernels see mapped pinned memory itself in CC mode, not a copy
  uint64_t message_bytes_max = 1 << 20;
  int bounce_slots = 4;  // messages in flight

  uint64_t rotation_bytes = 0;  // a new key after so many bytes of a channel
  uint64_t contexts_max = 18;   // in CC mode
  Adversary adversary;

  bool paced = false;
  double dilation = 1;  // K: a modelled second takes K real ones
  Model model;

  // Kernels see mapped pinned memory as it was at the last synchronisation.
  bool stale_views() const { return cc && !mapped_live; }

  int compute_capability = 90;
  bool check_memory = false;  // of device code: shared reads before writes, exact ends of buffers
  bool check_races = false;
  bool skip_machine_code = false;  // kernels without PTX do nothing
  int workers = 0;                 // threads that run device code; 0: one for each core

  std::string kernels;  // colon-separated shared objects
  std::string stats;    // file of truth counters, empty: none
};

// `lookup` has getenv's signature: tests bring their own environment.
using Lookup = const char* (*)(const char* name);
Result<Config> read_config(Lookup lookup);

// The process's configuration. If the environment is unusable, says why on stderr, once, and
// returns nullptr.
const Config* config();

// What `auto` means for the dilation on a machine with this many cores.
double automatic_dilation(unsigned cores);

}  // namespace sealane::emu
