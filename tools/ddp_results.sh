#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# What a step of sealed DDP takes beside one over plain Gloo of the same PyTorch, as a file for docs/results/:
#   tools/ddp_results.sh > docs/results/ddp-NAME.txt
# By default with the PyTorch of `make torch2`; SYSTEM=1 takes the system's. SECONDS_EACH is per model and group (20),
# MODELS and RANKS are those of examples/ddp/characterize.py (mlp-25,gpt-14 and 2,4).
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=tools/results_header.sh
. tools/results_header.sh
if [ -n "${SYSTEM:-}" ]; then
  python=/usr/bin/python3 package=build/python redirect="-r 1 -t 1" # its torchrun fails without, under Python 3.11
else
  python=build/torch2/venv/bin/python package=build/torch2/python redirect=
fi
models=${MODELS:-mlp-25,gpt-14}
ranks=${RANKS:-2,4}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
(umask 077 && od -An -tx1 -N32 /dev/urandom | tr -d ' \n' >"$scratch/key" && echo >>"$scratch/key")

results_header "Steps of DistributedDataParallel, MEASURED by tools/ddp_results.sh"
echo "torch:   $("$python" -c 'import torch; print(torch.__version__)')"
echo
echo "\$ torchrun --nproc_per_node ${ranks##*,} examples/ddp/characterize.py --models $models --ranks $ranks --seconds ${SECONDS_EACH:-20}"
# shellcheck disable=SC2086
SEALANE_KEY_FILE=$scratch/key PYTHONPATH=$package OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 \
  "$python" -W ignore -m torch.distributed.run $redirect --nproc_per_node "${ranks##*,}" \
  examples/ddp/characterize.py --models "$models" --ranks "$ranks" --seconds "${SECONDS_EACH:-20}" 2>"$scratch/errors" || {
  cat "$scratch/errors" >&2
  exit 1
}
