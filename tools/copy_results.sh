#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# What each part of the transparent runtime buys on the emulated GPU, as files for docs/results/:
#   tools/copy_results.sh         > docs/results/copies-NAME.txt       every example, every policy, beside what the
#                                                                      simulator says of it; 4 minutes
#   tools/copy_results.sh workers > docs/results/workers-NAME.txt      with 2, 4, 8 and 16 workers; 4 minutes
#   tools/copy_results.sh calls   > docs/results/calls-NAME.txt        what a hooked and a foreseen call cost; a minute
#   tools/copy_results.sh picture > docs/results/picture.txt           what README.md begins with; 3 minutes
#   tools/copy_results.sh against OLD > docs/results/copies-old-new.txt  beside an older program, run by run in turn
#                                                                      (tools/copy_compare.py; COMPARE has more of its
#                                                                      options, NOTE what else is to be said); 8 minutes
# On a quiet machine. SEALANE_BIN names the program (build/bin/sealane), PLATFORM the machine that is modelled (h100-tdx),
# ROUNDS how often each is run (1).
set -eu
# shellcheck source=tools/results_header.sh
. "$(dirname "$0")/results_header.sh"
bin=${SEALANE_BIN:-build/bin/sealane}
unset SEALANE_BIN # not one of the program's own, which warns of what it does not know
platform=${PLATFORM:-h100-tdx}

show() {
  echo
  echo "\$ $*"
  quietly "$@"
}

what=${1:-policies}
results_header "The transparent runtime, MEASURED by tools/copy_results.sh${1:+ $1}" "$bin"
case $what in
  policies) show "$bin" bench copy --platform "$platform" --rounds "${ROUNDS:-1}" --simulated ;;
  workers)
    show "$bin" bench copy --platform "$platform" --rounds 1 --workers 2,4,8,16 --policies off,stock,parallel,speculate \
      --examples layer_swap,kv_swap,mini_llm-flexgen
    ;;
  picture)
    show "$bin" bench copy --platform "$platform" --rounds 7 --dilation 200 --workers 8 --policies off,stock,sealane \
      --examples layer_swap
    ;;
  calls)
    show "$(dirname "$bin")/../bench/hook_bench"
    show "$(dirname "$bin")/../bench/claim_bench"
    ;;
  against)
    old=${2:?which program is the older one?}
    echo "older:   $("$old" --version | sed 's/;.*/)/')"
    if [ -n "${NOTE:-}" ]; then echo "note:    $NOTE"; fi
    echo
    echo "\$ tools/copy_compare.py OLD NEW --platform $platform --rounds ${ROUNDS:-9}"
    # shellcheck disable=SC2086 # options, word by word
    "$(dirname "$0")/copy_compare.py" "$old" "$bin" --platform "$platform" --rounds "${ROUNDS:-9}" ${COMPARE:-}
    ;;
  *)
    echo "usage: tools/copy_results.sh [policies|workers|picture|calls|against OLD]" >&2
    exit 2
    ;;
esac
