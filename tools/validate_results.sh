#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Every published measurement beside what the model says, as a file for docs/results/ (the same figures on every machine):
#   tools/validate_results.sh DIR > docs/results/validate.txt    DIR/nsys has the recorded runs; 75 s of a core
# SEALANE_BIN names the program (build/bin/sealane).
set -eu
# shellcheck source=tools/results_header.sh
. "$(dirname "$0")/results_header.sh"
bin=${SEALANE_BIN:-build/bin/sealane}
unset SEALANE_BIN # not one of the program's own, which warns of what it does not know
if [ $# -ne 1 ]; then
  echo "usage: tools/validate_results.sh DIR" >&2
  exit 2
fi

results_header "What others measured and what the model says, SIMULATED by tools/validate_results.sh" "$bin"
echo
echo "\$ build/bin/sealane validate --data DIR"
"$bin" validate --data "$1" 2>/dev/null
