#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# What `make demo` shows. Usage: demo.sh PATH_OF_SEALANE
set -eu
sealane=$1

step() { printf '\n\033[1m%s\033[0m\n' "$1"; }
[ -t 1 ] || step() { printf '\n%s\n' "$1"; }

step "What this machine has (sealane doctor)"
"$sealane" doctor

step "How fast it seals (sealane bench seal --quick)"
"$sealane" bench seal --quick
