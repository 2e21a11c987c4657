#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# What the NCCL plugin does on this machine beside the same without sealing and TLS as NCCL's sockets
# have it, as a file for docs/results/. Takes about four minutes; with root also between namespaces.
#   tools/nccl_results.sh > docs/results/nccl-NAME.txt
# SEALANE_BIN names the program (build/bin/sealane), ROUNDS how often each plugin has its turn (15).
set -eu
# shellcheck source=tools/results_header.sh
. "$(dirname "$0")/results_header.sh"
bin=${SEALANE_BIN:-build/bin/sealane}
rounds=${ROUNDS:-15}

show() {
  echo
  echo "\$ $*"
  "$@" 2>/dev/null
}

results_header "NCCL plugins under the harness, MEASURED by tools/nccl_results.sh" "$bin"
echo "kernel:  $(uname -r)"
show "$bin" bench nccl -b 1M -e 64M -f 8 -n 10 --rounds "$rounds"
show "$bin" bench nccl --pattern latency -b 4K -e 64K -f 16 -n 300 --rounds "$rounds"
show "$bin" bench nccl --hosts --gbit-per-s 10 -b 64M -e 64M -n 10 --rounds "$rounds"
plugin=$(dirname "$bin")/../lib/libnccl-net-sealane.so
if [ -e "$plugin" ]; then show "$bin" bench nccl --plugin "$plugin" --check; fi
