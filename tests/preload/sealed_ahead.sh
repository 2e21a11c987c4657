#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# sealed_ahead.sh PROGRAM...: says "ok" if the program does and messages that were sealed before their turn were sent.
# No byte can be stale if there are none. A busy machine may leave no time for it: then once more with longer pauses.
# Where pages are to be guarded and the kernel guards none, digests would be what is tested: that is skipped, with 77.
# LD_PRELOAD is for the program alone.
set -eu
preload=$LD_PRELOAD
unset LD_PRELOAD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for patience in 1 4 16 64; do
  rm -f "$scratch/stats"
  code=0
  said=$(env LD_PRELOAD="$preload" SEALANE_STATS="$scratch/stats" PATIENCE="$patience" "$@" 2> "$scratch/err") || code=$?
  cat "$scratch/err" >&2
  [ "$code" -eq 0 ] && [ "$said" = ok ] || { echo "$said"; exit 1; }
  if [ "${SEALANE_PAGE_GUARDS:-0}" = 1 ] && tr -s '\n ' ' ' < "$scratch/err" | grep -q 'digest compared'; then
    echo "no pages can be guarded here"
    exit 77
  fi
  hits=$(sed -n 's/.*"hit_bytes": *\([0-9]*\).*/\1/p' "$scratch/stats")
  echo "pauses of $patience times the usual: ${hits:-no} bytes sealed ahead were sent"
  [ "${hits:-0}" -eq 0 ] || { echo ok; exit 0; }
done
exit 1
