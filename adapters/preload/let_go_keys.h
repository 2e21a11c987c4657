// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The driver's keys are dropped when their time is over (serve/known_keys.h), also those of a
// driver that says nothing more: by a thread that is there while any may have to be. Where there is
// no thread to be had the driver's next message has them dropped.
//
// Thread-safe.
#pragma once

namespace sealane::preload {

void key_let_go();  // a context had one, and has it no more

}  // namespace sealane::preload
