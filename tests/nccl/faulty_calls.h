// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// An attacker on the wire and a killer at the table, for any plugin that sends and receives by
// libc: takes the place of its calls in the process it is linked into.
#pragma once

#include <functional>

// One bit, in the middle of the large receive in which that many bytes have come.
void flip_a_bit_after(long bytes);
bool bit_was_flipped();

// By SIGKILL, in the call of that number that moves anything: what it received is not seen any
// more, what it sent is on its way. `last_words` are said before.
enum class Call { receive, send };
void die_in(Call call, int number, std::function<void()> last_words);
