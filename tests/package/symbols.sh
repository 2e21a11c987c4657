#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Does the library have the names that programs rely on, and no others? Usage: symbols.sh LIBRARY
set -eu
promised=$(dirname "$0")/../../packaging/libsealane.symbols
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Of the standard library's templates and of our own lambdas there are names that cannot be hidden: they are nobody's.
nm -D --defined-only "$1" | awk '{print $3}' | grep -E '^(sealane_|_ZNK?7sealane|_ZT[ISV]N7sealane9CommErrorE)' |
  LC_ALL=C sort >"$scratch/there"
sed '/^#/d; s/ .*//' "$promised" | LC_ALL=C sort >"$scratch/promised"
gone=$(LC_ALL=C comm -13 "$scratch/there" "$scratch/promised")
new=$(LC_ALL=C comm -23 "$scratch/there" "$scratch/promised")
[ -z "$gone" ] || printf 'programs that were linked to these no longer start; raise the ABI version, then take them out:\n%s\n' "$gone"
[ -z "$new" ] || printf 'new: add them to packaging/libsealane.symbols, with the version that brings them:\n%s\n' "$new"
[ -z "$gone$new" ]
