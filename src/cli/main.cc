// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/program.h"

int main(int argc, char** argv) { return sealane::cli::run(argc, argv); }
