#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# A sealed all-reduce between two network namespaces, which cannot share memory by way of a socket
# name and see each other over a virtual cable only: a rank in each, by IPv4, then by IPv6; then two
# ranks in each, which share memory with one another and reach the others by TCP.
# Usage: two_hosts.sh PATH_OF_SEALANE. Exit 77: this machine does not allow namespaces.
set -eu
sealane=$1
a=sealane-a-$$
b=sealane-b-$$
scratch=$(mktemp -d)
cleanup() {
  ip netns del "$a" 2>/dev/null || true
  ip netns del "$b" 2>/dev/null || true
  rm -rf "$scratch"
}
trap cleanup EXIT

skip() {
  echo "skipped: $1"
  exit 77
}
command -v ip >/dev/null || skip "there is no ip(8)"
ip netns add "$a" 2>/dev/null || skip "network namespaces are not allowed here"
ip netns add "$b"
ip link add "sl$$a" netns "$a" type veth peer name "sl$$b" netns "$b" 2>/dev/null ||
  skip "virtual cables are not allowed here"
ip -n "$a" addr add 10.99.0.1/24 dev "sl$$a"
ip -n "$b" addr add 10.99.0.2/24 dev "sl$$b"
ip -n "$a" addr add fd99::1/64 dev "sl$$a" nodad
ip -n "$b" addr add fd99::2/64 dev "sl$$b" nodad
for space in "$a" "$b"; do
  ip -n "$space" link set lo up
done
ip -n "$a" link set "sl$$a" up
ip -n "$b" link set "sl$$b" up

# rendezvous, then a namespace per rank: all ranks of one bench; rank 0's figures must be right
group() {
  where=$1
  shift
  rank=0
  pids=
  for space in "$@"; do
    ip netns exec "$space" env SEALANE_RANK=$rank SEALANE_SIZE=$# SEALANE_RENDEZVOUS="$where" \
      SEALANE_KEY_FILE="$scratch/key" "$sealane" bench allreduce -b 1M -e 1M -n 7 --transport auto \
      --mode sealed --json "$scratch/$rank.json" >"$scratch/$rank" 2>&1 &
    pids="$pids $!"
    rank=$((rank + 1))
  done
  for pid in $pids; do
    wait "$pid" || { cat "$scratch"/[0-9]; exit 1; }
  done
  grep -q '"wrong": 0' "$scratch/0.json"
}

"$sealane" keygen "$scratch/key" >/dev/null
group tcp:10.99.0.1:29555 "$a" "$b"
group 'tcp:[fd99::1]:29556' "$a" "$b"
group tcp:10.99.0.1:29557 "$a" "$a" "$b" "$b"
echo "two namespaces: ok"
