/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0 */

#include "clients/runtime.h"

int main(void) { return run_runtime(); }
