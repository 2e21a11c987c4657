#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# What a driver gets from libcrypto's EVP calls under the runtime against libcrypto alone, as a file for docs/results/:
#   tools/evp_results.sh > docs/results/evp.txt      ten minutes
# Random sequences of calls (SEQUENCES, 1000000; a tenth of them with less of the CPU and with --verify), then the
# stories that have to be noticed with a rule of ours taken out. The programs are those of build/ with its tests. Ends
# with an error if any sequence differed or any rule was not missed.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=tools/results_header.sh
. tools/results_header.sh
sequences=${SEQUENCES:-1000000}
tenth=$((sequences / 10))
bin=build/bin/sealane

show() { # VARIABLES FLAGS WHAT FIRST COUNT
  variables=$1 flags=$2
  shift 2
  command="$variables${variables:+ }$bin run --emulate --cc on --enable default $flags${flags:+ }-- build/tests/evp_calls $*"
  echo
  echo "\$ $command"
  # shellcheck disable=SC2086
  env $variables "$bin" run --emulate --cc on --enable default $flags -- build/tests/evp_calls "$@" 2>&1
}

results_header "EVP calls of a driver against libcrypto alone, MEASURED by tools/evp_results.sh" "$bin"
echo "OpenSSL: $(openssl version 2>/dev/null || echo unknown)"
show '' '' random 1 "$sequences"
show SEALANE_CPU=-avx512 '' random 1 "$tenth"
show SEALANE_CPU=-vaes '' random 1 "$tenth"
show '' '--verify 100000000' seen 1 "$tenth"

echo
echo "\$ ctest --test-dir build -R 'preload.evp.without'"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
ctest --test-dir build -R 'preload[.]evp[.]without' >"$log" 2>&1 || status=$?
sed -n 's/^.*Test *#[0-9]*: preload[.]evp[.]without[.]\([^ ]*\) [.]*\** *\([A-Z][a-z]*\).*/\1 \2/p' "$log" |
  sort | awk '{ printf "%-70s %s\n", $1, $2 == "Passed" ? "noticed" : $2 }'
exit "$status"
