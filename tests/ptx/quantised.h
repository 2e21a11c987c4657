// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Blocks of 32 numbers that share a scale (a half's bits), for device (quantised.cu) and host.
//
// Plain values.
#pragma once

struct Weights {
  unsigned short scale;
  unsigned char values[16];  // the low halves are 0 to 15, the high ones 16 to 31, each plus 8
};

struct Activations {
  unsigned short scale;
  unsigned short sum;  // of what was rounded
  signed char values[32];
};
