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

step "A sealed all-reduce beside plain ones (sealane bench allreduce)"
baselines=""
[ -x "$(dirname "$sealane")/sealane-bench-mpi" ] && command -v mpirun >/dev/null && baselines="mpi"
if /usr/bin/python3 "$(dirname "$sealane")/sealane-bench-gloo" --probe 2>/dev/null; then
  baselines="${baselines:+$baselines,}gloo"
fi
"$sealane" bench allreduce --ranks 2 -b 64K -e 25M -f 20 ${baselines:+--baseline "$baselines"}

step "One bit changed on its way (sealane bench allreduce --tamper)"
"$sealane" bench allreduce --ranks 2 -b 1M --tamper
