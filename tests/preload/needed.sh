#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# needed.sh PRELOAD: what the preload brings into a process, and what it puts in front of others' functions.
set -eu
. "$(dirname "$0")/../needed.sh"

check_needed "$1"
for symbol in $(nm -D --undefined-only "$1" | awk '$1 == "U" { print $2 }'); do
  case $symbol in
    *@GLIBC_*) ;;
    *) complain "asks for $symbol" ;;
  esac
done
# No name of libcrypto's among them: whoever calls it reaches his own.
for symbol in $(nm -D --defined-only "$1" | awk '{ print $3 }'); do
  case $symbol in
    dlsym@*GLIBC_* | dlopen@*GLIBC_* | cu[A-Z]*@@SEALANE_1) ;;
    GLIBC_* | SEALANE_1*) ;;
    *) complain "exports $symbol" ;;
  esac
done
# A process without a libcrypto has none because of us.
if LD_PRELOAD=$1 /bin/cat /proc/self/maps | grep -E 'libcrypto|libssl|IPSec'; then
  complain "brings it along"
fi
exit $bad
