#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# needed.sh PLUGIN: what the NCCL plugin brings into a process and shows to NCCL. Nothing of CUDA or NCCL; five tables,
# and none of a collective network, which would carry data past it.
set -eu
. "$(dirname "$0")/../needed.sh"

check_needed "$1" '(libssl|libcrypto|libIPSec_MB)\.so\..*'
shown=$(nm -D --defined-only "$1" | awk '{ print $3 }' | sort | tr '\n' ' ')
wanted='ncclNetPlugin_v10 ncclNetPlugin_v11 ncclNetPlugin_v12 ncclNetPlugin_v8 ncclNetPlugin_v9 '
[ "$shown" = "$wanted" ] || complain "shows $shown"
exit $bad
