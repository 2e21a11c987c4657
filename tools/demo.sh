#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# What `make demo` shows. Usage: demo.sh PATH_OF_SEALANE
set -eu
sealane=$1
results=${sealane%/bin/*}/demo  # what the steps found, and the page made of it
mkdir -p "$results"

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
"$sealane" bench allreduce --ranks 2 -b 64K -e 25M -f 20 ${baselines:+--baseline "$baselines"} \
  --json "$results/allreduce.json"

step "One bit changed on its way (sealane bench allreduce --tamper)"
"$sealane" bench allreduce --ranks 2 -b 1M --tamper

step "A transformer with offloaded weights on an emulated confidential GPU: the same tokens under every policy,
and what each part buys: a fast engine, asynchrony, parallel sealing, speculation (sealane bench copy)"
examples=$(dirname "$sealane")/../examples
"$sealane" bench copy --examples mini_llm-flexgen --examples-dir "$examples" --platform h100-nvl-tdx --seconds 15 \
  --json "$results/copy.json"

step "One bit changed on the bus to that GPU (sealane run --emulate --adversary flip@100)"
if "$sealane" run --emulate --policy sealane --adversary flip@100 -- "$examples/mini_llm" --schedule flexgen; then
  echo "sealane: a flipped bit went unnoticed" >&2
  exit 1
fi

# What follows is worked out, not measured.
all_policies=off,stock,engine,async,parallel,pipellm,sealane

step "What confidential mode costs, before you pay for it (sealane estimate)"
"$sealane" estimate --workload vllm --model opt-30b --platform h100-sxm --workers 16 --samples 4 \
  --minutes 1 --swap-unit layer --policy "$all_policies" --json "$results/vllm.json"
echo
"$sealane" estimate --workload flexgen --model opt-66b --platform h100-sxm --workers 16 --steps 1 \
  --policy "$all_policies" --json "$results/flexgen.json"
echo
"$sealane" estimate --workload ddp --model gpt2-xl --platform h100-nvl-tdx --json "$results/ddp.json"

step "One page with everything, and what is what (sealane validate, sealane report)"
"$sealane" validate --json "$results/validate.json" >/dev/null
set -- "$results/vllm.json" "$results/flexgen.json" "$results/ddp.json" "$results/validate.json"
"$sealane" report "$results/allreduce.json" "$results/copy.json" "$@" -o "$results/report.html"
