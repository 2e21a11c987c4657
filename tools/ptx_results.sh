#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Device code on the emulated GPU, as files for docs/results/:
#   tools/ptx_results.sh bench > docs/results/ptx-NAME.txt                            half a minute
#   tools/ptx_results.sh nvbandwidth PROGRAM > docs/results/nvbandwidth-defaults.txt   an hour
# PROGRAM is NVIDIA's nvbandwidth as its user builds it (shared CUDA runtime, PTX); its tests are run by name and
# without other flags, one after the other, in each of MODES ("off on parallel default"). With PLACE, a directory, what
# they printed stays there, and a test that has ended there is not run again: with SECONDS_MAX no test is begun later
# than that, and the command can be given again.
# SEALANE_BIN names the program (build/bin/sealane).
set -eu
# shellcheck source=tools/results_header.sh
. "$(dirname "$0")/results_header.sh"
bin=${SEALANE_BIN:-build/bin/sealane}
unset SEALANE_BIN # not one of the program's own, which warns of what it does not know

# flags_of MODE
flags_of() {
  case $1 in
    off) echo "--cc off" ;;
    on) echo "--cc on" ;;
    parallel) echo "--cc on --policy parallel" ;;
    default) echo "--cc on --enable default" ;;
    *) echo "no mode: $1" >&2 && exit 2 ;;
  esac
}

# What nvbandwidth prints becomes "TEST FIGURE" lines; a test that did not come to its sum has "-".
figures_of() {
  awk '/^Running / { test = $2; sub(/\.$/, "", test); print test, "-" }
       /^SUM / { print $2, $3 }'
}

tests_of_nvbandwidth() {
  "$bin" run --emulate --memory 3G --cc off -- "$program" --list 2>/dev/null | sed -n 's/^[0-9]*, \([a-z_]*\):$/\1/p'
}

# run_test MODE TEST
run_test() {
  begin=$(date +%s)
  code=0
  # shellcheck disable=SC2046
  "$bin" run --emulate --memory 3G $(flags_of "$1") -- "$program" -t "$2" >"$place/$1/$2" 2>&1 || code=$?
  echo "$code $(($(date +%s) - begin))" >"$place/$1/$2.end"
}

# summary_of MODE: of the tests that have ended, and how many have not
summary_of() {
  said=$(for test in $tests; do [ ! -s "$place/$1/$test.end" ] || cat "$place/$1/$test"; done)
  ended=$(cat "$place/$1"/*.end 2>/dev/null || true)
  count() { echo "$1" | grep -c -i "$2" || true; }
  echo "$1: $(count "$said" '^Running') tests, $(count "$said" '^Waived') more waived (for several GPUs)," \
    "$(count "$said" error) lines with an error, $(count "$ended" '^[1-9]') exit codes but 0," \
    "$(echo "$ended" | awk '{ sum += $2 } END { print sum + 0 }') s$(
      left=$(($(echo "$tests" | wc -l) - $(count "$ended" .)))
      [ "$left" -eq 0 ] || echo "; $left NOT RUN"
    )"
}

run_nvbandwidth() {
  program=$1
  modes=${MODES:-off on parallel default}
  place=${PLACE:-$(mktemp -d)}
  tests=$(tests_of_nvbandwidth)
  began=$(date +%s)
  for mode in $modes; do
    mkdir -p "$place/$mode"
    for test in $tests; do
      [ -s "$place/$mode/$test.end" ] || [ "$(($(date +%s) - began))" -gt "${SECONDS_MAX:-86400}" ] ||
        run_test "$mode" "$test"
    done
  done
  for mode in $modes; do
    for test in $tests; do cat "$place/$mode/$test"; done 2>/dev/null | figures_of >"$place/$mode.figures"
    summary_of "$mode"
  done
  echo
  echo "GB/s of the emulated GPU's own clock (latency tests: ns)"
  # shellcheck disable=SC2046
  (cd "$place" && awk -v modes="$modes" '
    BEGIN { count = split(modes, mode, " "); printf "%-44s", "test"; for (i = 1; i <= count; ++i) printf "%12s", mode[i]; print "" }
    { sub(/\.figures$/, "", FILENAME); at = FILENAME; if (!($1 in seen)) { seen[$1] = 1; order[++tests] = $1 } value[$1, at] = $2 }
    END { for (t = 1; t <= tests; ++t) { printf "%-44s", order[t]; for (i = 1; i <= count; ++i) printf "%12s", value[order[t], mode[i]]; print "" } }
  ' $(for mode in $modes; do echo "$mode.figures"; done))
  [ -n "${PLACE:-}" ] || rm -r "$place"
}

case ${1:-} in
  bench)
    results_header "Device code, MEASURED by tools/ptx_results.sh bench" "$bin"
    echo
    echo "\$ sealane bench ptx --seconds 24"
    "$bin" bench ptx --seconds 24 2>/dev/null
    ;;
  nvbandwidth)
    results_header "nvbandwidth at its defaults, MEASURED by tools/ptx_results.sh nvbandwidth (it compares what it copied)" "$bin"
    echo
    echo "\$ sealane run --emulate --memory 3G --cc off|on [--policy parallel | --enable default] -- ./nvbandwidth -t TEST"
    run_nvbandwidth "${2:?a path of nvbandwidth}"
    ;;
  *)
    echo "usage: tools/ptx_results.sh bench | nvbandwidth PROGRAM" >&2
    exit 2
    ;;
esac
