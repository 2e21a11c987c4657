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

# A program in C, by pkg-config where there is one.
if command -v pkg-config >/dev/null; then
  PKG_CONFIG_PATH=$(dirname "$(find "$scratch/prefix" -name sealane.pc)")
  export PKG_CONFIG_PATH
  # shellcheck disable=SC2046
  cc -std=c99 -Wall -Wextra -Wpedantic -Werror "$here/consumer/sum.c" \
    $(pkg-config --cflags --libs sealane) -o "$scratch/sum"
  LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH") SEALANE_RANK=0 SEALANE_SIZE=1 "$scratch/sum"
fi

# A CUDA program on the emulated GPU, with kernels of its own, from what is installed and nothing else.
cat >"$scratch/kernels.c" <<'END'
#include <sealane_emu.h>
void sealane_emu_kernels(sealane_emu_register_fn add) {
  const sealane_emu_kernel kernel = {sizeof kernel, "nothing", 0, 0, 0};
  add(&kernel);
}
END
cc -shared -fPIC -I"$scratch/prefix/include/sealane" "$scratch/kernels.c" -o "$scratch/kernels.so"
cp "$build/tests/emu_probe" "$scratch/program"
for cc in on off; do
  "$scratch/prefix/bin/sealane" run --emulate --cc $cc --memory 256M --kernels "$scratch/kernels.so" \
    --platform h100-tdx --dilation 1 --truth "$scratch/truth.json" -- "$scratch/program" roundtrip
  grep -q '"emulated": true' "$scratch/truth.json"
done

# The benchmark finds its examples where they are installed.
"$scratch/prefix/bin/sealane" bench copy --examples decode_loop --policies off,stock --rounds 1 \
  --json "$scratch/copy.json" >"$scratch/copy.txt"
grep -q '"example": "decode_loop"' "$scratch/copy.json"

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
