#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# What the AES-256-GCM engines do on this machine, and sealed all-reduces with them, at every width it has: as it is,
# with AVX512 hidden (VAES on 256 bits) and with VAES hidden (AES-NI). As files for docs/results/:
#   tools/engine_results.sh write NAME      both files: docs/results/engines-NAME.txt and allreduce-NAME.txt
#   tools/engine_results.sh engines         the first on standard output: a table per width
#   tools/engine_results.sh allreduce       the second: per width 2 and 4 ranks, 1 and 25 MiB
# SEALANE_BIN names the program (build/bin/sealane), SECONDS_EACH how long each table of engines takes (24), ROUNDS how
# many calls of each system an all-reduce's figure is of (60).
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=tools/results_header.sh
. tools/results_header.sh
bin=${SEALANE_BIN:-build/bin/sealane}
unset SEALANE_BIN # not one of the program's own, which warns of what it does not know
seconds=${SECONDS_EACH:-24}
rounds=${ROUNDS:-60}
sizes="--record-bytes 256 --record-bytes 1K --record-bytes 4K --record-bytes 16K --record-bytes 64K --record-bytes 1M"

show() {
  echo
  echo "\$ $*"
  quietly env "$@"
}

# What to hide for each width this CPU has.
widths() {
  has() { grep -q -w "$1" /proc/cpuinfo; }
  if has avx512bw && has vaes; then echo SEALANE_CPU=; fi
  if has vaes; then echo SEALANE_CPU=-avx512; fi
  echo SEALANE_CPU=-vaes
}

engines() {
  results_header "AES-256-GCM, MEASURED by tools/engine_results.sh engines" "$bin"
  for hidden in $(widths); do
    # shellcheck disable=SC2086
    show "$hidden" "$bin" bench seal $sizes --seconds "$seconds"
  done
}

allreduce() {
  results_header "Sealed all-reduces, MEASURED by tools/engine_results.sh allreduce" "$bin"
  for hidden in $(widths); do
    for ranks in 2 4; do
      show "$hidden" "$bin" bench allreduce --ranks $ranks -b 1M -e 25M -f 25 -n "$rounds" --baseline mpi,gloo
    done
  done
}

case ${1:-} in
  engines | allreduce) "$1" ;;
  write)
    name=${2:?"usage: tools/engine_results.sh write NAME"}
    for what in engines allreduce; do
      "$what" >"docs/results/$what-$name.txt.new"
      mv "docs/results/$what-$name.txt.new" "docs/results/$what-$name.txt"
    done
    ;;
  *)
    echo "usage: tools/engine_results.sh write NAME | engines | allreduce" >&2
    exit 2
    ;;
esac
