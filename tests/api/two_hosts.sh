#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# A sealed all-reduce between two network namespaces, which cannot share memory by way of a socket
# name and see each other over a virtual cable only; IPv4, then IPv6. Usage: two_hosts.sh PATH_OF_SEALANE. Exit 77: this machine does not allow namespaces.
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

command -v ip >/dev/null || exit 77
ip netns add "$a" 2>/dev/null || exit 77
ip netns add "$b"
ip link add "sl$$a" netns "$a" type veth peer name "sl$$b" netns "$b" 2>/dev/null || exit 77
ip -n "$a" addr add 10.99.0.1/24 dev "sl$$a"
ip -n "$b" addr add 10.99.0.2/24 dev "sl$$b"
ip -n "$a" addr add fd99::1/64 dev "sl$$a" nodad
ip -n "$b" addr add fd99::2/64 dev "sl$$b" nodad
for space in "$a" "$b"; do
  ip -n "$space" link set lo up
done
ip -n "$a" link set "sl$$a" up
ip -n "$b" link set "sl$$b" up

# rank 0 and rank 1 of one bench, each in its namespace; the remaining words are variables for both
pair() {
  where=$1
  shift
  ip netns exec "$a" env SEALANE_RANK=0 SEALANE_SIZE=2 SEALANE_RENDEZVOUS="$where" "$@" \
    "$sealane" bench allreduce -b 1M -e 1M -n 7 --transport auto --mode sealed --json "$scratch/0.json" >"$scratch/0" 2>&1 &
  first=$!
  ip netns exec "$b" env SEALANE_RANK=1 SEALANE_SIZE=2 SEALANE_RENDEZVOUS="$where" "$@" \
    "$sealane" bench allreduce -b 1M -e 1M -n 7 --transport auto --mode sealed >"$scratch/1" 2>&1 || {
      cat "$scratch/1"
      exit 1
    }
  wait "$first" || { cat "$scratch/0"; exit 1; }
  grep -q '"wrong": 0' "$scratch/0.json"
}

"$sealane" keygen "$scratch/key" >/dev/null
pair tcp:10.99.0.1:29555 SEALANE_KEY_FILE="$scratch/key"
pair 'tcp:[fd99::1]:29556' SEALANE_KEY_FILE="$scratch/key"
echo "two namespaces: ok"
