#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by tools/*_results.sh: how every file of docs/results/ begins (what was measured, when, on which machine, by
# which program), and how a command is run whose output goes there.

# results_header TITLE [PROGRAM]
results_header() {
  echo "$1"
  echo "date:    $(date -u +%Y-%m-%d)"
  echo "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"
  echo "has:     $(grep -o -w -E 'aes|pclmulqdq|avx2|vaes|vpclmulqdq|avx512[a-z]*' /proc/cpuinfo | sort -u | tr '\n' ' ')"
  if [ -n "${2:-}" ]; then echo "program: $("$2" --version | sed 's/;.*/)/')"; fi
}

# quietly COMMAND...: what it says on stderr is progress, and is shown only if it fails.
quietly() {
  said=$(mktemp)
  status=0
  "$@" 2>"$said" || status=$?
  [ "$status" -eq 0 ] || cat "$said" >&2
  rm -f "$said"
  return "$status"
}
