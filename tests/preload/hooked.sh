#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Does the runtime see whatever of the driver's API puts work into a stream, or ends a stream or a context? Copies
# behind work that nobody has seen would not wait for it, and what a context had would be believed to be there still.
#   hooked.sh HOOKS.def EXPORTS.def...
hooks=$1
shift
known=$(sed -n -e 's/^SEALANE_HOOK(\([A-Za-z0-9_]*\),.*/\1/p' \
  -e 's/^SEALANE_HOOK_TWINS(\([A-Za-z0-9_]*\), \([a-z_]*\),.*/\1\n\1\2/p' "$hooks")
wanted=$(sed -n 's/^EMU_EXPORT([A-Za-z0-9_]*, [0-9]*, \([A-Za-z0-9_]*\),.*/\1/p' "$@" |
  grep -E '^cu(Launch|Mem(cpy|set|Free)|Graph(Launch|Upload|ics(Map|Unmap)R)|DevicePrimaryCtxRe|CtxDe|StreamDestroy)|Async(_v[0-9])?(_pt[ds][sz])?$|(Wait|Write)(Event|Value)|MemOp(_v[0-9])?(_ptsz)?$' |
  grep -v '^cuGraphAdd')
test "$(echo "$wanted" | wc -l)" -gt 150 || { echo "the lists cannot be read"; exit 1; }
status=0
for symbol in $wanted; do
  echo "$known" | grep -qx "$symbol" && continue
  # Before CUDA 3.2 addresses had 32 bits: none of such a call is memory of today's.
  case $symbol in cuMem*) echo "$known" | grep -qx "${symbol}_v2" && continue ;; esac
  echo "nobody stands in front of $symbol"
  status=1
done
exit $status
