// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Messages the driver seals or opens, answered by our engine in libcrypto's place. One Message
// mirrors one EVP context of the driver's: key, IV, additional data, then the bytes in any number
// of updates, then the tag.
//
//   1. key       sequential   scheduled once per key, found again by its bytes       driver's
//   thread
//   2. bytes     parallel     every update is cut into parts; GCM lets each be       pool
//                             computed alone (seal/split_gcm.h)
//   3. tag       sequential   the parts' hashes joined; compared in constant time    driver's
//   thread
//
// Nothing is guessed: key, IV and bytes are those the driver names in the very call, so rotation,
// new channels, extra messages of the driver, staging and its threads need no special case, and an
// answer can be wrong only if the engine is. Speculation (slots sealed ahead) joins at step 2, with
// the copy in flight and the place in it as what is matched besides key, IV and length
// (live_speculator.h).
//
// A slot answers update by update, as long as each continues the one before in the source. Where
// that ends before the slot does (another place, a longer or a shorter message) the rest is sealed
// here: what the driver has is the beginning of this very message under this very IV, so going on
// at its next byte is the one ciphertext there may be. Only the hash of what was given is missing
// then, and is taken from the slot's bytes. To wait for the tag before the slot is used would need
// the message in private memory first, which is a pass over its bytes more for all who do not
// stray.
//
// Opening reads each byte of the ciphertext once, so what lies in the bounce buffer may change
// meanwhile. A wrong tag fails, as libcrypto fails, and writes nothing: an output is touched only
// in the call that names it. By the end the driver may have unmapped it or given it to somebody
// else, and whoever forges a tag on the bus would choose when we write there. What was opened is
// wiped by who owns the memory: of a copy that is carried its destination, before its gate opens
// (core/copy/copy_actions.h). All other outputs are the driver's, who is told what libcrypto tells.
//
// An output may overlap its input: libcrypto takes that. About one that lies below the input it is
// right. One above it overwrites what is yet to be read, and how much of that libcrypto then seals
// depends on the CPU's instructions. Here the bytes are right in both cases, on this thread alone.
//
// Threads: a Message belongs to one thread at a time, as EVP contexts do. The rest is thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "core/copy.h"
#include "os/worker_pool.h"
#include "seal/secret_memory.h"
#include "seal/split_gcm.h"
#include "serve/events.h"
#include "serve/known_keys.h"
#include "serve/live_speculator.h"

namespace sealane::serve {

class Message {
 public:
  Message() = default;
  ~Message() { finish_turn(); }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  // The direction is the key's: one that seals goes to the device. False: there is no memory for
  // what its messages must keep secret, and none can be answered; later there is none to run out
  // of.
  [[nodiscard]] bool set_key(std::shared_ptr<const SplitGcm> key, uint64_t key_number,
                             Direction direction);
  Direction direction() const { return direction_; }

  void begin(const Iv& iv);
  bool add_additional(Bytes bytes);  // false: too late, or too much
  // `pool` null: on this thread alone.
  void update(const uint8_t* in, uint8_t* out, uint64_t bytes, WorkerPool* pool);
  void pass(const uint8_t* in, const uint8_t* out, uint64_t bytes);  // libcrypto did it
  Tag tag(bool answered);           // ends the message; all zero if libcrypto did it
  void go_on_from(Message& other);  // as far as that is; each goes on alone

  uint64_t bytes() const { return bytes_; }
  // Beyond GCM's longest message the keystream would begin anew.
  bool has_room(uint64_t bytes) const { return bytes <= kGcmMessageBytesMax - bytes_; }

 private:
  void whole_blocks(const uint8_t* in, uint8_t* out, uint64_t bytes, WorkerPool* pool);
  void few_bytes(const uint8_t* in, uint8_t* out, uint64_t bytes);
  void blocks(const uint8_t* in, uint8_t* out, uint64_t bytes, WorkerPool* pool);
  void blocks_over_input(const uint8_t* in, uint8_t* out, uint64_t bytes);
  void crypt_over_input(const uint8_t* in, uint8_t* out, uint64_t bytes, GcmHash& hash);
  GcmHash crypt(uint64_t offset, const uint8_t* in, uint8_t* out, uint64_t bytes) const;
  void copy_over(const uint8_t* from, uint8_t* to, uint64_t bytes, WorkerPool* pool);
  void note_update(const uint8_t* in, const uint8_t* out, uint64_t bytes);
  bool answer_ahead(const uint8_t* in, uint8_t* out, uint64_t bytes, WorkerPool* pool);
  void open_slot(const uint8_t* in, uint64_t bytes);
  bool in_slot(const uint8_t* in, uint64_t bytes) const;
  void leave_slot();
  void begin_block(const uint8_t* ciphertext, uint64_t bytes);
  void finish_turn();
  void tell() const;
  void tell_part(Event& event, uint64_t bytes) const;

  // What nobody else may know of a message that is on its way: with the ciphertext, which anybody
  // has, a hash gives the hash's key. It waits where keys are, in memory that is taken once for all
  // messages of a context.
  static constexpr uint64_t kPartsMax = 64;
  struct State {
    GcmHash hash;
    GcmBlock keystream;                    // of a block that is not complete yet
    std::array<GcmHash, kPartsMax> parts;  // of an update, until they are joined
  };
  State& state();
  static uint64_t part_bytes(uint64_t bytes, const WorkerPool* pool);

  std::shared_ptr<const SplitGcm> key_;
  uint64_t key_number_ = 0;
  Direction direction_ = Direction::to_device;
  Iv iv_{};
  std::optional<Secret<State>> state_;  // from the first key on
  GcmBlock block_{};                    // ciphertext of a block that is not complete yet
  uint64_t additional_bytes_ = 0;
  uint64_t bytes_ = 0;
  uint16_t updates_ = 0;
  Instant began_{};
  Answer answer_ = Answer::engine;
  uint64_t source_ = 0;  // where its plaintext begins; an address to tell of, not to touch
  LiveSpeculator* ahead_ = nullptr;  // whose turn this message is
  LiveSpeculator::Taken taken_{};
  bool from_slot_ = false;  // all bytes so far; their hash is not in the state
};

// What a driver opens to this memory, or on this thread, is refused as if it had been forged: how a
// context is made to fail. One byte of the device's is enough.
class RefusedOpening {
 public:
  RefusedOpening();
  ~RefusedOpening();
  RefusedOpening(const RefusedOpening&) = delete;
  RefusedOpening& operator=(const RefusedOpening&) = delete;
  static uint8_t* place();  // where the copy is to go
};
bool is_refused(const uint8_t* out);

}  // namespace sealane::serve
