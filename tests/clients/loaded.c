/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0 */

#include "clients/loaded.h"

int main(int argc, char** argv) { return run_loaded(argc == 2 ? argv[1] : ""); }
