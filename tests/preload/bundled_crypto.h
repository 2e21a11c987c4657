/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

enum { BUNDLED_CRYPTO = 1147 };

/* Of the plugin. 1147: it reached the libcrypto it was linked to. */
int bundled_call(void);      /* called from here, */
int bundled_tail_call(void); /* or by a jump, whose return address is the caller's */
