#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# What the simulator says of the core, as files for docs/results/ (the same figures on every machine):
#   tools/sim_results.sh steps > docs/results/sim-steps.txt    what each step from stock to sealane buys; 10 s
#   tools/sim_results.sh hits  > docs/results/sim-hits.txt     how often copies are foreseen; 10 s
#   tools/sim_results.sh stock > docs/results/sim-stock.txt    the worst time against stock; a minute
#   tools/sim_results.sh seeds > docs/results/sim-seeds.txt    0..20000 of each mode, three policies; an hour of one core
# SEALANE_LAST_SEED=N says where `seeds` ends (20000). It runs in slices of 500 seeds, kept in build/sim-seeds: with
# SEALANE_SECONDS=N it begins no slice after so long and shows what has been run; called again, it goes on there.
# SEALANE_BIN names the program (build/bin/sealane); predict_bench is beside it.
set -eu
# shellcheck source=tools/results_header.sh
. "$(dirname "$0")/results_header.sh"
bin=${SEALANE_BIN:-build/bin/sealane}
unset SEALANE_BIN # not one of the program's own, which warns of what it does not know

show() {
  echo
  echo "\$ $*" | sed "s|$(dirname "$bin")/|build/bin/|"
  quietly "$@"
}

row='%-10s %-15s %-12s %5s %6s %11s %12s  %s\n'
# worst POLICY LAST_SEED OPS PLATFORM MODE: one line
worst() {
  "$bin" sim --policy "$1" --seeds "0..$2" --ops "$3" --platform "$4" --mode "$5" 2>/dev/null |
    awk -v row="$row" -v policy="$1" -v seeds="$(($2 + 1))" -v ops="$3" -v platform="$4" -v mode="$5" '
      $1 == "violations" { violations = $2 }
      $1 == "time" { ratio = $4; sub(/.*\(/, ""); sub(/\).*/, ""); at = $0 }
      END {
        if (violations == "") exit 1 # it did not come to its end
        printf row, policy, platform, mode, seeds, ops, violations, ratio, at
      }'
}

events='%-10s %-12s %7s %6s %12s %13s %11s %9s\n'
# slice POLICY MODE FIRST_SEED END OPS: unless it is kept already, or there is no time left
slice() {
  file=$kept/$1-$2-$3-$4
  begin=$(date +%s)
  if [ -e "$file" ] || [ "$begin" -ge "$until" ]; then return; fi
  "$bin" sim --alone --policy "$1" --mode "$2" --seeds "$3..$4" --ops "$5" 2>/dev/null |
    awk -v begin="$begin" -v seeds="$(($4 - $3 + 1))" '
      $1 == "operations" { operations = $2 }
      $1 == "events" { events = $2 }
      $1 == "violations" { violations = $2 }
      END {
        if (operations == "") exit 1 # it did not come to its end
        "date +%s" | getline now
        print seeds, operations, events, violations, now - begin
      }' >"$file.part"
  mv "$file.part" "$file"
}
# count POLICY MODE OPS: one line about all slices
count() {
  cat "$kept/$1-$2-"*[0-9] 2>/dev/null |
    awk -v row="$events" -v policy="$1" -v ops="$3" -v mode="$2" '
      { seeds += $1; operations += $2; events += $3; violations += $4; seconds += $5 }
      END { printf row, policy, mode, seeds, ops, operations, events, violations, seconds }'
}

what=${1:-}
results_header "The simulator, SIMULATED by tools/sim_results.sh $what" "$bin"
case $what in
  steps) show "$bin" sim --steps ;;
  hits)
    show "$bin" sim --hits --platform h100-nvl-tdx
    show "$(dirname "$bin")/predict_bench" --benchmark_filter=NONE
    ;;
  stock)
    echo
    echo "\$ build/bin/sealane sim --policy POLICY --platform PLATFORM --mode MODE --seeds 0..SEEDS-1 --ops OPS"
    # shellcheck disable=SC2059
    printf "$row" policy platform mode seeds ops violations worst/stock at
    for mode in swarm serve adversarial; do
      for platform in h100-nvl-tdx h100-nvl-aesni h100-tdx h100-sev h100-sxm b200-tdx; do
        worst sealane 199 1000 $platform $mode
      done
      worst speculate 59 2000 h100-tdx $mode
    done
    ;;
  seeds)
    last=${SEALANE_LAST_SEED:-20000}
    until=$(($(date +%s) + ${SEALANE_SECONDS:-1000000}))
    kept=build/sim-seeds/$(sha256sum "$bin" | cut -c1-16)-$last
    mkdir -p "$kept"
    for first in $(seq 0 500 "$last"); do
      end=$((first + 499 < last ? first + 499 : last))
      for policy in parallel sealane speculate; do
        for mode in swarm serve adversarial; do slice $policy $mode "$first" "$end" 2000; done
      done
    done
    echo
    echo "\$ build/bin/sealane sim --alone --policy POLICY --mode MODE --seeds 0..SEEDS-1 --ops OPS"
    # shellcheck disable=SC2059
    printf "$events" policy mode seeds ops operations events violations seconds
    for policy in parallel sealane speculate; do
      for mode in swarm serve adversarial; do count $policy $mode 2000; done
    done
    ;;
  *)
    echo "usage: tools/sim_results.sh steps|hits|stock|seeds" >&2
    exit 2
    ;;
esac
