// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What things cost on a platform. Simulator, emulator and estimates all ask here, so that they
// agree.
//
// A stock copy with CC on is a pipeline of two stages over its messages of at most
// cc.message_bytes_max, because one core seals (or opens) message by message and the copy engine
// moves what is sealed meanwhile:
//
//   toll                                  once per copy              (caller's core and device)
//   core:    AEAD + message + staging     bytes / stock rate + message_us + pageable staging
//   engine:  link                         bytes / link rate
//
// To the device the core comes first, to the host the engine does; the sum is the same. Whoever
// seals elsewhere or earlier replaces the AEAD term by what he does instead; toll, message and
// link stay.
//
// Pure functions, any thread.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "platform/platform.h"

namespace sealane {

enum class HostMemory : uint8_t { pinned, pageable };

// bytes at a rate of GB/s, and microseconds as the files have them, rounded to nanoseconds.
Duration time_at(double gb_per_s, uint64_t bytes);
Duration from_us(double us);

// Whole copies.
Duration open_copy_time(const Path& path, HostMemory memory, uint64_t bytes);  // CC off
Duration stock_copy_time(const Platform& platform, const Path& path, HostMemory memory,
                         uint64_t bytes);  // CC as shipped
Duration device_copy_time(const Gpu& gpu, bool cc, uint64_t bytes);

// The parts of a copy with CC on.
uint64_t message_count(const ConfidentialMode& cc, uint64_t copy_bytes);  // at least 1
Duration toll_time(const SealedPath& path, HostMemory memory);
Duration staging_time(const SealedPath& path, HostMemory memory, uint64_t bytes);
// On the core that hands a message over: message_us, or its share if the message is short.
Duration message_time(const ConfidentialMode& cc, const SealedPath& path, uint64_t message_bytes);
Duration link_time(const SealedPath& path, uint64_t message_bytes);
// `copy_bytes` is the size of the copy the message belongs to: it tells whether the cache helps.
Duration stock_aead_time(const Platform& platform, const SealedPath& path, uint64_t message_bytes,
                         uint64_t copy_bytes);

// What we do instead, on one core.
Duration fast_aead_time(const Host& host, uint64_t bytes);
Duration memcpy_time(const Host& host, uint64_t bytes);     // publishing a slot, a snapshot
Duration safe_read_time(const Host& host, uint64_t bytes);  // reading what may be unmapped

// At most this many cores can seal (read and write each byte) before memory is the limit.
uint64_t sealing_cores_max(const Host& host);

Duration guard_arm_time(const GuardCosts& guard, uint64_t bytes);
Duration guard_rewrite_time(const GuardCosts& guard, uint64_t bytes);
Duration guard_check_time(const GuardCosts& guard, uint64_t bytes);
Duration digest_time(const GuardCosts& guard, uint64_t bytes);

Duration launch_time(const Gpu& gpu, bool cc);
// What CC adds to a call that hands something to the device and neither copies nor launches: an
// event that is made or recorded, device memory that is allocated or freed.
Duration call_surcharge(const Gpu& gpu, bool cc);
// A kernel starts so long after its launch has returned, if the device is idle. One that waits
// behind another follows it after queue_gap(), with CC as without: it has been handed over already.
Duration queue_time(const Gpu& gpu, bool cc);
Duration queue_gap(const Gpu& gpu);
Duration kernel_time(const Gpu& gpu, bool cc, Duration open_time);

}  // namespace sealane
