#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# What a step of sealed DDP and of FSDP2 takes beside one over Gloo of the same PyTorch, as a file for docs/results/:
#   tools/ddp_results.sh > docs/results/ddp-NAME.txt                   two models, 2 and 4 ranks; three minutes
#   tools/ddp_results.sh buckets > docs/results/ddp-NAME-buckets.txt   all models by bucket size; eight minutes
#   tools/ddp_results.sh gpt > docs/results/ddp-NAME-gpt.txt           a GPT of 14 MiB, 2 ranks, many rounds; one minute
# (Minutes by the rounds of a quiet machine of two cores.) With the PyTorch of `make torch2`; SYSTEM=1 takes the
# system's, which has no FSDP2. SECONDS_EACH is per model, group and bucket size (20; 6; 60); MODELS, RANKS and BUCKETS
# are those of examples/ddp/characterize.py; FSDP_STEPS the rounds of examples/ddp/fsdp2.py (30; 0, which leaves it
# out). JSON=FILE keeps the rows for `sealane report`. BACKEND=NAME=MODULE measures another backend beside them, which
# the module registers (found by PYTHONPATH); the first line of its text says in the file what it is.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=tools/results_header.sh
. tools/results_header.sh
if [ -n "${SYSTEM:-}" ]; then
  python=/usr/bin/python3 package=build/python redirect="-r 1 -t 1" # its torchrun fails without, under Python 3.11
else
  python=build/torch2/venv/bin/python package=build/torch2/python redirect=
fi
# choose MODELS RANKS BUCKETS SECONDS_EACH FSDP_STEPS: where the caller has not.
choose() {
  models=${MODELS:-$1} ranks=${RANKS:-$2} buckets=${BUCKETS:-$3} seconds=${SECONDS_EACH:-$4} steps=${FSDP_STEPS:-$5}
}
case ${1:-} in
  "") choose mlp-25,gpt-14 2,4 25 20 30 ;;
  buckets) choose gpt-14,gpt-43,gpt-100,bert-30,vit-27,resnet50-23,vgg16-19,mlp-25 2,4 5,25,100 6 0 ;;
  gpt) choose gpt-14 2 25 60 0 ;;
  *)
    echo "usage: tools/ddp_results.sh [buckets|gpt]" >&2
    exit 2
    ;;
esac
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
(umask 077 && od -An -tx1 -N32 /dev/urandom | tr -d ' \n' >"$scratch/key" && echo >>"$scratch/key")

results_header "Steps of DistributedDataParallel, MEASURED by tools/ddp_results.sh"
export PYTHONPATH="$package${PYTHONPATH:+:$PYTHONPATH}" SEALANE_KEY_FILE="$scratch/key" OMP_NUM_THREADS=1
export PYTHONDONTWRITEBYTECODE=1
echo "torch:   $("$python" -c 'import torch; print(torch.__version__)')"
[ -z "${SEALANE_CPU:-}" ] || echo "hidden:  SEALANE_CPU=$SEALANE_CPU"
if [ -n "${BACKEND:-}" ]; then
  says="import ${BACKEND#*=} as module; print((module.__doc__ or 'nothing said').splitlines()[0])"
  echo "${BACKEND%%=*}: $("$python" -W ignore -c "$says")"
fi
echo

# run RANKS SCRIPT ARGUMENTS...
run() {
  count=$1
  shift
  echo "\$ torchrun --nproc_per_node $count $*"
  # At a free port, for others may use torchrun meanwhile.
  # shellcheck disable=SC2086
  "$python" -W ignore -m torch.distributed.run $redirect --rdzv_backend c10d --rdzv_endpoint localhost:0 \
    --nproc_per_node "$count" "$@" 2>"$scratch/errors" || {
    cat "$scratch/errors" >&2
    exit 1
  }
  echo
}

run "${ranks##*,}" examples/ddp/characterize.py --models "$models" --ranks "$ranks" --buckets "$buckets" \
  --seconds "$seconds" ${JSON:+--json "$JSON"} ${BACKEND:+--backend "$BACKEND"}
[ -n "${SYSTEM:-}" ] || [ "$steps" = 0 ] || run 4 examples/ddp/fsdp2.py --steps "$steps"
