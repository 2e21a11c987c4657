#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Do Accelerate (with its own launcher), the Transformers Trainer and Lightning train over the backend as they do over
# Gloo, to the last digit printed?
# Usage: frameworks.sh PYTHON   with all three installed, and sealane in its path.
set -eu
python=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
(umask 077 && od -An -tx1 -N32 /dev/urandom | tr -d ' \n' >"$scratch/key" && echo >>"$scratch/key")
export SEALANE_KEY_FILE=$scratch/key OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo PYTHONDONTWRITEBYTECODE=1

# Two ranks: sums have the same bits in either order.
loss() {
  launcher="torch.distributed.run --standalone --monitor_interval 0.1 --nproc_per_node 2"
  [ "$1" != accelerate_train ] || launcher="accelerate.commands.launch --multi_gpu --num_processes 2 --num_machines 1 \
    --main_process_port 0 --mixed_precision no --dynamo_backend no"
  # shellcheck disable=SC2086
  EXAMPLE_BACKEND=$2 "$python" -W ignore -m $launcher "$root/examples/ddp/$1.py" >"$scratch/out" 2>"$scratch/errors" || {
    cat "$scratch/errors" >&2
    return 1
  }
  grep -o 'loss [0-9.]*; sealed [0-9]* messages' "$scratch/out"
}

for example in accelerate_train trainer lightning_train; do
  sealed=$(loss "$example" sealane)
  plain=$(loss "$example" gloo)
  echo "$example: $sealed; over Gloo: ${plain%%;*}"
  [ "${sealed%%;*}" = "${plain%%;*}" ] || { echo "$example: the losses differ" >&2; exit 1; }
  case $sealed in *"sealed 0 messages") echo "$example: nothing was sealed" >&2; exit 1 ;; esac
done
