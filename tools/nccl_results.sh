#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# What the NCCL plugin does on this machine beside the same without sealing and TLS as NCCL's sockets
# have it, as a file for docs/results/. With root also between namespaces.
#   tools/nccl_results.sh > docs/results/nccl-NAME.txt      about five minutes on a quiet machine
#   tools/nccl_results.sh --quick > /tmp/nccl.txt           does it run? figures are worth nothing
# SEALANE_BIN names the program (build/bin/sealane), ROUNDS how often each plugin has its turn (15; 2
# if it is to be quick). Ends with an error if a plugin fails: such a file is not a result.
set -eu
# shellcheck source=tools/results_header.sh
. "$(dirname "$0")/results_header.sh"
bin=${SEALANE_BIN:-build/bin/sealane}
unset SEALANE_BIN # not one of the program's own, which warns of what it does not know
case ${1:-} in
  '') rounds=${ROUNDS:-15} large=64M operations=10 latencies=300 note= ;;
  --quick) rounds=${ROUNDS:-2} large=8M operations=3 latencies=50 note=' (quick: no result)' ;;
  *)
    echo "usage: $0 [--quick]" >&2
    exit 2
    ;;
esac

show() {
  echo
  echo "\$ $*"
  "$@"
}

results_header "NCCL plugins under the harness, MEASURED by tools/nccl_results.sh$note" "$bin"
echo "kernel:  $(uname -r)"
show "$bin" bench nccl -b 1M -e "$large" -f 8 -n "$operations" --rounds "$rounds"
show "$bin" bench nccl --pattern tree --ranks 4 -b 8M -e 8M -n "$operations" --rounds "$rounds"
show "$bin" bench nccl --pattern latency -b 4K -e 64K -f 16 -n "$latencies" --rounds "$rounds"
# At 10 Gbit/s two cores for both hosts are the limit; at 3 it is the network.
for gbit in 10 3; do
  show "$bin" bench nccl --hosts --gbit-per-s $gbit -b "$large" -e "$large" -n "$operations" --rounds "$rounds"
done
plugin=$(dirname "$bin")/../lib/libnccl-net-sealane.so
if [ -e "$plugin" ]; then show "$bin" bench nccl --plugin "$plugin" --check; fi
