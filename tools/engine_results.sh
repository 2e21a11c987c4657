#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# What the AES-256-GCM engines do on this machine, and sealed all-reduces with them, as files for docs/results/:
#   tools/engine_results.sh           > docs/results/engines-NAME.txt      two tables of 24 s
#   tools/engine_results.sh allreduce > docs/results/allreduce-NAME.txt    2 and 4 ranks, 1 and 25 MiB
# SEALANE_BIN names the program (build/bin/sealane), SECONDS_EACH how long each table of engines takes (24).
set -eu
# shellcheck source=tools/results_header.sh
. "$(dirname "$0")/results_header.sh"
bin=${SEALANE_BIN:-build/bin/sealane}
unset SEALANE_BIN # not one of the program's own, which warns of what it does not know
seconds=${SECONDS_EACH:-24}

show() {
  echo
  echo "\$ $*"
  env "$@" 2>/dev/null
}

what=${1:-engines}
results_header "AES-256-GCM, MEASURED by tools/engine_results.sh${1:+ $1}" "$bin"
case $what in
  engines)
    sizes="--record-bytes 256 --record-bytes 1K --record-bytes 4K --record-bytes 16K --record-bytes 64K --record-bytes 1M"
    # shellcheck disable=SC2086
    show "$bin" bench seal $sizes --seconds "$seconds"
    # shellcheck disable=SC2086
    show SEALANE_CPU=-vaes "$bin" bench seal $sizes --seconds "$seconds"
    ;;
  allreduce)
    for ranks in 2 4; do
      show "$bin" bench allreduce --ranks $ranks -b 1M -e 25M -f 25 --baseline mpi,gloo
    done
    ;;
  *)
    echo "usage: tools/engine_results.sh [engines|allreduce]" >&2
    exit 2
    ;;
esac
