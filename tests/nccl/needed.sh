#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# needed.sh PLUGIN: what the NCCL plugin brings into a process and shows to NCCL. Nothing of CUDA or NCCL; five tables,
# and none of a collective network, which would carry data past it.
set -eu
bad=0
complain() {
  echo "$1"
  bad=1
}

for library in $(readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
  case $library in
    libc.so.* | libm.so.* | ld-linux* | libdl.so.* | libpthread.so.*) ;;
    libssl.so.* | libcrypto.so.* | libIPSec_MB.so.*) ;;
    *) complain "needs $library" ;;
  esac
done
shown=$(nm -D --defined-only "$1" | awk '{ print $3 }' | sort | tr '\n' ' ')
wanted='ncclNetPlugin_v10 ncclNetPlugin_v11 ncclNetPlugin_v12 ncclNetPlugin_v8 ncclNetPlugin_v9 '
[ "$shown" = "$wanted" ] || complain "shows $shown"
exit $bad
