/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What we export under the names of the driver's functions: one jump each, through an entry of a table (table.h).
 * The entry is our hook at first and, where there is nothing to do in this process, the driver's own function:
 * every argument stays where it is, whatever the function takes. */
        .macro  entry symbol
        .data
        .quad   hooked_\symbol
        .text
        .balign 16
        .globl  \symbol
        .type   \symbol, @function
\symbol:
        .cfi_startproc
        endbr64
        jmp     *sealane_entries+8*number(%rip)
        .cfi_endproc
        .size   \symbol, .-\symbol
        .set    number, number+1
        .endm

        .data
        .balign 8
        .globl  sealane_entries
        .hidden sealane_entries
        .type   sealane_entries, @object
sealane_entries:
        .set    number, 0

/* In the order of table.h's Slot. */
#define SEALANE_HOOK(symbol, name, version, per_thread) entry symbol;
#include "hooks.def"

        .data
        .size   sealane_entries, .-sealane_entries
        .section .note.GNU-stack,"",@progbits
