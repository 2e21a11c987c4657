#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# The suite again and again on a machine that is busy with other things: no test may depend on time.
#   tools/suite_results.sh [RUNS [LOOPS]] >> FILE
# Each of RUNS (1) is `ctest -j 2` beside LOOPS (4) busy loops, which end with it; a line is written when a run is over,
# so what was stopped says how far it came: its seconds, the machine's load in its last five minutes, whoever made it,
# and what was run: the program's commit, what SEALANE_CPU hid, the cores, how many suites ran side by side. Names of
# tests that failed follow their run's line, and what the run said stays in a file that stderr names. The suite is that
# of build/; SUITE_CORES=0 (a list for taskset) runs it and its loops on these cores.
# SUITE_BESIDE=N (1; more need root) runs N suites side by side, N of RUNS at a time, so that each is the others' load:
# each has network, processes, /tmp, /run and /dev/shm of its own, and what it writes to build/ is in memory and gone
# with it. Nothing may be built meanwhile. Each has its tests in an order of its own, so that the largest (2 GiB) do not
# meet; count 1 GiB of memory for each, and 4 more. Nothing may be committed either: what the tests build would notice.
# SUITE_PART=K/M runs every Mth test from the Kth on: a part of a run where there is no time for a whole one.
# Ends with 1 if any run failed.
set -eu
part=${SUITE_PART:-1/1}

# A suite as the others of its machine cannot see it: everything it could share with them is its own. What it writes to
# build/ is in memory. The page of junit goes to descriptor 3.
if [ "${1:-}" = apart ]; then
  ip link set lo up
  tree=$PWD
  mount --bind "$tree" /mnt # it may be in a place that is hidden now
  for place in /tmp /run /dev/shm; do mount -t tmpfs tmpfs "$place"; done
  if [ ! -e "$tree" ]; then
    mkdir -p "$tree"
    mount --move /mnt "$tree"
  fi
  cd "$tree"
  unset TMPDIR # it may be a place that is hidden now
  mkdir /tmp/.above /tmp/.above/build /tmp/.above/work
  mount -t overlay overlay -o "lowerdir=$PWD/build,upperdir=/tmp/.above/build,workdir=/tmp/.above/work" build
  ctest --test-dir build -j 2 -I "${part%/*},,${part#*/}" --schedule-random --output-on-failure \
    --output-junit /tmp/.above/junit.xml || true
  cat /tmp/.above/junit.xml >&3
  exit
fi

cd "$(dirname "$0")/.."
# shellcheck source=tools/results_header.sh
. tools/results_header.sh
runs=${1:-1}
loops=${2:-4}
beside=${SUITE_BESIDE:-1}
if [ -n "${SUITE_CORES:-}" ]; then taskset -pc "$SUITE_CORES" $$ >/dev/null; fi

spinning='' suites=''
stop_all() { # a suite apart ends with the one process that is known here, which hears nothing less
  # shellcheck disable=SC2086
  [ -z "$spinning$suites" ] || kill -KILL $spinning $suites 2>/dev/null || true
  spinning='' suites=''
}
trap stop_all EXIT
trap 'exit 1' INT TERM
log=$(mktemp -d)

# What ctest says of itself is in $log/RUN, its page of junit in $log/RUN.xml, written when it has ended.
run_suite() { # RUN
  ctest --test-dir build -j 2 -I "${part%/*},,${part#*/}" --output-on-failure --output-junit "$log/$1.xml" \
    >"$log/$1" 2>&1 || true
}
start_suite_apart() { # RUN
  unshare --net --pid --ipc --mount --fork --kill-child --mount-proc tools/suite_results.sh apart \
    >"$log/$1" 2>&1 3>"$log/$1.xml" &
  suites="$suites $!"
}

# report_suite RUN BEGAN: the counts of its page, then the names behind "The following tests FAILED". A failure is 1.
report_suite() {
  counts=$(sed -n 's/.*tests="\([0-9]*\)".*/tests=\1/p; s/.*failures="\([0-9]*\)".*/failures=\1/p
                   s/.*\(disabled\|skipped\)="\([0-9]*\)".*/\1=\2/p' "$log/$1.xml" 2>/dev/null | head -4)
  number() { echo "$counts" | sed -n "s/^$1=//p" | head -1; }
  if [ -z "$(number tests)" ]; then
    echo "$1    did not come to its end; commit $commit, hidden ${SEALANE_CPU:-nothing}, cores ${SUITE_CORES:-all}," \
      "$beside suites, part $part"
    return 1
  fi
  tests=$(number tests) failures=$(number failures) skipped=$(number skipped)
  printf '%-4s %-9s %7d %7d %8d %8d %7s  %-13s %-9s %-6s %-7s %s\n' "$1" "$(date -u -d "@$2" +%H:%M:%S)" \
    "$((tests - failures - skipped))" "$failures" "$skipped" "$(($(stat -c %Y "$log/$1.xml") - $2))" \
    "$(cut -d' ' -f2 /proc/loadavg)" "$commit" "${SEALANE_CPU:-nothing}" "${SUITE_CORES:-all}" "$beside" "$part"
  sed -n '/^The following tests FAILED/,/^Errors while/p' "$log/$1" |
    grep -E '^[[:space:]]*[0-9]+ - ' | grep -v Skipped || true
  [ "$failures" -eq 0 ] && rm "$log/$1" "$log/$1.xml"
}

load="$loops busy loops"
[ "$beside" -eq 1 ] || load="$((beside - 1)) other suites and $load"
results_header "The suite beside $load, MEASURED by tools/suite_results.sh $runs $loops" build/bin/sealane
commit=$(build/bin/sealane --version | sed 's/.*commit \([^;)]*\).*/\1/')
echo
command="tools/suite_results.sh $runs $loops"
[ "$part" = 1/1 ] || command="SUITE_PART=$part $command"
[ "$beside" -eq 1 ] || command="SUITE_BESIDE=$beside $command"
[ -z "${SUITE_CORES:-}" ] || command="SUITE_CORES=$SUITE_CORES $command"
[ -z "${SEALANE_CPU:-}" ] || command="SEALANE_CPU=$SEALANE_CPU $command"
echo "\$ $command"
printf '%-4s %-9s %7s %7s %8s %8s %7s  %-13s %-9s %-6s %-7s %s\n' \
  run began passed failed skipped seconds load commit hidden cores suites part
done=0 failed_runs=0
while [ "$done" -lt "$runs" ]; do
  for _ in $(seq "$loops"); do
    (while :; do :; done) &
    spinning="$spinning $!"
  done
  first=$((done + 1))
  done=$((done + beside < runs ? done + beside : runs))
  began=$(date +%s)
  if [ "$beside" -eq 1 ]; then
    run_suite "$first"
  else
    for run in $(seq "$first" "$done"); do
      start_suite_apart "$run"
      sleep 2 # its order comes from the clock
    done
    for suite in $suites; do wait "$suite" || true; done
    suites=
  fi
  stop_all
  for run in $(seq "$first" "$done"); do
    report_suite "$run" "$began" || failed_runs=$((failed_runs + 1))
  done
done
echo
echo "$((runs - failed_runs)) of $runs runs without a failure"
echo
if [ "$failed_runs" -eq 0 ]; then rm -rf "$log"; else echo "what they said: $log" >&2; fi
[ "$failed_runs" -eq 0 ]
