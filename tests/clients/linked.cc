// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "clients/linked.h"

int main() { return run_linked(); }
