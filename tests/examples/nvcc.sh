#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds the examples and the runtime part of the conformance suite with NVIDIA's toolkit, headers
# and all, as docs/examples.md says, and runs them on the emulated GPU.
# Usage: nvcc.sh SOURCE_DIR BUILD_DIR. Exit 77: there is no toolkit here.
set -eu
source=$1
build=$2

toolkit=
for directory in "${CUDA_HOME:-}" /usr/local/cuda /usr/local/cuda-1[23]*; do
  if [ -n "$directory" ] && [ -x "$directory/bin/nvcc" ]; then
    toolkit=$directory
    break
  fi
done
if [ -z "$toolkit" ]; then
  echo "skipped: nvcc is not installed (looked in CUDA_HOME and /usr/local/cuda*)"
  exit 77
fi
nvcc=$toolkit/bin/nvcc
emulated=$build/lib/emu
out=$build/nvcc
mkdir -p "$out"
examples=$source/examples
cd "$out" # where the assembler finds kernels.fatbin

compile() { # SOURCE OBJECT [FLAG...]: again only if something it may include is newer
  from=$1 object=$2
  shift 2
  if [ -f "$object" ] &&
    [ -z "$(find "$examples" "$source/tests/cuda" -newer "$object" -name '*.[hc]*' | head -1)" ]; then
    return
  fi
  "$nvcc" -std=c++20 -O1 -I"$examples" -I"$source/tests" "$@" -c "$from" -o "$object"
}
link() { # PROGRAM OBJECT...
  program=$1
  shift
  "$nvcc" --cudart shared "$@" -o "$program"
}
run() { # NAME COMMAND...: CC off and on
  name=$1
  shift
  for cc in off on; do
    if ! LD_LIBRARY_PATH=$emulated SEALANE_EMU_CC=$cc SEALANE_EMU_GPUS=2 \
      SEALANE_EMU_KERNELS=$emulated/libsealane-example-kernels.so "$@" >"$name.log" 2>&1; then
      echo "$name failed with CC $cc:"
      cat "$name.log"
      exit 1
    fi
  done
  echo "ok: $name"
}

compile "$examples"/kernels/kernels.cu kernels.o -arch=sm_90
"$nvcc" -std=c++20 -O1 -I"$examples" -arch=sm_90 --fatbin "$examples"/kernels/kernels.cu -o kernels.fatbin
compile "$examples"/kernels/no_emulator.cc no_emulator.o
compile "$examples"/kernels/image_embedded.cc image_embedded.o
for part in fail options report gpu_runtime gpu_driver; do compile "$examples/support/$part.cc" $part.o; done
support="no_emulator.o fail.o options.o report.o"
runtime="gpu_runtime.o kernels.o"
driver="gpu_driver.o image_embedded.o -L$toolkit/lib64/stubs -lcuda"

example() { # NAME SOURCE...
  name=$1
  shift
  objects=
  for file in "$@"; do
    object=$name-$(basename "$file" .cc).o
    compile "$file" "$object"
    objects="$objects $object"
  done
  # shellcheck disable=SC2086
  link "$name" $objects $support $runtime
  # shellcheck disable=SC2086
  link "${name}_drv" $objects $support $driver
}

example layer_swap "$examples"/layer_swap.cc
example decode_loop "$examples"/decode_loop.cc
example kv_swap "$examples"/kv_swap/*.cc
example mini_llm "$examples"/mini_llm/*.cc
for api in "" _drv; do
  run layer_swap$api "./layer_swap$api" --width 256 --steps 2
  run decode_loop$api "./decode_loop$api" --steps 20
  run kv_swap$api "./kv_swap$api" --layers 2 --steps 4
  run mini_llm$api "./mini_llm$api" --hidden 64 --layers 2 --steps 2
done

suite=
for file in "$source"/tests/cuda/runtime_*_test.cc; do
  object=$(basename "$file" .cc).o
  compile "$file" "$object"
  suite="$suite $object"
done
# shellcheck disable=SC2086
link cuda_runtime_test $suite no_emulator.o kernels.o -lgtest -lgtest_main
run cuda_runtime_test ./cuda_runtime_test --gtest_brief=1
