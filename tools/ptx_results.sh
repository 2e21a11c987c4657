#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Device code on the emulated GPU, as files for docs/results/:
#   tools/ptx_results.sh bench > docs/results/ptx-NAME.txt                            half a minute
#   tools/ptx_results.sh nvbandwidth PROGRAM > docs/results/nvbandwidth-defaults.txt   an hour
# PROGRAM is NVIDIA's nvbandwidth as its user builds it (shared CUDA runtime, PTX); it is run without flags, once in
# each of MODES ("off on parallel default"). With PLACE, a directory, what it printed stays there, and a mode that has
# ended there is not run again: the modes can be run one by one.
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

run_mode() {
  begin=$(date +%s)
  code=0
  # shellcheck disable=SC2046
  "$bin" run --emulate --memory 3G $(flags_of "$mode") -- "$program" >"$place/$mode" 2>&1 || code=$?
  echo "exit code $code, $(($(date +%s) - begin)) s" >"$place/$mode.end"
}

run_nvbandwidth() {
  program=$1
  modes=${MODES:-off on parallel default}
  place=${PLACE:-$(mktemp -d)}
  for mode in $modes; do
    [ -s "$place/$mode.end" ] || run_mode
    figures_of <"$place/$mode" >"$place/$mode.figures"
    echo "$mode: $(grep -c '^Running' "$place/$mode") tests, $(grep -c '^Waived' "$place/$mode") more waived (for several" \
      "GPUs), $(grep -c -i error "$place/$mode") lines with an error, $(cat "$place/$mode.end")"
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
    results_header "nvbandwidth without flags, MEASURED by tools/ptx_results.sh nvbandwidth (it compares what it copied)" "$bin"
    echo
    echo "\$ sealane run --emulate --memory 3G --cc off|on [--policy parallel | --enable default] -- ./nvbandwidth"
    run_nvbandwidth "${2:?a path of nvbandwidth}"
    ;;
  *)
    echo "usage: tools/ptx_results.sh bench | nvbandwidth PROGRAM" >&2
    exit 2
    ;;
esac
