#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# What `make demo` shows: the problem, the fix, the proof, the price. Usage: demo.sh PATH_OF_SEALANE
set -eu
sealane=$1
results=${sealane%/bin/*}/demo  # what the steps found, and the page made of it
examples=${sealane%/bin/*}/examples
mkdir -p "$results"
began=$(date +%s)

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); fi
chapter() { printf '\n%s== %s ==%s\n' "$bold" "$1" "$plain"; }
width=80
if [ -t 1 ]; then width=${COLUMNS:-$(tput cols 2>/dev/null || echo 80)}; fi
[ "$width" -le 100 ] || width=100
say() { printf '%s\n' "$*" | fold -s -w "$width" | sed 's/ *$//'; }  # a paragraph
lines() { printf '%s\n' "$@"; }
# Broken so that it can be copied.
command_line() {
  printf '\n%s' "$bold"
  printf '$ %s\n' "$*" | fold -s -w "$((width - 6))" | sed '$!s/ *$/ \\/; 2,$s/^/    /'
  printf '%s' "$plain"
}
# shown FILE ARGUMENT...: a command of the program as it is run, but for where its figures go.
shown() {
  file=$1
  shift
  command_line sealane "$@"
  "$sealane" "$@" ${file:+--json "$results/$file"}
}

chapter "1. The problem"
say "A GPU in confidential mode encrypts whatever it exchanges with the CPU. As NVIDIA ships it, one CPU core does" \
    "that while the program waits. Published: LLM serving with swapping loses 53 to 88 % of its throughput (PipeLLM," \
    "ASPLOS'25), data-parallel training on four GPUs becomes 8 times slower, up to 41 (arXiv 2501.11771)." \
    "What your workload would lose can be worked out before you rent the machine:"
shown flexgen.json estimate --workload flexgen --model opt-66b --platform h100-sxm --workers 16 --steps 1 \
  --policy off,stock,pipellm,sealane

chapter "2. The fix"
say "sealane run -- PROGRAM: the same program, unchanged. All cores seal, with a faster engine, and copies are" \
    "asynchronous again. Here a small transformer with offloaded weights runs on an emulated confidential GPU with" \
    "the costs of an H100 in a TDX guest: off is confidential mode off, stock is as shipped; engine and async are" \
    "Sealane's first two parts, sealane is all of it, as you get it by default:"
shown copy.json bench copy --examples mini_llm-flexgen --examples-dir "$examples" --platform h100-nvl-tdx \
  --policies off,stock,engine,async,sealane

chapter "3. The proof"
say "The same tokens every time: 'bench copy' fails otherwise. And nothing was made faster by protecting less." \
    "One bit is changed on its way to the GPU; the program must not get away with it:"
command_line sealane run --emulate --enable default --adversary flip@100 -- "$examples/mini_llm" --schedule flexgen
if "$sealane" run --emulate --enable default --adversary flip@100 -- "$examples/mini_llm" --schedule flexgen; then
  say "sealane: a flipped bit went unnoticed" >&2
  exit 1
fi
say "(That error is right: the GPU refused the message, and every later call of that context fails.)"
lines "" "The same between two training processes:"
shown "" bench allreduce --ranks 2 -b 1M --tamper

chapter "4. The price"
say "What this machine's CPU can do decides how much encryption costs here:"
shown "" bench seal --quick
baselines=""
[ -x "${sealane%/*}/sealane-bench-mpi" ] && command -v mpirun >/dev/null && baselines="mpi"
if /usr/bin/python3 "${sealane%/*}/sealane-bench-gloo" --probe 2>/dev/null; then
  baselines="${baselines:+$baselines,}gloo"
fi
lines ""
say "A gradient all-reduce between two processes, encrypted and authenticated, beside plain ones that people use" \
    "(${baselines:-neither Open MPI nor PyTorch is installed here}). A sealed one cannot win against a memory copy:" \
    "every byte passes AES on top of it. On $(nproc) cores shared by both ranks that is the whole price; between" \
    "hosts the network hides most of it."
shown allreduce.json bench allreduce --ranks 2 -b 64K -e 25M -f 20 ${baselines:+--baseline "$baselines"}

chapter "Where to go from here"
"$sealane" validate --draws 0 --json "$results/validate.json" >/dev/null
"$sealane" report "$results/allreduce.json" "$results/copy.json" "$results/flexgen.json" "$results/validate.json" \
  -o "$results/report.html"
lines "" "On a confidential GPU:  sealane trial -- YOUR_PROGRAM" \
    "                        (docs/trial.md; nobody has done that yet)" \
    "Without one:            sealane trial --emulate -- YOUR_PROGRAM" \
    "This machine:           sealane doctor" \
    "The same as a page:     $results/report.html" \
    "Took $(($(date +%s) - began)) s."
