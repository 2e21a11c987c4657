#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# The suite again and again on a machine that is busy with other things: no test may depend on time.
#   tools/suite_results.sh [RUNS [LOOPS]] >> FILE
# Each of RUNS (1) is `ctest -j 2` beside LOOPS (4) busy loops, which end with it; a line is written when a run is over,
# so what was stopped says how far it came. Names of tests that failed follow their run's line. The suite is that of
# build/, with what SEALANE_CPU hides; SUITE_CORES=0 (a list for taskset) runs it and its loops on these cores.
# Ends with 1 if any run failed.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=tools/results_header.sh
. tools/results_header.sh
runs=${1:-1}
loops=${2:-4}
if [ -n "${SUITE_CORES:-}" ]; then taskset -pc "$SUITE_CORES" $$ >/dev/null; fi

spinning=
stop_loops() {
  # shellcheck disable=SC2086
  [ -z "$spinning" ] || kill $spinning 2>/dev/null || true
  spinning=
}
trap stop_loops EXIT
trap 'exit 1' INT TERM
log=$(mktemp -d)

results_header "The suite beside $loops busy loops, MEASURED by tools/suite_results.sh $runs $loops" build/bin/sealane
echo "hidden:  ${SEALANE_CPU:-nothing}; cores ${SUITE_CORES:-all}"
echo
printf '%-4s %-9s %8s %8s %8s %8s\n' run began passed failed skipped seconds
failed_runs=0
for run in $(seq "$runs"); do
  for _ in $(seq "$loops"); do
    (while :; do :; done) &
    spinning="$spinning $!"
  done
  began=$(date +%s)
  ctest --test-dir build -j 2 --output-on-failure --output-junit "$log/$run.xml" >"$log/$run" 2>&1 || true
  stop_loops
  # What ctest says of itself: the counts of its junit page, then the names behind "The following tests FAILED".
  counts=$(sed -n 's/.*tests="\([0-9]*\)".*/tests=\1/p; s/.*failures="\([0-9]*\)".*/failures=\1/p
                   s/.*\(disabled\|skipped\)="\([0-9]*\)".*/\1=\2/p' "$log/$run.xml" | head -4)
  number() { echo "$counts" | sed -n "s/^$1=//p" | head -1; }
  tests=$(number tests) failures=$(number failures) skipped=$(number skipped)
  printf '%-4s %-9s %8d %8d %8d %8d\n' "$run" "$(date -u -d "@$began" +%H:%M:%S)" \
    "$((tests - failures - skipped))" "$failures" "$skipped" "$(($(date +%s) - began))"
  sed -n '/^The following tests FAILED/,/^Errors while/p' "$log/$run" |
    grep -E '^[[:space:]]*[0-9]+ - ' | grep -v Skipped || true
  [ "$failures" -eq 0 ] || failed_runs=$((failed_runs + 1))
done
echo
echo "$((runs - failed_runs)) of $runs runs without a failure"
echo
if [ "$failed_runs" -eq 0 ]; then rm -rf "$log"; else echo "what they said: $log" >&2; fi
[ "$failed_runs" -eq 0 ]
