/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Where the host side of the emulated driver seals: AES-256-GCM through libcrypto's EVP functions,
 * the way NVIDIA's driver is believed to. The code is compiled twice: into a helper library that
 * links libcrypto (libsealane-emu-seal.so), and into the driver with functions found by dlsym.
 * Which libcrypto answers is up to the dynamic linker and to whoever interposes: that is the point.
 *
 * A sealer belongs to one end of one channel and serves one thread at a time. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

typedef struct sealane_emu_sealer sealane_emu_sealer;

typedef struct sealane_emu_message {
  uint8_t iv[12];
  const uint8_t* additional;
  size_t additional_bytes;
  const uint8_t* in;
  size_t bytes;
  uint8_t* out;
  uint8_t tag[16]; /* seal: out; open: in */
} sealane_emu_message;

typedef struct sealane_emu_sealing {
  uint32_t size;
  /* NULL if libcrypto refuses. `updates`: EVP updates per message. */
  sealane_emu_sealer* (*create)(const uint8_t key[32], int encrypt, int fresh_contexts,
                                int updates);
  void (*destroy)(sealane_emu_sealer* sealer);
  int (*seal)(sealane_emu_sealer* sealer, sealane_emu_message* message);       /* 1: done */
  int (*open)(sealane_emu_sealer* sealer, const sealane_emu_message* message); /* 1: genuine */
} sealane_emu_sealing;

/* The helper's only export. */
const sealane_emu_sealing* sealane_emu_sealing_v1(void);

#if defined(__cplusplus)
}
#endif
