#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Installs the build into a scratch prefix, builds a consumer against it and runs both programs from
# there. Usage: run.sh BUILD_DIR
set -eu
build=$1
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/install.log"
cmake -S "$here/consumer" -B "$scratch/consumer" -G Ninja -DCMAKE_PREFIX_PATH="$scratch/prefix" \
  >"$scratch/configure.log"
cmake --build "$scratch/consumer" >"$scratch/build.log" || { cat "$scratch/build.log"; exit 1; }
"$scratch/consumer/consumer"
"$scratch/prefix/bin/sealane" --version

library=$(find "$scratch/prefix" -name libsealane.so)
test -n "$library"
# Only what the public headers declare is visible; the standard library's templates cannot be hidden.
leaked=$(nm -D --defined-only --demangle "$library" |
  grep -vE ' (sealane::(version|sealing_info|size_of)\(|sealane::(Comm|Work)::|(typeinfo( name)?|vtable) for sealane::CommError|sealane::CommError::|sealane_|[A-Z] _(init|fini)$)' | grep -E ' [TVWBD] ' |
  grep -vE ' (typeinfo|typeinfo name|vtable) for std::' || true)
if [ -n "$leaked" ]; then
  printf 'libsealane.so shows symbols it should hide:\n%s\n' "$leaked"
  exit 1
fi
