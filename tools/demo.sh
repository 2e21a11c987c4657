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

mini_llm=$(dirname "$sealane")/../examples/mini_llm
emulated() { "$sealane" run --emulate --platform h100-tdx "$@" -- "$mini_llm" --schedule flexgen --steps 8; }
if [ -x "$mini_llm" ]; then
  step "A transformer with offloaded weights on an emulated GPU (sealane run --emulate --cc off)"
  emulated --cc off | grep -E 'tokens_per_s|hash'
  step "The same in confidential mode as shipped: the same tokens, later (--cc on)"
  emulated --cc on | grep -E 'tokens_per_s|hash'
  step "One bit changed on the bus to the GPU (--adversary flip@100)"
  if emulated --cc on --adversary flip@100; then
    echo "sealane: a flipped bit went unnoticed" >&2
    exit 1
  fi
fi
