// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Symbols are hidden unless marked.
#pragma once

#define SEALANE_API [[gnu::visibility("default")]]
