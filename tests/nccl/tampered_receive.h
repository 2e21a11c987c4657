// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One bit, in the middle of the large receive in which that many bytes have come.
void flip_a_bit_after(long bytes);
bool bit_was_flipped();
void die_in_receive(int number);  // by SIGKILL, in the receive of that number that brings anything
